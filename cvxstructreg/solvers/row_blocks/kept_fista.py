"""Accelerated proximal gradient steps whose rows stay where the blocks are: two passes for each step.

For smooth losses with any number of outputs plus at most one term with a prox. One pass computes the value and the
gradient at the point ahead, the other one the value after the step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import OneProx
from cvxstructreg.solvers.row_blocks.kept_smooth import ROUND_OFF, KeptSmooth, ScoresStay
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: Factors of the step size after a failed test of sufficient decrease, and after every step; failures at most.
SHRINK, GROW, MOST_SHRINKS = 0.5, 1.1, 60


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Steps with momentum, which restarts when it points uphill."""
    smooth, parts = KeptSmooth(problem), problem.normal_form
    x = _prox(parts, np.vstack([start.theta, start.b]), 1e-300)
    at, momentum, step = smooth.at(x), 1.0, 1.0
    metric = 1.0 / smooth.diagonal(at)  # relative step sizes; a prox needs the same one for all weights
    metric[:-1] = metric[:-1].min()
    while True:
        for _ in range(MOST_SHRINKS):
            moved = _prox(parts, at.x - step * metric * at.gradient, step * metric[0, 0])
            change = moved - at.x
            limit = float(np.vdot(at.gradient, change)) + float(np.sum(change**2 / metric)) / (2.0 * step)
            if smooth.value(moved) <= at.value + limit + ROUND_OFF * abs(at.value):
                break
            step *= SHRINK
        else:
            yield Iterate(x[:-1], x[-1], exhausted=True)
            return
        yield Iterate(moved[:-1], moved[-1])
        momentum = 1.0 if np.sum((at.x - moved) * (moved - x) / metric) > 0 else momentum
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        at = smooth.at(moved + ((momentum - 1.0) / following) * (moved - x))
        x, momentum, step = moved, following, GROW * step
        if not np.isfinite(at.value):  # too far ahead, where the loss overflows
            at, momentum = smooth.at(moved), 1.0


def _prox(parts: NormalForm, x: Array, step: float) -> Array:
    """The prox of the term that is not smooth."""
    theta = x[:-1]
    if parts.separable is not None:
        theta = parts.separable.prox(theta, step)
    for piece in parts.weight_pieces:
        if not piece.is_smooth:
            theta = piece.source.prox(theta, step * piece.scale)
    return np.vstack([theta, x[-1:]])


SOLVER = Solver("row_fista", run, (ScoresStay(), OneProx()), coordinates=AS_GIVEN, by_passes=True, cheap_steps=True)
