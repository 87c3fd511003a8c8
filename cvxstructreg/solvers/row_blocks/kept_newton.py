"""Truncated Newton steps whose rows stay where the blocks are: smooth losses plus smooth penalties, any outputs.

Each conjugate gradient step is a pass, which sends a direction out and brings a product with the Hessian back. The line
search costs no pass.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import SmoothWeights
from cvxstructreg.solvers.row_blocks.kept_smooth import KeptSmooth, Place, ScoresStay
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: The residual of a Newton system, relative to the gradient: at most ROUGH, and FORCING times the root of the decrease
#: of the gradient so far.
ROUGH, FORCING = 0.1, 0.5
#: A point is worth certifying if the last step promised this part of the allowed gap.
SMALL_DECREASE = 0.005


def run(problem: Problem, start: Iterate, tol: float, max_cg: int = 100) -> Iterator[Iterate]:
    """``max_cg`` limits the conjugate gradient steps for one Newton step."""
    smooth = KeptSmooth(problem)
    at = smooth.at(np.vstack([start.theta, start.b]))
    ridge, first, promised = smooth.parts.ridge, 0.0, np.inf
    while True:
        size = float(np.linalg.norm(at.gradient))
        first = max(first, size)
        allowed = tol * objective_scale(problem, at.value)
        proved = bool(ridge.min() > 0) and float(np.sum(at.gradient[:-1] ** 2 / ridge[:, None])) / 4.0 <= 0.5 * allowed
        yield Iterate(at.theta, at.b, promising=bool(proved or promised <= SMALL_DECREASE * allowed))
        accuracy = min(ROUGH, FORCING * float(np.sqrt(size / first))) if first > 0 else ROUGH
        step = _direction(smooth, at, accuracy * size, max_cg)
        promised = -0.5 * float(np.vdot(at.gradient, step))
        moved, share = smooth.searched(at, step)
        if not share or (moved.value >= at.value and not np.linalg.norm(moved.gradient) < 0.5 * size):
            yield Iterate(at.theta, at.b, exhausted=True)
            return
        at = moved
        deadline.check()


def _direction(smooth: KeptSmooth, at: Place, accuracy: float, max_cg: int) -> Array:
    """The Newton step by preconditioned conjugate gradients."""
    scaling = smooth.diagonal(at)
    x, r = np.zeros_like(at.x), -at.gradient
    z = r / scaling
    p, rho = z, float(np.vdot(r, z))
    for _ in range(max_cg):
        if not rho > 0.0:
            break
        product = smooth.bent(at, p)
        bend = float(np.vdot(p, product))
        if not bend > 0.0:  # a flat direction: the gradient is all that is known
            return x if x.any() else p
        x, r = x + (rho / bend) * p, r - (rho / bend) * product
        if np.linalg.norm(r) <= accuracy:
            break
        z = r / scaling
        before, rho = rho, float(np.vdot(r, z))
        p = z + (rho / before) * p
    return np.asarray(x)


SOLVER = Solver("row_newton", run, (ScoresStay(), SmoothWeights()), coordinates=AS_GIVEN, by_passes=True)
