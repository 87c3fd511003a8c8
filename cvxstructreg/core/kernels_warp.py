"""Compiled product of a sparse matrix with a dense one, four entries of a row at a time."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from cvxstructreg.core.atom import Array


@numba.njit(cache=True)
def one_plus_product(indptr: Any, indices: Any, data: Any, V: Any, out: Any) -> None:
    """out = I + M V for a square M in CSR form."""
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
