"""The size of the numbers that the pieces of the weights add up to sum_t K_t'q_t."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array


def added_sizes(parts: NormalForm, points: list[Array]) -> Array:
    """sum_t |K_t|'|q_t| if all maps are sparse, else its upper bound ||q|| times the norms of the columns of all K."""
    if all(sp.issparse(piece.K) for piece in parts.weight_pieces):
        return sum(
            (_absolute(piece) @ np.abs(q) for piece, q in zip(parts.weight_pieces, points, strict=True)),
            np.zeros(parts.shape),
        )
    size = float(np.sqrt(sum(float(np.vdot(q, q)) for q in points)))
    return np.asarray(size * parts.piece_roots[:, None])


def _absolute(piece: Piece) -> sp.csr_array:
    """|K|', kept with the piece."""
    if "_absolute" not in piece.__dict__:
        K = sp.csr_array(piece.K)
        sizes = sp.csr_array((np.abs(K.data), K.indices, K.indptr), shape=K.shape)  # shares the places of the entries
        object.__setattr__(piece, "_absolute", sizes.T)
    found: sp.csr_array = piece.__dict__["_absolute"]
    return found
