"""Problems in one matrix of weights: losses of ``X @ W`` with several columns, and penalties that treat them alike.

Any other problem in matrix variables is solved in the vector of all entries, which is slower. The multinomial loss has
no such form, so that it needs this one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Term
from cvxstructreg.cvx.bounds import Bounds
from cvxstructreg.cvx.losses import moved_loss
from cvxstructreg.cvx.reading.layout import Layout
from cvxstructreg.cvx.reading.maps import Columns, Picks, matrix, piled, scaled
from cvxstructreg.cvx.reading.pieces import Piece
from cvxstructreg.groups import Groups
from cvxstructreg.losses import Absolute, Huber, Multinomial, Squared
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties import L1, Box, GroupLasso, Quadratic, Ridge, compose


class NotOneMatrixError(Exception):
    """The problem is not one in a single matrix of weights; the message says why."""


@dataclass(eq=False)
class MatrixForm:
    """The matrix variable W (d x k), the variable of its intercepts, the design and the terms."""

    W: Any
    b: Any = None
    designs: list[Any] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, int]:
        """d and k."""
        d, k = self.W.shape
        return int(d), int(k)

    @property
    def design(self) -> Any:
        """The rows of all losses."""
        return piled(self.designs)


def matrix_form(losses: list[Piece], penalties: list[Piece], layout: Layout, bounds: Bounds, left: Any) -> MatrixForm:
    """The problem in one matrix; raises NotOneMatrixError."""
    form = MatrixForm(_matrix_variable(losses, layout))
    form.b = _intercept_variable(form, losses, penalties, layout, bounds, left)
    for piece in losses:
        _add_loss(form, piece, len(losses) > 1)
    for piece in penalties:
        if np.any(piece.weights):
            form.terms.append(_penalty(form, piece))
    first = layout.first[form.W.id]
    lower, upper = (array[first : first + form.W.size] for array in (bounds.lower, bounds.upper))
    if np.any(np.isfinite(lower) | np.isfinite(upper)):
        form.terms.append(1.0 * Box(_alike(lower, form.shape[1]), _alike(upper, form.shape[1])))
    return form


def _matrix_variable(losses: list[Piece], layout: Layout) -> Any:
    matrices = [variable for variable in layout.variables if variable.ndim == 2 and variable.shape[1] > 1]
    if len(matrices) != 1:
        raise NotOneMatrixError(f"there are {len(matrices)} matrix variables")
    (W,) = matrices
    if any(len(p.affine.shape) != 2 or p.affine.shape[1] != W.shape[1] for p in losses):
        raise NotOneMatrixError("a loss does not act on one row of scores for each example")
    return W


def _intercept_variable(
    form: MatrixForm, losses: list[Piece], penalties: list[Piece], layout: Layout, bounds: Bounds, left: Any
) -> Any:
    """The variable that is added to all rows of scores, if there is one."""
    others = [variable for variable in layout.variables if variable.id != form.W.id]
    if not others:
        return None
    k = form.shape[1]
    if len(others) > 1 or others[0].size != k:
        raise NotOneMatrixError("there are variables besides the matrix and its intercepts")
    b, first = others[0], layout.first[others[0].id]
    used = [piece.affine.parts for piece in penalties] + [{v.id: v for e, _ in left.terms for v in e.variables()}]
    used += [{v.id: v for constraint in left.constraints for v in constraint.variables()}]
    if any(b.id in parts for parts in used) or np.any(bounds.given[first : first + k]):
        raise NotOneMatrixError("the intercepts have a penalty or a constraint")
    for piece in losses:
        part, n = piece.affine.parts.get(b.id), piece.affine.shape[0]
        if not isinstance(part, Picks) or part.coef is not None or np.any(part.at != np.repeat(np.arange(k), n)):
            raise NotOneMatrixError("the intercepts are not added to all rows")
    return b


def _add_loss(form: MatrixForm, piece: Piece, several: bool) -> None:
    part, k = piece.affine.parts.get(form.W.id), form.shape[1]
    if isinstance(part, Columns) and part.k == k:
        design = matrix(part.A)
    elif isinstance(part, Picks) and part.is_identity:
        design = sp.eye_array(form.shape[0], format="csr")
    else:
        raise NotOneMatrixError("a loss is not one of a product X @ W")
    start = sum(block.shape[0] for block in form.designs)
    rows = np.arange(start, start + design.shape[0]) if several else None
    form.designs.append(design)
    form.terms.append(_loss(piece, rows, k))


def _loss(piece: Piece, rows: Any, k: int) -> Term:
    offset = piece.affine.offset.reshape(piece.affine.shape, order="F")
    if piece.kind == "atom" and isinstance(piece.data, Loss):
        return float(piece.weights[0]) * moved_loss(piece.data, rows, offset)
    weights = piece.weights if piece.kind == "log_sum_exp" else _alike(piece.weights, k)
    scale = float(weights[0]) if np.all(weights == weights[0]) else 1.0
    given: dict[str, Any] = {"rows": rows, "sample_weight": weights / scale}
    if piece.kind == "log_sum_exp" and piece.data is not None:
        labels = piece.data.argmax(axis=1)
        if np.unique(labels[weights > 0]).size == k:
            return scale * Multinomial(labels, classes=range(k), offset=offset, **given)
    if piece.kind == "square":
        return 2.0 * scale * Squared(-offset, **given)
    if piece.kind == "huber":
        return 2.0 * scale * Huber(-offset, delta=piece.data, **given)
    if piece.kind == "kink" and np.all(piece.data == -piece.weights):
        return scale * Absolute(-offset, **given)
    raise NotOneMatrixError(f"a {piece.kind} is no loss of several columns")


def _alike(weights: Array, k: int) -> Array:
    """The weights of one column, if all columns have the same."""
    by_column = weights.reshape((-1, k), order="F")
    if np.any(by_column != by_column[:, :1]):
        raise NotOneMatrixError("the columns of the matrix are not treated alike")
    return by_column[:, 0]


def _penalty(form: MatrixForm, piece: Piece) -> Term:
    part, (d, k) = piece.affine.parts.get(form.W.id), form.shape
    if piece.kind == "atom" and isinstance(part, Picks) and part.is_identity and piece.affine.shape == (d, k):
        return float(piece.weights[0]) * piece.data
    if piece.kind == "norm" and isinstance(part, Picks):
        return _row_norms(piece, part, d, k)
    if piece.kind not in ("kink", "square"):
        raise NotOneMatrixError(f"a {piece.kind} does not treat the columns alike")
    squared = piece.kind == "square"
    if isinstance(part, Picks):
        sizes = part.factors**2 if squared else np.abs(part.factors)
        weights = _alike(np.bincount(part.at, piece.weights * sizes, d * k).astype(float), k)
        scale = float(weights[0]) if np.all(weights == weights[0]) else 1.0
        own = None if scale != 1.0 or np.all(weights == 1.0) else weights
        return scale * (Ridge(weights=own) if squared else L1(weights=own))
    if not isinstance(part, Columns) or part.k != k:
        raise NotOneMatrixError("a penalty is not one of a product K @ W")
    weights = _alike(piece.weights, k)
    K = sp.csr_array(matrix(part.A))
    return 1.0 * (Quadratic(factor=matrix(scaled(K, np.sqrt(weights)))) if squared else compose(L1(weights=weights), K))


def _row_norms(piece: Piece, part: Picks, d: int, k: int) -> Term:
    """Norms of groups of whole rows."""
    size = int(piece.data)
    if size % k or np.any(np.abs(part.factors) != 1.0):
        raise NotOneMatrixError("a norm is not one of whole rows")
    groups = []
    for block in part.at.reshape(-1, size):
        rows = np.unique(block % d)
        if rows.size * k != size or np.unique(block).size != size:
            raise NotOneMatrixError("a norm is not one of whole rows")
        groups.append(rows)
    kept = piece.weights > 0
    chosen = [group for group, keep in zip(groups, kept, strict=True) if keep]
    return 1.0 * GroupLasso(Groups(chosen, n_features=d, weights=piece.weights[kept]))
