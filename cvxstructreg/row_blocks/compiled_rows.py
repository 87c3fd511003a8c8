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
def chosen_columns(data: Array, indices: Any, indptr: Any, position: Any, is_chosen: Any) -> Any:
    """The entries of chosen columns as CSR arrays, with ``position[column]`` as their columns.

    ``is_chosen`` has a 1 for each chosen column and is small, so that it stays in the fastest cache.
    """
    n, at, widest = len(indptr) - 1, np.uint64(0), 0
    for row in range(n):
        widest = max(widest, indptr[row + 1] - indptr[row])
    places = np.empty(widest + 1, dtype=np.uint64)  # of the chosen entries of a row
    starts = np.zeros(n + 1, dtype=np.int64)
    size = max(1000, len(data) // 16)
    values, columns = np.empty(size), np.empty(size, dtype=np.int32)
    for row in range(n):
        found = np.uint64(0)
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            places[found] = k  # without a branch: overwritten unless the column was chosen
            found += is_chosen[indices[k]]
        if np.int64(at + found) > len(values):
            values, columns = _longer(values, np.int64(at + found)), _longer(columns, np.int64(at + found))
        for i in range(found):
            k = places[i]
            values[at + i], columns[at + i] = data[k], position[indices[k]]
        at += found
        starts[row + 1] = at
    return values[:at], columns[:at], starts


@njit(cache=True, nogil=True)
def _longer(array: Any, least: int) -> Any:
    """A copy with room for more entries."""
    longer = np.empty(max(least, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True, nogil=True)
def pull(data: Array, indices: Any, indptr: Any, u: Array, d: int) -> Array:
    """X'u."""
    total = np.zeros(d)
    for row in range(len(indptr) - 1):
        factor = u[row]
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            total[indices[k]] += data[k] * factor
    return total


@njit(cache=True, nogil=True)
def half_gram(data: Array, indices: Any, indptr: Any, h: Array, d: int) -> Array:
    """A matrix G with G + G' = X'diag(h)X: each pair of entries of a row is added once, in either place."""
    total = np.zeros(d * d)
    for row in range(len(indptr) - 1):
        stop = np.uint64(indptr[row + 1])
        for k in range(np.uint64(indptr[row]), stop):
            scaled, place = h[row] * data[k], np.uint64(indices[k]) * np.uint64(d)
            total[place + indices[k]] -= 0.5 * scaled * data[k]
            for other in range(k, stop):
                total[place + indices[other]] += scaled * data[other]
    return total.reshape((d, d))
