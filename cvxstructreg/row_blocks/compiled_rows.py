"""Loops over the rows of a CSR block: some of its columns, and the matrix of their products.

``indices`` are unsigned because numba tests a signed index for negative values at each access. Import this module only
where it is called, because it imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.compiled_checksum import add_stripes
from cvxstructreg.runtime.compiled_clock import njit

#: One of so many rows tells how many entries are chosen in all.
SPREAD = 50
#: Entries of rows that are verified together, so that they are in a fast cache when they are used.
AT_ONCE = 4096


@njit(cache=True, nogil=True)
def expected_entries(indices: Any, indptr: Any, is_chosen: Any) -> int:
    """The number of entries in chosen columns if all rows are like a few of them, and some more."""
    n, seen, found, last = len(indptr) - 1, 1, 0, len(is_chosen) - 1
    for row in range(0, n, SPREAD):
        seen += 1
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            found += is_chosen[min(np.int64(indices[k]), last)]  # indices may be damaged
    return 1000 + int(1.2 * found * n / seen)


@njit(cache=True, nogil=True)
def chosen_columns(matrix: Any, position: Any, is_chosen: Any, values: Any, columns: Any, starts: Any) -> int:
    """Fill the CSR arrays of the chosen columns, with ``position[column]`` as columns; return the rows that had room.

    ``is_chosen`` has a 1 for each chosen column and is small, so that it stays in the fastest cache.
    """
    n = len(matrix[2]) - 1
    return _chosen(matrix, position, is_chosen, values, columns, starts, 0, n)


@njit(cache=True, nogil=True)
def verified_columns(
    matrix: Any, position: Any, is_chosen: Any, values: Any, columns: Any, starts: Any, check: Any
) -> int:
    """The same, with the rows added to their checksums as they are used; -1 if an index is too large."""
    indptr = matrix[2]
    n, row = len(indptr) - 1, 0
    while row < n:
        stop = _verified_rows(matrix, check, row, len(position))
        if stop < 0:
            return -1
        done = _chosen(matrix, position, is_chosen, values, columns, starts, row, stop)
        if done < stop:
            return done
        row = stop
    return n


@njit(cache=True, nogil=True)
def _chosen(
    matrix: Any, position: Any, is_chosen: Any, values: Any, columns: Any, starts: Any, begin: int, end: int
) -> int:
    data, indices, indptr = matrix
    at, widest = np.uint64(starts[begin]), 0
    for row in range(begin, end):
        widest = max(widest, indptr[row + 1] - indptr[row])
    places = np.empty(widest + 1, dtype=np.uint32)  # of the chosen entries of a row, from its first entry on
    for row in range(begin, end):
        found, first = np.uint64(0), np.uint64(indptr[row])
        for k in range(np.uint64(indptr[row + 1]) - first):
            places[found] = np.uint32(k)  # without a branch: overwritten unless the column was chosen
            found += np.uint64(is_chosen[indices[first + k]])
        if np.int64(at + found) > len(values):
            return row
        for i in range(found):
            place = first + np.uint64(places[i])
            values[at + i], columns[at + i] = data[place], position[indices[place]]
        at += found
        starts[row + 1] = at
    return end


@njit(cache=True, nogil=True)
def _verified_rows(matrix: Any, check: Any, row: int, d: int) -> int:
    """Add some rows from ``row`` on to their checksums; return the row after them, or -1 if an index is too large."""
    _, indices, indptr = matrix
    words, more_words, keys, state, more_state, per_word = check
    stop, first = row + 1, indptr[row]
    while stop < len(indptr) - 1 and indptr[stop + 1] - first <= AT_ONCE:
        stop += 1
    last = indptr[stop]
    add_stripes(words, keys, state, last)
    add_stripes(more_words, keys, more_state, (last + per_word - 1) // per_word)
    some, largest = indices[first:last], np.int64(0)
    for k in range(len(some)):
        largest = max(largest, np.int64(some[k]))
    return stop if largest < d else -1


@njit(cache=True, nogil=True)
def pull(data: Array, indices: Any, indptr: Any, u: Array, d: int) -> Array:
    """X'u for rows without duplicate indices: the sums of four entries are loaded before one of them is stored."""
    total = np.zeros(d)
    _add_pull(data, indices, indptr, u, total, 0, len(indptr) - 1)
    return total


@njit(cache=True, nogil=True)
def verified_pull(matrix: Any, u: Array, total: Array, check: Any) -> bool:
    """Add X'u to the total, and the rows to their checksums as they are used; False if an index is too large."""
    data, indices, indptr = matrix
    n, row = len(indptr) - 1, 0
    while row < n:
        stop = _verified_rows(matrix, check, row, len(total))
        if stop < 0:
            return False
        _add_pull(data, indices, indptr, u, total, row, stop)
        row = stop
    return True


@njit(cache=True, nogil=True)
def _add_pull(data: Array, indices: Any, indptr: Any, u: Array, total: Array, begin: int, end: int) -> None:
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for row in range(begin, end):
        factor, k, stop = u[row], np.uint64(indptr[row]), np.uint64(indptr[row + 1])
        while k + four <= stop:
            i0, i1, i2, i3 = indices[k], indices[k + one], indices[k + two], indices[k + three]
            t0, t1 = total[i0] + data[k] * factor, total[i1] + data[k + one] * factor
            t2, t3 = total[i2] + data[k + two] * factor, total[i3] + data[k + three] * factor
            total[i0], total[i1], total[i2], total[i3] = t0, t1, t2, t3
            k += four
        while k < stop:
            total[indices[k]] += data[k] * factor
            k += one


@njit(cache=True, nogil=True)
def gram(data: Array, indices: Any, indptr: Any, h: Array, d: int) -> Array:
    """X'diag(h)X: each pair of entries of a row is added once, in either place, and both places are added at the end.

    Four entries are multiplied with all later ones at a time, since many short loops would cost more than the products.
    """
    total = np.zeros(d * d)
    one, two, three, four, width = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4), np.uint64(d)
    for row in range(len(indptr) - 1):
        k, stop = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
        while k + four <= stop:
            v0, v1, v2, v3 = data[k], data[k + one], data[k + two], data[k + three]
            j0, j1 = np.uint64(indices[k]), np.uint64(indices[k + one])
            j2, j3 = np.uint64(indices[k + two]), np.uint64(indices[k + three])
            p0, p1, p2, p3 = j0 * width, j1 * width, j2 * width, j3 * width
            s0, s1, s2, s3 = h[row] * v0, h[row] * v1, h[row] * v2, h[row] * v3
            total[p0 + j0] += s0 * v0
            total[p0 + j1] += s0 * v1
            total[p0 + j2] += s0 * v2
            total[p0 + j3] += s0 * v3
            total[p1 + j1] += s1 * v1
            total[p1 + j2] += s1 * v2
            total[p1 + j3] += s1 * v3
            total[p2 + j2] += s2 * v2
            total[p2 + j3] += s2 * v3
            total[p3 + j3] += s3 * v3
            k += four
            for other in range(k, stop):
                v, j = data[other], np.uint64(indices[other])
                total[p0 + j] += s0 * v
                total[p1 + j] += s1 * v
                total[p2 + j] += s2 * v
                total[p3 + j] += s3 * v
        while k < stop:
            scaled, place = h[row] * data[k], np.uint64(indices[k]) * width
            total[place + np.uint64(indices[k])] += scaled * data[k]
            k += one
            for other in range(k, stop):
                total[place + np.uint64(indices[other])] += scaled * data[other]
    G = total.reshape((d, d))
    for column in range(d):
        for before in range(column):
            G[column, before] = G[before, column] = G[column, before] + G[before, column]
    return G


@njit(cache=True, nogil=True)
def scaled_rows(data: Array, indices: Any, indptr: Any, factors: Array, first: int, out: Array) -> None:
    """Write the rows from ``first`` on, multiplied by their factors, to a dense matrix."""
    out[:] = 0.0
    for i in range(len(out)):
        for k in range(np.uint64(indptr[first + i]), np.uint64(indptr[first + i + 1])):
            out[i, indices[k]] = factors[first + i] * data[k]
