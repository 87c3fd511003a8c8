"""Compiled products of a sparse matrix with a dense one, and the matrix of a list of edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.compiled_clock import numba


@numba.njit(cache=True)
def one_plus_product(indptr: Any, indices: Any, data: Any, V: Any, out: Any) -> None:
    """out = I + M V for a square M in CSR format, processing four entries of a row at a time."""
    n, m = out.shape
    for i in range(n):
        row = out[i]
        row[:] = 0.0
        row[i] = 1.0
        at, end = indptr[i], indptr[i + 1]
        while at + 4 <= end:
            a, b, c, d = data[at], data[at + 1], data[at + 2], data[at + 3]
            p, q = V[indices[at]], V[indices[at + 1]]
            r, s = V[indices[at + 2]], V[indices[at + 3]]
            for j in range(m):
                row[j] += a * p[j] + b * q[j] + c * r[j] + d * s[j]
            at += 4
        while at < end:
            a, p = data[at], V[indices[at]]
            for j in range(m):
                row[j] += a * p[j]
            at += 1


def one_plus(matrix: Any, V: Array) -> Array:
    """I + M V in the precision of V."""
    out = np.empty_like(V, order="C")
    indptr, indices = (np.asarray(part, dtype=np.uint32) for part in (matrix.indptr, matrix.indices))
    one_plus_product(indptr, indices, matrix.data.astype(V.dtype, copy=False), np.ascontiguousarray(V), out)
    return out


@numba.njit(cache=True)
def edge_matrix(ends: Any, data: Any, scale: float, indptr: Any, indices: Any, values: Any) -> None:
    """scale * N'N in CSR format for N with two entries per row: the diagonal first, then an entry for each edge."""
    n, m = len(indptr) - 1, len(ends) // 2
    for at in range(2 * m):
        indptr[ends[at] + 1] += 1
    for i in range(n):
        indptr[i + 1] += indptr[i] + (1 if indptr[i + 1] > 0 else 0)
    filled = np.zeros(n, dtype=np.int32)
    for i in range(n):
        if indptr[i + 1] > indptr[i]:
            indices[indptr[i]] = i
            filled[i] = 1
    for e in range(m):
        i, j, a, b = ends[2 * e], ends[2 * e + 1], data[2 * e], data[2 * e + 1]
        values[indptr[i]] += scale * a * a
        values[indptr[j]] += scale * b * b
        for row, column in ((i, j), (j, i)):
            at = indptr[row] + filled[row]
            indices[at] = column
            values[at] = scale * a * b
            filled[row] += 1


def of_edges(N: Any, scale: float) -> Any:
    """scale * N'N for a sparse N with two entries per row; parallel edges have separate entries."""
    n = N.shape[1]
    ends = np.ascontiguousarray(N.indices, dtype=np.int32)
    touched = int(np.count_nonzero(np.bincount(ends, minlength=n)))
    indptr = np.zeros(n + 1, dtype=np.int32)
    indices, values = np.empty(ends.size + touched, dtype=np.int32), np.zeros(ends.size + touched)
    edge_matrix(ends, np.ascontiguousarray(N.data, dtype=float), scale, indptr, indices, values)
    return sp.csr_array((values, indices, indptr), shape=(n, n))
