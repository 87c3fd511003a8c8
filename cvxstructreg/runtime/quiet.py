"""Mute warnings in one thread only: ``warnings.catch_warnings`` changes the filters of all threads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import cvxpy as cp
import numpy as np

_MUTED: ContextVar[tuple[type[Warning], ...]] = ContextVar("cvxstructreg_muted", default=())


@contextmanager
def muted(*categories: type[Warning]) -> Iterator[None]:
    """Mute the warnings of these categories that :func:`warn` issues in this context; other threads are not affected.

    Examples
    --------
    >>> with muted(UserWarning):
    ...     warn("nobody sees this", UserWarning)
    """
    token = _MUTED.set(_MUTED.get() + categories)
    try:
        yield
    finally:
        _MUTED.reset(token)


def warn(message: str, category: type[Warning], stacklevel: int = 1) -> None:
    """Call ``warnings.warn`` unless the category is muted; ``stacklevel`` counts from the caller."""
    if not issubclass(category, _MUTED.get()):
        warnings.warn(message, category, stacklevel=stacklevel + 1)


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
