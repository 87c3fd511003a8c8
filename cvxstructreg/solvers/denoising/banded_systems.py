"""The Newton systems of interior points for min 1/2 sum_i s_i (w_i - y_i)^2 + ||Kw||_1 with a banded K.

    [ S   K' ] [dw]   [ -f ]
    [ K  -H  ] [dt] = [ -g ]          S = diag(s), H = diag(h)

``NormalEquations`` eliminates dw and factorises K S^-1 K' + H by Cholesky. It is the faster one, but squares the
condition of K, which differences of high order do not bear at large strengths. ``SaddlePoint`` keeps both unknowns, in
an order in which the matrix has a band, and factorises it with pivots.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dgbtrf, dgbtrs, dpbtrf, dpbtrs

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property


class NormalEquations:
    """(K S^-1 K' + H) dt = g, by Cholesky, where f = 0; dw is not computed."""

    def __init__(self, K: Any, s: Array) -> None:
        shifted = _is_shifted(K)
        self.rows: Array | None = np.ascontiguousarray(K.data.reshape(K.shape[0], -1)) if shifted else None
        self.band = _product_of_shifted_rows(K, s) if shifted else _product(K, s)

    @cached_property
    def by_rows(self) -> Array:
        """The band with the entries of a column next to each other, for compiled loops."""
        return np.ascontiguousarray(self.band.T)

    @cached_property
    def workspace(self) -> Array:
        """Memory for the factor, for compiled loops."""
        return np.empty_like(self.by_rows)

    def factorise(self, h: Array) -> bool:
        """Take a new H; False if the matrix is not positive definite in floating point."""
        band = self.band.copy(order="F")
        band[0] += h
        self.factor, info = dpbtrf(band, lower=1, overwrite_ab=1)
        return bool(info == 0)

    def solve(self, g: Array) -> Array:
        """The step dt."""
        return np.asarray(dpbtrs(self.factor, g, lower=1)[0])


class SaddlePoint:
    """Both unknowns, w_j and t_i ordered by the columns that row i of K takes, by LU with pivots."""

    def __init__(self, K: Any, s: Array) -> None:
        m, n = K.shape
        self.at = positions(K)
        entries = K.tocoo()
        rows, columns = self.at[n + entries.row], self.at[entries.col]
        width = self.width = int(np.abs(rows - columns).max(initial=0))
        self.band = np.zeros((3 * width + 1, n + m), order="F")
        self.band[2 * width + rows - columns, columns] = entries.data
        self.band[2 * width + columns - rows, rows] = entries.data
        self.band[2 * width, self.at[:n]] = s
        self.n = n

    def factorise(self, h: Array) -> bool:
        """Take a new H; False if the matrix is singular."""
        band = self.band.copy(order="F")
        band[2 * self.width, self.at[self.n :]] = -h
        self.factor, self.pivots, info = dgbtrf(band, self.width, self.width, overwrite_ab=1)
        return bool(info == 0)

    def solve(self, f: Array, g: Array) -> tuple[Array, Array]:
        """(dw, dt) for the right side (-f, -g)."""
        right = np.empty(self.at.size)
        right[self.at] = np.concatenate([-f, -g])
        found = dgbtrs(self.factor, self.width, self.width, right, self.pivots, overwrite_b=1)[0][self.at]
        return found[: self.n], found[self.n :]


def _product(K: Any, s: Array) -> Array:
    """The lower band of K S^-1 K'."""
    product = (K @ sp.diags_array(1.0 / s) @ K.T).tocoo()
    below = product.row >= product.col
    rows, columns = product.row[below], product.col[below]
    band = np.zeros((int(np.max(rows - columns, initial=0)) + 1, K.shape[0]), order="F")
    band[rows - columns, columns] = product.data[below]
    return band


def _is_shifted(K: Any) -> bool:
    """Whether row i takes the columns i to i + width, for a fixed width."""
    m, width = K.shape[0], K.indptr[1] - K.indptr[0]
    if K.nnz != m * width or np.any(np.diff(K.indptr) != width):
        return False
    return bool(np.all(K.indices.reshape(m, width) == np.arange(m)[:, None] + np.arange(width)))


def _product_of_shifted_rows(K: Any, s: Array) -> Array:
    """The lower band of K S^-1 K', where row i of K takes the columns i to i + width."""
    m, width = K.shape[0], K.indptr[1]
    rows, inverse = K.data.reshape(m, width), 1.0 / s
    band = np.zeros((width, m), order="F")
    for offset in range(min(width, m)):
        for k in range(width - offset):
            shared = inverse[offset + k : m + k]
            band[offset, : m - offset] += rows[: m - offset, offset + k] * rows[offset:, k] * shared
    return band


def positions(K: Any) -> np.ndarray:
    """The places of all w_j and t_i: t_i is next to the middle of the columns of row i."""
    first, last = ends(K)
    places = np.concatenate([2 * np.arange(K.shape[1]), first + last])
    at = np.empty(places.size, dtype=np.int64)
    at[np.argsort(places, kind="stable")] = np.arange(places.size)
    return at


def ends(K: Any) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last column of each row of K, which has sorted indices and no empty row."""
    return K.indices[K.indptr[:-1]].astype(np.int64), K.indices[K.indptr[1:] - 1].astype(np.int64)
