"""Weights that are zero at the optimum, by the gap sphere.

If the gradient of the loss has the Lipschitz constant L, its conjugate is 1/L-strongly convex. So the optimal dual
point lies within sqrt(2 L gap) of any feasible dual point u, where the gap is that of u and any weights. A weight with
an L1 strength c_j is zero at the optimum if

    |x_j'u| + ||x_j|| sqrt(2 L gap) < c_j.

This remains true if group norms are added: their gradients have the signs of the weights, so a weight that is not zero
has |x_j'u| >= c_j at the optimum.

Reference: Ndiaye, Fercoq, Gramfort and Salmon (2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT


def applies(parts: NormalForm) -> bool:
    """Whether the sphere can be used: one output, one smooth loss, L1 without bounds, groups, diagonal quadratics."""
    if parts.shape[1] > 1 or len(parts.score_pieces) != 1 or parts.score_forms:
        return False
    if not all(isinstance(piece.K, Selection) and piece.atom.can("blocks") for piece in parts.weight_pieces):
        return False
    piece, part = parts.score_pieces[0], parts.separable
    if piece.K is not None or not piece.atom.can("lipschitz") or not piece.has_conjugate:
        return False
    diagonal = all(scaled.form.diagonal is not None for scaled in parts.weight_forms)
    return diagonal and part is not None and not part.bounded


def zeros(parts: NormalForm, objective: float, total: Array, pull: Array, points: Mapping[int, Array]) -> Any:
    """The weights that are zero at every optimum, given X'u for a dual point u of the loss that is in balance.

    ``points`` are dual points of the group norms, in their domains.
    """
    (piece,), part = parts.score_pieces, parts.separable
    assert part is not None
    c = np.broadcast_to(part.weights, parts.shape)[:, 0]
    left = pull + sum((p.adjoint(points[p.number]) for p in parts.weight_pieces), np.zeros(parts.shape))
    size, ridge = np.abs(left[:, 0]), parts.ridge
    firm = ridge == 0.0
    scale = float(np.min(np.divide(c[firm], size[firm], out=np.ones(firm.sum()), where=size[firm] > 0.0), initial=1.0))
    if not scale > 0.0:
        return np.zeros(len(c), dtype=bool)
    beyond = np.maximum(scale * size - c, 0.0)[~firm]
    bound = -piece.conj(scale * total) - 0.25 * float(np.sum(beyond**2 / ridge[~firm]))
    gap = objective - bound + UNIT * (abs(objective) + abs(bound))
    if not 0.0 <= gap < np.inf:
        return np.zeros(len(c), dtype=bool)
    radius = np.sqrt(2.0 * piece.scale * piece.atom.lipschitz() * gap) + UNIT * float(np.linalg.norm(total))
    return scale * np.abs(pull[:, 0]) + parts.column_norms * radius < c
