"""Long chains with X = I and nothing but the squared loss and absolute differences.

    minimize  1/2 sum_i s_i (w_i - y_i)^2 + sum_i lam_i |w_i - w_(i+1)|

Such a problem is solved in a few passes over the data, so its parts are recognised, and its null point and certificate
are computed, in a few passes too. Below ``COMPILE_FROM`` weights the general way takes no longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Model
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT

#: The attribute of matrices that were made as those of a chain.
_KNOWN = "_is_chain"
#: Rows from which on compiled loops look at the data.
COMPILE_FROM = 50_000


@dataclass(frozen=True, eq=False)
class PlainChain:
    """The numbers of such a problem; a single s or lam belongs to all rows or edges."""

    s: Array
    y: Array
    lam: Array

    def mean(self) -> tuple[float, float, float]:
        """The best constant, the objective there, and the objective at zero."""
        from cvxstructreg.forms.chains.compiled_identity import BLOCK, block_moments

        found = np.empty((-(-len(self.y) // BLOCK), 4))
        block_moments(self.s, self.y, found)
        weight, mean, spread, square = found.T
        off = mean - mean[0]
        moved = float(weight @ off / weight.sum())
        return float(mean[0]) + moved, float(spread.sum() + 0.5 * weight @ (off - moved) ** 2), float(square.sum())

    def dual(self, x: Array) -> tuple[Array, Array]:
        """The dual points (u, q) of loss and edges, in balance, that belong to weights x."""
        from cvxstructreg.forms.chains.compiled_identity import chain_proof

        u, q = np.empty((len(x), 1)), np.empty((len(x) - 1, 1))
        chain_proof(self.s, self.lam, self.y, x, u[:, 0], q[:, 0], np.zeros((2, 5)))
        return u, q

    def proof(self, x: Array) -> tuple[float, float, float]:
        """The numbers of :meth:`bounds` at x and its :meth:`dual` points, which are not stored."""
        from cvxstructreg.forms.chains.compiled_identity import chain_proof

        sums, none = np.zeros((2, 5)), np.empty(0)
        chain_proof(self.s, self.lam, self.y, x, none, none, sums)
        return _bounds(sums)

    def bounds(self, x: Array, u: Array, q: Array) -> tuple[float, float, float] | None:
        """The objective at x, the dual objective at (u, q), and its possible round-off; None if that is infeasible."""
        from cvxstructreg.forms.chains.compiled_identity import chain_sums

        sums = np.zeros((2, 5))
        if not len(x) == len(u) == len(q) + 1 == len(self.y):  # compiled loops do not check
            return None
        if not chain_sums(self.s, self.lam, self.y, x, u, q, sums):
            return None
        return _bounds(sums)


def _bounds(sums: Array) -> tuple[float, float, float]:
    """The objective, the dual objective and its possible round-off from sums over a chain."""
    loss, jumps, cost, size, noise = map(float, sums.sum(axis=0))
    return loss + jumps, -cost, UNIT * (size + noise)


def plain_chain(parts: NormalForm) -> PlainChain | None:
    """The numbers of a long chain with X = I, no intercept and no other terms; None for other problems. Kept."""
    known = parts.__dict__
    if "_plain_chain" not in known:
        known["_plain_chain"] = _find(parts)
    found: PlainChain | None = known["_plain_chain"]
    return found


def _find(parts: NormalForm) -> PlainChain | None:
    n, pieces = parts.shape[0], parts.weight_pieces
    if n < COMPILE_FROM or parts.n_outputs > 1 or len(pieces) != 1 or len(parts.score_pieces) != 1:
        return None
    if parts.separable is not None or parts.weight_forms or parts.score_forms or parts.function_norm is not None:
        return None
    loss, edges, model = parts.score_pieces[0], pieces[0], parts.model
    if not (isinstance(loss.atom, Loss) and _is_squared(loss.atom) and loss.K is None):
        return None
    if model.intercept or not edges.atom.can("separable") or not is_chain(edges.K) or not is_identity(model):
        return None
    absolute = edges.atom.separable()
    s, lam = _short(loss.scale, loss.atom.sample_weight), _short(edges.scale, absolute.weights)
    if absolute.bounded or not s.min() > 0:
        return None
    return PlainChain(s, np.ascontiguousarray(loss.atom.y[:, 0]), lam)


def _short(scale: float, weights: Array) -> Array:
    """The scaled weights as a vector, of a single number if all are equal."""
    from cvxstructreg.forms.chains.compiled_identity import all_equal

    weights = np.ravel(weights)
    same = weights.size > 0 and all_equal(weights)
    return np.array([scale * float(weights[0])]) if same else np.asarray(scale * weights)


def _is_squared(loss: Loss) -> bool:
    """Whether the class of the loss itself says so: subclasses may have other values."""
    return bool(vars(type(loss)).get("has_squared_residuals", False))


def chain_differences(n: int) -> sp.csr_array:
    """The matrix whose row i is w_i - w_(i+1), known to be that of a chain.

    Examples
    --------
    >>> chain_differences(3).toarray()
    array([[ 1., -1.,  0.],
           [ 0.,  1., -1.]])
    """
    kind = np.int32 if 2 * n <= np.iinfo(np.int32).max else np.int64
    columns = np.repeat(np.arange(n, dtype=kind), 2)[1:-1]
    starts, values = 2 * np.arange(n, dtype=kind), np.tile([1.0, -1.0], n - 1)
    K = sp.csr_array((values, columns, starts), shape=(n - 1, n))
    K.__dict__[_KNOWN] = True
    return K


def is_chain(K: Any) -> bool:
    """Whether row i of K is w_i - w_(i+1), for all i."""
    if _KNOWN in getattr(K, "__dict__", ()):
        return True
    if not (sp.issparse(K) and K.format == "csr" and K.shape[0] == K.shape[1] - 1 and K.nnz == 2 * K.shape[0]):
        return False
    if K.shape[0] >= COMPILE_FROM:
        from cvxstructreg.forms.chains.compiled_identity import is_chain as compiled

        return bool(compiled(K.indptr, K.indices, K.data))
    pairs, values, nodes = K.indices.reshape(-1, 2), K.data.reshape(-1, 2), np.arange(K.shape[1])
    places = np.array_equal(pairs[:, 0], nodes[:-1]) and np.array_equal(pairs[:, 1], nodes[1:])
    regular = places and np.array_equal(K.indptr, 2 * nodes)
    return bool(regular and np.all(values[:, 0] == 1.0) and np.all(values[:, 1] == -1.0))


def is_identity(model: Model) -> bool:
    """Whether the design matrix is the identity; kept with the model."""
    known = model.__dict__
    if "_is_identity" not in known:
        known["_is_identity"] = _is_identity(model.design)
    return bool(known["_is_identity"])


def _is_identity(X: Any) -> bool:
    n, d = X.shape
    if n != d:
        return False
    if not sp.issparse(X):
        return bool(np.all(np.diagonal(X) == 1.0) and np.count_nonzero(X) == n)
    X = X.tocsr()
    if X.nnz != n:
        return False
    if n >= COMPILE_FROM:
        from cvxstructreg.forms.chains.compiled_identity import is_identity as compiled

        return bool(compiled(X.indptr, X.indices, X.data))
    places = np.array_equal(X.indices, np.arange(n)) and bool(np.all(np.diff(X.indptr) == 1))
    return places and bool(np.all(X.data == 1.0))
