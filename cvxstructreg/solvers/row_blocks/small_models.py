"""The solution of a quadratic model over a few weights, which costs no pass over the blocks."""

from __future__ import annotations

from typing import Any

from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers.general import semismooth_newton
from cvxstructreg.solvers.iterate import InaccurateWarning

#: Below this accuracy, models of at most so many weights are solved with dense systems. The other solvers' conjugate
#: gradients need a hundred times as long there, if the curvatures of the rows differ widely.
FINE, FEW_WEIGHTS = 1e-10, 500


def solved_model(model: Problem, accuracy: float, start: tuple[Any, Any], max_iter: int | None = None) -> Solution:
    """The solution to this relative gap, or the best one that round-off allows."""
    dense = accuracy < FINE and model.model.n_weights <= FEW_WEIGHTS and semismooth_newton.SOLVER.accepts(model)
    with muted(InaccurateWarning):
        name = semismooth_newton.SOLVER.name if dense else "auto"
        return model.solve(name, tol=accuracy, warm_start=start, max_iter=max_iter)
