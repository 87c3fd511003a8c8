"""Dual points of pieces that are not norms: their cost is weighed against the cost of what they leave."""

from __future__ import annotations

import numpy as np

from cvxstructreg.certificates.score_dual import cost_of
from cvxstructreg.certificates.shifted_scores import stepped
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.momentum import Momentum
from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.runtime import deadline

#: An excess below this part of the L1 strengths is not worth a search.
NEGLIGIBLE = 1e-10
#: A substitute for a missing ridge during the search for dual points, relative to the ratio of dual to primal scale.
SMALL_RIDGE = 1e-3


def balanced_points(parts: NormalForm, theta: Array, left: Array, points: list[Array], sweeps: int) -> list[Array]:
    """Accelerated proximal gradient steps on the cost of the dual points plus the cost of the excess.

    The conjugate of a piece that is not a norm has a cost. It is weighed against the cost of the excess x, <theta, x> +
    ||x||^2 / (4 ridge), where L1 terms absorb any part of x within their strengths. The points must absorb ``left``.
    """
    pieces = parts.weight_pieces
    if len(pieces) == 1 and pieces[0].K is None and cost_of(pieces[0], left, 1.0) < np.inf:
        return [left]
    found = stepped(parts, theta, left)
    if found is not None:
        return found
    size = float(np.linalg.norm(left))
    if size == 0.0:  # nothing to absorb, or so little that its square underflows
        return [np.zeros_like(q) for q in points]
    least = float(parts.ridge.min())
    if least <= 0.0:  # use a small ridge; the remaining excess is distributed or scaled away later
        least = SMALL_RIDGE * size / (float(np.linalg.norm(theta)) or 1.0)
    if parts.piece_norm < np.finfo(float).tiny / UNIT:  # maps of zeros have no part in what is left
        return [piece.into_domain(q) for piece, q in zip(pieces, points, strict=True)]
    step = 2.0 * least / parts.piece_norm
    weights = 0.0 if parts.separable is None else parts.separable.weights
    trial, momentum = points, Momentum(points)
    for _ in range(sweeps):
        if deadline.passed():
            break
        taken = sum((piece.adjoint(q) for piece, q in zip(pieces, trial, strict=True)), np.zeros_like(left))
        excess = np.clip(-2.0 * least * theta, left - taken - weights, left - taken + weights)
        slope = theta + excess / (2.0 * least)
        moved = [
            piece.prox_conj(q + step * piece.forward(slope), step)[0] for piece, q in zip(pieces, trial, strict=True)
        ]
        change = sum(float(np.sum((m - t) ** 2)) for m, t in zip(moved, trial, strict=True))
        trial = momentum.ahead(trial, moved)
        if change <= (NEGLIGIBLE * size) ** 2:
            break
    return [piece.into_domain(q) for piece, q in zip(pieces, momentum.points, strict=True)]
