"""Penalties from the pieces of an objective: known functions of linear maps of the variables, without offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Term
from cvxstructreg.cvx.reading.layout import Layout
from cvxstructreg.cvx.reading.maps import Picks, matrix, scaled
from cvxstructreg.cvx.reading.pieces import Piece
from cvxstructreg.cvx.reading.refusal import UnrecognisedError, shown
from cvxstructreg.expressions.recognition import Found
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties import Quadratic, Ridge, compose

#: Pieces that are penalties if their argument has no offset.
KINDS = {"kink", "square", "huber", "norm", "quadratic", "atom"}


def is_penalty(piece: Piece) -> bool:
    """Whether the piece is a penalty: no offset, and kinks that are absolute values."""
    if piece.kind not in KINDS or np.any(piece.affine.offset):
        return False
    if piece.kind == "atom":
        return not isinstance(piece.data, Loss)
    return piece.kind != "kink" or bool(np.all(piece.data == -piece.weights))


def penalty_terms(pieces: list[Piece], layout: Layout, columns: Any) -> list[Term]:
    """The penalties as terms on the weights, which are the ``columns`` of the vector of all entries."""
    found = Found(int(columns.size))
    terms = []
    for kind, parts in _by_kind(pieces).items():
        if kind == "kink":
            found.absolute.append(_weighted(parts, layout, columns))
        elif kind == "huber":
            K, costs = _weighted(parts, layout, columns)
            ends = np.concatenate([np.full(part.affine.size, part.data) for part in parts])
            found.huber.append((K, costs, ends))
        elif kind == "norm":
            _add_norms(found, parts, layout, columns)
        elif kind == "square":
            terms.append(_squares(*_weighted(parts, layout, columns)))
        elif kind == "quadratic":
            terms += [_quadratic(part, layout, columns) for part in parts]
        else:
            for part in parts:
                terms += _atom(part, layout, columns, found)
    return [term for term in terms + found.terms() if term.scale > 0]


def _by_kind(pieces: list[Piece]) -> dict[str, list[Piece]]:
    groups: dict[str, list[Piece]] = {}
    for piece in pieces:
        if np.any(piece.weights):
            groups.setdefault(piece.kind, []).append(piece)
    return groups


def _weighted(parts: list[Piece], layout: Layout, columns: Any) -> tuple[Any, Array]:
    """The rows of all pieces with positive weights."""
    K = _of_columns(layout.rows([part.affine for part in parts]), columns)
    costs = np.concatenate([part.weights for part in parts])
    return (K, costs) if np.all(costs > 0) else (sp.csr_array(K[costs > 0]), costs[costs > 0])


def _of_columns(K: Any, columns: Any) -> Any:
    return K if columns.size == K.shape[1] else sp.csr_array(sp.csc_array(K)[:, columns])


def _squares(K: Any, costs: Array) -> Term:
    K.eliminate_zeros()
    if np.all(np.diff(K.indptr) <= 1):
        weights = np.asarray(K.multiply(K).T @ costs).ravel()
        same = bool(np.all(weights == weights[0]))
        return float(weights[0]) * Ridge() if same else 1.0 * Ridge(weights=weights)
    if np.all(costs == costs[0]):
        return float(costs[0]) * Quadratic(factor=K)
    return 1.0 * Quadratic(factor=matrix(scaled(K, np.sqrt(costs))))


def _add_norms(found: Found, parts: list[Piece], layout: Layout, columns: Any) -> None:
    """Norms of single entries are absolute values."""
    sizes = np.concatenate([np.full(part.weights.size, part.data) for part in parts])
    costs = np.concatenate([part.weights for part in parts])
    K = _of_columns(layout.rows([part.affine for part in parts]), columns)
    single = sizes == 1
    if single.any():
        found.absolute.append((sp.csr_array(K[np.repeat(single, sizes)]), costs[single]))
    if not single.all():
        found.norms.append((sp.csr_array(K[np.repeat(~single, sizes)]), sizes[~single], costs[~single]))


def _quadratic(piece: Piece, layout: Layout, columns: Any) -> Term:
    (part,) = piece.affine.parts.values() if len(piece.affine.parts) == 1 else (None,)
    scale, P = float(piece.weights[0]), piece.data
    plain = isinstance(part, Picks) and part.is_identity and part.width == columns.size == layout.size
    if not plain:
        K = _of_columns(sp.csr_array(layout.matrix(piece.affine)), columns)
        P = K.T @ (P @ K)
        P = (P + P.T) / 2.0
    try:
        return scale * Quadratic(matrix=P)
    except ValueError as error:
        raise UnrecognisedError(f"{shown(piece.source)} is not convex: {error}") from error


def _atom(piece: Piece, layout: Layout, columns: Any, found: Found) -> list[Term]:
    """An atom of this library: itself if it acts on all weights, else its known parts after a linear map."""
    scale, atom = float(piece.weights[0]), piece.data
    if len(piece.affine.shape) == 2 and piece.affine.shape[1] > 1:
        raise UnrecognisedError(f"{atom!r} acts on a matrix, which needs a loss of one product X @ W of that matrix")
    K = _of_columns(layout.rows([piece.affine]), columns)
    K.eliminate_zeros()
    if _is_identity(K):
        return [scale * atom]
    if atom.can("separable"):  # its bounds were taken before
        weights = np.broadcast_to(atom.separable().weights, (K.shape[0], 1))[:, 0]
        found.absolute.append((K[weights > 0], scale * weights[weights > 0]))
        return []
    outer, E = atom.split() if atom.can("split") else (atom, None)
    if outer.can("blocks"):
        indptr, costs = outer.blocks()
        stacked = K if E is None else sp.csr_array(sp.csr_array(E @ sp.eye_array(E.shape[1], format="csr")) @ K)
        found.norms.append((stacked, np.diff(indptr), scale * costs))
        return []
    try:
        return [scale * compose(atom, K)]
    except (TypeError, ValueError) as error:
        raise UnrecognisedError(f"{atom!r} of {shown(piece.source)}: {error}") from error


def _is_identity(K: Any) -> bool:
    square = K.shape[0] == K.shape[1] == K.nnz
    return bool(square and np.array_equal(K.indices, np.arange(K.nnz)) and np.all(K.data == 1.0))
