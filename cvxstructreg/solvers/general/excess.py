"""What dual points that are not in balance, or not in their domains, cost in a certificate."""

from __future__ import annotations

import numpy as np

from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian


def excess(function: AugmentedLagrangian, gradient: Array, scale: float) -> float:
    """What the gradient costs in a certificate: relative to the L1 weights, or squared over the ridge."""
    slope = np.abs(gradient[: function.n_weights])
    part = function.parts.separable
    weights = np.zeros(slope.shape) if part is None else np.broadcast_to(part.weights, slope.shape)
    ridge = function.parts.ridge[:, None] * np.ones(slope.shape)
    by_l1 = float(np.max(slope[(weights > 0)] / weights[weights > 0], initial=0.0)) * scale
    held = (weights == 0) & (ridge > 0)
    return by_l1 + float(np.sum(slope[held] ** 2 / (4.0 * ridge[held])))


def into_domain(piece: Piece, u: Array) -> Array:
    """The dual point, moved into the domain of the conjugate if it is outside."""
    return u if piece.conj(u) < np.inf else piece.into_domain(u)
