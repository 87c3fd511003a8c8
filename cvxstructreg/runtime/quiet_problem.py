"""CVXPY problems without warnings. Import this file inside functions: it imports CVXPY."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np


class QuietProblem(cp.Problem):
    """A CVXPY problem that does not warn of inaccurate solutions: certificates or callers judge the accuracy.

    Examples
    --------
    >>> x = cp.Variable()
    >>> problem = QuietProblem(cp.Minimize((x - 1.0) ** 2))
    >>> round(problem.solve(solver="CLARABEL"), 6), problem.status
    (0.0, 'optimal')
    """

    def unpack_results(self, solution: Any, chain: Any, inverse_data: Any) -> None:
        """Store the solver's results."""
        found = chain.invert(solution, inverse_data)
        if found.status in cp.settings.INACCURATE:
            with np.errstate(invalid="ignore", over="ignore"):  # values at rough points, such as 0 times infinity
                self.unpack(found)
        else:
            super().unpack_results(solution, chain, inverse_data)
