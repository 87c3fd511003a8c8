"""The first penalty parameters of an augmented Lagrangian, from typical scores, weights and multipliers."""

from __future__ import annotations

import numpy as np

from cvxstructreg.forms.quadratic_form import squared_columns
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian
from cvxstructreg.solvers.general.newton_matrix import mean_curvature

#: sigma of a loss, in units of its multipliers over its scores.
SIGMA_OF_SCORES = 0.7
#: A multiple of z - o whose projection is the subgradient there.
STEEP = 1e12


def set_penalties(function: AugmentedLagrangian, factor: float = 1.0) -> float:
    """Set first sigmas, typical multipliers over typical arguments, times ``factor``; and what they are made from.

    Returns the mean pull on a weight at zero.
    """
    rows, k = function.rows, function.k
    all_squares, n_rows = squared_columns(rows), max(rows.shape[0], 1)
    squares = all_squares[: function.n_weights]
    zero = function.at(np.zeros((function.size, k)))
    pull, curvature = np.zeros((function.size, k)), 0.0
    for term, u, z in zip(function.smooth, zero.smooth_grads, zero.smooth_scores, strict=True):
        pull += term.rows.T @ u
        curvature += mean_curvature(term.hessians(z)) if term.of_scores else 0.0
    for rough, z in zip(function.rough, zero.images, strict=True):
        if rough.of_scores:
            if not z.size:  # no pairs
                continue
            size = float(np.mean(np.abs(rough.dual_set.offset))) or 1.0
            rough.typical = size
            rough.sigma = factor * SIGMA_OF_SCORES * (rough.dual_set.size or 1.0) / size
            steep = STEEP * (rough.dual_set.size or 1.0) / size
            pull += rough.adjoint(rough.dual_set.project(steep * (z - rough.dual_set.offset)))
            curvature += rough.sigma
    curvature = curvature or 1.0
    steepness = curvature * float(np.mean(squares)) or 1.0
    mean_pull = float(np.mean(np.abs(pull[: function.n_weights])))
    typical = mean_pull / steepness or 1.0
    filled = np.where(all_squares > 0, all_squares, float(np.mean(all_squares)) or 1.0)  # columns of zeros like others
    function.capacity, function.lengths = curvature * filled, np.sqrt(filled / n_rows)
    function.typical_score = typical * float(np.sqrt(np.mean(squares) / n_rows))
    for rough in function.rough:
        if not rough.of_scores:
            norm = float(np.sqrt(max(rough.rows.multiply(rough.rows).sum() / max(rough.rows.shape[0], 1), 1e-300)))
            size = rough.dual_set.size or 0.2 * typical * steepness
            rough.typical = typical * norm
            rough.sigma = factor * size / rough.typical
    return mean_pull
