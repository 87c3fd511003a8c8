"""Loops over the rows of a CSR block: some of its columns, and the matrix of their products.

``indices`` are unsigned because numba tests a signed index for negative values at each access. Import this module only
where it is called, because it imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.compiled_clock import njit


@njit(cache=True, nogil=True)
def chosen_columns(data: Array, indices: Any, indptr: Any, position: Any) -> Any:
    """The entries with ``position[column] >= 0`` as CSR arrays, with these positions as their columns."""
    n = len(indptr) - 1
    starts = np.zeros(n + 1, dtype=np.int64)
    for row in range(n):
        count = 0
        for k in range(indptr[row], indptr[row + 1]):
            count += position[indices[k]] >= 0
        starts[row + 1] = starts[row] + count
    values, columns = np.empty(starts[n] + 1), np.empty(starts[n] + 1, dtype=np.int32)  # one more, for the last writes
    at = 0
    for k in range(indptr[0], indptr[n]):
        column = position[indices[k]]
        values[at], columns[at] = data[k], column  # without a branch: overwritten unless the column was chosen
        at += column >= 0
    return values[: starts[n]], columns[: starts[n]], starts


@njit(cache=True, nogil=True)
def half_gram(data: Array, indices: Any, indptr: Any, h: Array, d: int) -> Array:
    """A matrix G with G + G' = X'diag(h)X: each pair of entries of a row is added once, in either place."""
    total = np.zeros((d, d))
    for row in range(len(indptr) - 1):
        stop = indptr[row + 1]
        for k in range(indptr[row], stop):
            scaled, place = h[row] * data[k], total[indices[k]]
            place[indices[k]] += 0.5 * scaled * data[k]
            for other in range(k + 1, stop):
                place[indices[other]] += scaled * data[other]
    return total
