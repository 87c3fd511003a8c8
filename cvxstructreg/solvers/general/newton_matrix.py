"""Parts of the Newton matrix of an augmented Lagrangian, with what stays the same from one step to the next.

The matrix has the shape (k, D, k, D) for D unknowns of each of k outputs. The terms differ by their rows: the dense
rows of data, of which few become active or inactive in one step, and the sparse rows of penalties, whose products have
one pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.numerics.arrays import Array

#: Updates of the matrix of active rows before it is computed anew, so that round-off does not build up.
MOST_UPDATES = 50


class ActiveRows:
    """R'diag(a) R for dense rows R and a of zeros and ones: rows that change are added or subtracted."""

    def __init__(self, rows: Array) -> None:
        self.rows, self.updates = rows, 0
        self.active = np.zeros(len(rows), dtype=bool)
        self.matrix = np.zeros((rows.shape[1], rows.shape[1]))

    def of(self, active: NDArray[np.bool_]) -> Array:
        """The matrix for these active rows; it must not be changed."""
        changed = np.flatnonzero(active != self.active)
        if changed.size == 0:
            return self.matrix
        count = int(np.count_nonzero(active))
        if self.updates >= MOST_UPDATES or changed.size >= count:
            part = self.rows[active]
            self.matrix, self.updates = part.T @ part, 0
        else:
            signs = np.where(active[changed], 1.0, -1.0)
            part = self.rows[changed]
            self.matrix, self.updates = self.matrix + (part * signs[:, None]).T @ part, self.updates + 1
        self.active = active.copy()
        return self.matrix


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
    """H[a, :, b, :] += rows'diag(h_ab) rows."""
    if hessians.ndim == 2:
        used = np.flatnonzero(hessians[:, 0])
        roots = rows[used] * np.sqrt(hessians[used])
        H[0, :, 0, :] += roots.T @ roots
        return
    k = hessians.shape[1]
    for a in range(k):
        for b in range(a + 1):
            weights = hessians[:, a, b]
            used = np.flatnonzero(weights)
            block = (rows[used] * weights[used, None]).T @ rows[used]
            H[a, :, b, :] += block
            if a != b:
                H[b, :, a, :] += block.T
