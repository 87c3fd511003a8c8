"""Parts of the Newton matrix of an augmented Lagrangian, with what stays the same from one step to the next.

The matrix has the shape (k, D, k, D) for D unknowns of each of k outputs. The terms differ by their rows: the dense
rows of data, of which few become active or inactive in one step, and the sparse rows of penalties, whose products have
one pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, ssyrk

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.general.dual_sets import Balls

if TYPE_CHECKING:
    from cvxstructreg.solvers.general.rough_term import RoughTerm

#: Updates of the matrix of active rows before it is computed anew, so that round-off does not build up.
MOST_UPDATES = 50
#: Rows without weight are left out if at least this part of all rows is.
FEW = 0.9
#: The time for one pair of columns of a block, in entries of a dense product, and the most pairs, in entries of H.
PAIR_COST, MOST_PAIRS = 125.0, 4.0
#: A sum below this part of its terms is round-off.
EQUAL = 1e-14


class ActiveRows:
    """R'diag(a) R for dense rows R and a of zeros and ones: rows that change are added or subtracted in place.

    Only the triangle above the diagonal is kept, in the precision of R.

    Examples
    --------
    >>> active = ActiveRows(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> active.of(np.array([True, False]))
    array([[1., 2.],
           [0., 4.]])
    """

    def __init__(self, rows: Array) -> None:
        self.rows, self.updates = rows, 0
        self.active = np.zeros(len(rows), dtype=bool)
        # below the diagonal, as LAPACK has it
        self.triangle = np.zeros((rows.shape[1], rows.shape[1]), dtype=rows.dtype, order="F")

    def of(self, active: NDArray[np.bool_]) -> Array:
        """The matrix for these active rows, zero below the diagonal, until the next call; it must not be changed."""
        changed = active != self.active
        n_changed = int(np.count_nonzero(changed))
        if n_changed and (self.updates >= MOST_UPDATES or n_changed >= np.count_nonzero(active)):
            self.updates = 0
            self.triangle.fill(0.0)
            self._add(active, 1.0)
        elif n_changed:
            self.updates += 1
            self._add(changed & active, 1.0)
            self._add(changed & ~active, -1.0)
        self.active = active.copy()
        return self.triangle.T

    def _add(self, which: NDArray[np.bool_], sign: float) -> None:
        """Add the products of some rows, times the sign."""
        part = self.rows[which]
        if len(part):
            product = ssyrk if self.triangle.dtype == np.float32 else dsyrk
            self.triangle = product(sign, part.T, beta=1.0, c=self.triangle, lower=1, overwrite_c=1)


class SparseRows:
    """K'diag(a) K for sparse rows K: sums over the products of each row, at the places of one pattern."""

    def __init__(self, K: Any) -> None:
        self.size = K.shape[1]
        lengths = np.diff(K.indptr)
        row = np.repeat(np.arange(K.shape[0]), lengths)
        # each entry of a row, paired with all entries of this row
        partners = np.repeat(lengths, lengths)
        first = np.repeat(np.arange(K.nnz), partners)
        within = np.arange(first.size) - np.repeat(np.cumsum(partners) - partners, partners)
        second = np.repeat(K.indptr[row], partners) + within
        places = K.indices[first].astype(np.int64) * self.size + K.indices[second]
        self.rows, self.products = row[first], K.data[first] * K.data[second]
        pattern, self.position = np.unique(places, return_inverse=True)
        self.at = pattern // self.size, pattern % self.size

    def add_to(self, H: Array, weights: Array, output: int) -> None:
        """H[output, :, output, :] += K'diag(weights) K."""
        sums = np.bincount(self.position, self.products * weights[self.rows], minlength=len(self.at[0]))
        H[output, self.at[0], output, self.at[1]] += sums


@dataclass(frozen=True, eq=False)
class CoupledHessian:
    """diag(D) - L L' of the scores of one output whose rows are coupled."""

    diagonal: Array
    factor: Array

    def times(self, dz: Array) -> Array:
        """The product with a change of the scores."""
        return np.asarray(self.diagonal * dz - self.factor @ (self.factor.T @ dz))

    def add_to(self, H: Array, rows: Array) -> None:
        """H[0, :, 0, :] += rows'(diag(D) - L L') rows."""
        add_row_hessians(H, rows, self.diagonal)
        pulled = self.factor.T @ rows
        H[0, :, 0, :] -= pulled.T @ pulled


#: Hessians of rows, or of coupled rows.
Hessians = Array | CoupledHessian


def mean_curvature(hessians: Hessians) -> float:
    """The mean of the diagonal."""
    if isinstance(hessians, CoupledHessian):
        return float(np.mean(hessians.diagonal))
    return float(np.mean(hessians if hessians.ndim == 2 else np.einsum("iaa->ia", hessians)))


def bent(hessians: Hessians, dz: Array) -> Array:
    """The Hessians times a change of the scores."""
    if isinstance(hessians, CoupledHessian):
        return hessians.times(dz)
    return np.asarray(hessians * dz if hessians.ndim == 2 else np.einsum("iab,ib->ia", hessians, dz))


def add_row_hessians(H: Array, rows: Array, hessians: Array) -> None:
    """H[a, :, b, :] += rows'diag(h_ab) rows, which is symmetric.

    If every row of every h sums to zero (the loss sees only differences between outputs), the diagonal blocks are minus
    the sums of the others.
    """
    if hessians.ndim == 2:
        H[0, :, 0, :] += weighted_gram(rows, hessians[:, 0])
        return
    k = hessians.shape[1]
    differences = bool(np.max(np.abs(hessians.sum(axis=2)), initial=0.0) <= EQUAL * np.max(hessians, initial=0.0))
    for a in range(k):
        for b in range(a):
            if not hessians[:, a, b].any():
                continue
            block = weighted_gram(rows, hessians[:, a, b])
            H[a, :, b, :] += block
            H[b, :, a, :] += block
            if differences:
                H[a, :, a, :] -= block
                H[b, :, b, :] -= block
        if not differences:
            H[a, :, a, :] += weighted_gram(rows, hessians[:, a, a])


def weighted_gram(rows: Array, weights: Array) -> Array:
    """rows'diag(weights) rows; half the work if all weights have the same sign."""
    used = np.flatnonzero(weights)
    if used.size < FEW * len(weights):
        rows, weights = rows[used], weights[used]
    if np.all(weights >= 0.0):
        roots = rows * np.sqrt(weights)[:, None]
        return roots.T @ roots
    if np.all(weights <= 0.0):
        roots = rows * np.sqrt(-weights)[:, None]
        return -(roots.T @ roots)
    return (rows * weights[:, None]).T @ rows


def add_rough(H: Array, term: RoughTerm, argument: Array, is_first: bool = False) -> None:
    """Add sigma K'JK, J the derivative of the projection; the first term of one output overwrites H if it can."""
    diagonal, units = term.dual_set.slopes(argument)
    k = len(H)
    if term.of_scores and units is not None:  # without the negative part, which is seldom large
        add_row_hessians(H, term.rows, (term.sigma * diagonal)[:, :, None] * np.eye(k))
        return
    if term.of_scores:
        known = term.single_rows if H.dtype == np.float32 else term.active_rows
        matrices = [active.of(diagonal[:, a] > 0) for a, active in enumerate(known)]
        if is_first and k == 1:
            np.multiply(matrices[0], term.sigma, out=H[0, :, 0, :])
        else:
            _add_active(H, term.sigma, matrices, term.centred)
        return
    for a in range(k):
        term.sparse_rows.add_to(H, term.sigma * diagonal[:, a], a)
    if units is not None and units.any():
        assert isinstance(term.dual_set, Balls)
        _subtract_units(H, term, np.sqrt(term.sigma) * units, len(term.dual_set.radii))


def _add_active(H: Array, sigma: float, matrices: list[Array], is_centred: bool) -> None:
    """Add sigma times the matrix of each output, given above the diagonal, to its block above the diagonal of H.

    For centred scores, add them to all blocks by C's rows.
    """
    if not is_centred:
        for a, matrix in enumerate(matrices):
            H[a, :, a, :] += sigma * matrix
        return
    k, D = H.shape[:2]
    C = np.eye(k) - 1.0 / k
    shares = np.einsum("ab,ac->bca", C, C).reshape(k * k, k)
    whole = np.stack([matrix + np.triu(matrix, 1).T for matrix in matrices])
    blocks = (sigma * shares) @ whole.reshape(k, D * D)
    H += blocks.reshape(k, k, D, D).transpose(0, 2, 1, 3)


def _subtract_units(H: Array, term: RoughTerm, roots: Array, n_blocks: int) -> None:
    """Subtract K'vv'K for the part v of ``roots`` in each block."""
    k, D = H.shape[:2]
    if term.block_pairs is not None:
        term.block_pairs.subtract_from(H, roots)
        return
    row, place = term.block_places
    used = np.zeros(n_blocks, dtype=bool)
    U = np.empty((k, D, n_blocks))
    for a in range(k):
        weights = term.rows.data * roots[row, a]
        U[a] = np.bincount(place, weights, minlength=D * n_blocks).reshape(D, n_blocks)
        used |= U[a].any(axis=0)
    flat = U[:, :, used].reshape(k * D, -1)
    H -= (flat @ flat.T).reshape(H.shape)


class BlockPairs:
    """Sums of K'v v'K over blocks with few columns, at the places of one pattern."""

    def __init__(self, K: Any, row: Array, place: Array, n_blocks: int) -> None:
        self.data, self.row = K.data, row
        slots, self.slot = np.unique(place, return_inverse=True)  # a column of a block
        order = np.argsort(slots % n_blocks, kind="stable")  # block by block
        columns, lengths = slots[order] // n_blocks, np.bincount(slots % n_blocks, minlength=n_blocks)
        partners = np.repeat(lengths, lengths)
        first = np.repeat(np.arange(order.size), partners)
        within = np.arange(first.size) - np.repeat(np.cumsum(partners) - partners, partners)
        second = np.repeat(np.repeat(np.cumsum(lengths) - lengths, lengths), partners) + within
        pattern, self.position = np.unique(columns[first] * K.shape[1] + columns[second], return_inverse=True)
        self.pairs, self.at = (order[first], order[second]), (pattern // K.shape[1], pattern % K.shape[1])

    def subtract_from(self, H: Array, roots: Array) -> None:
        """H -= the sums, with v the part of ``roots`` in each block."""
        U = [np.bincount(self.slot, self.data * roots[self.row, a]) for a in range(roots.shape[1])]
        for a, left in enumerate(U):
            for b, right in enumerate(U):
                sums = np.bincount(self.position, left[self.pairs[0]] * right[self.pairs[1]])
                H[a, self.at[0], b, self.at[1]] -= sums


def block_pairs(K: Any, row: Array, place: Array, n_blocks: int) -> BlockPairs | None:
    """The pairs of columns in the same block; None if products of dense matrices are cheaper."""
    counts = np.bincount(np.unique(place) % n_blocks, minlength=n_blocks).astype(float)
    squared = float(K.shape[1]) ** 2
    few = counts @ counts <= MOST_PAIRS * squared and PAIR_COST * (counts @ counts) <= n_blocks * squared
    return BlockPairs(K, row, place, n_blocks) if few else None
