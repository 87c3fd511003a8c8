"""A lower bound from strong convexity, for a penalty that has a prox but no conjugate.

With w+ = prox(w - t grad f(w)) the vector

    s = (w - w+) / t - grad f(w) + grad f(w+)

is a subgradient of the objective at w+. If the objective is mu-strongly convex, its minimum is at least
P(w+) - ||s||^2 / (2 mu). At the optimum s is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxstructreg.certificates.directions.free_directions import refit
from cvxstructreg.core.default_prox import NoProxError, prox_with_error
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: The error of the prox is assumed to be at most this many times its estimate.
SAFETY = 10.0


def strong_convexity_bound(problem: Problem, theta: Array, b: Array) -> float:
    """P(w+) - ||s||^2 / (2 mu); -inf if the problem does not have the required form.

    It requires smooth terms on the scores, a strongly convex quadratic part, and a single other term on the weights.
    """
    parts = problem.normal_form
    mu = 2.0 * float(parts.ridge.min())
    pieces = parts.weight_pieces
    if mu <= 0 or not parts.scores_are_smooth or parts.separable is not None or len(pieces) != 1:
        return -np.inf
    if pieces[0].K is not None or parts.function_norm is not None:
        return -np.inf
    none = np.zeros((theta.shape[0], 0))

    def gradient(theta: Array, b: Array) -> tuple[Array, Array]:
        theta, b, scores = refit(parts, theta, b, parts.model.scores(theta, b), none)
        return parts.model.adjoint(parts.smooth_score_grad(scores)) + parts.quadratic_grad(theta), b

    slope, _ = gradient(theta, b)
    steepness, size = float(np.linalg.norm(slope)), float(np.linalg.norm(theta))
    step = size / steepness if size > 0.0 and steepness > 0.0 else 1.0 / mu
    try:
        moved, error = prox_with_error(pieces[0].atom, theta - step * slope, step * pieces[0].scale)
    except NoProxError:
        return -np.inf
    slope_moved, b_moved = gradient(moved, b)
    subgradient = float(np.linalg.norm((theta - moved) / step - slope + slope_moved))
    length = size / step + steepness + float(np.linalg.norm(slope_moved))
    subgradient += SAFETY * error * length
    objective = problem.value_at(moved, b_moved)
    return objective - UNIT * abs(objective) - subgradient**2 / (2.0 * mu)
