"""Prove that a matrix is nearly a sum of few squares, and so nearly positive semidefinite: smooth kernels.

    gram = L'L + R,   L of r rows,   |v'Rv| <= ||R||_F v'v,   so   gram + s I >= 0  for  s >= ||R||_F

The rows of L are those of a Cholesky factorisation with pivots, in blocks. A block takes some rows at random, with
probabilities proportional to what is left of their diagonal entries, and of them those with large pivots (Chen,
Epperly, Tropp and Webber 2025). Nothing depends on how L was found: R is computed from gram and L, entry by entry, and
s includes the largest possible round-off of that. The cost is n^2 r multiplications; a Cholesky factorisation takes
n^3 / 3.
"""

from __future__ import annotations

import numpy as np
import scipy  # SciPy loads scipy.linalg when it is first used

from cvxstructreg.numerics.arrays import Array

#: Matrices with fewer rows are not tried: a Cholesky factorisation takes at most 20 milliseconds.
LEAST_ROWS = 1500
#: At most one row of L for so many rows of the matrix: with more, the Cholesky factorisation is as fast.
ROWS_PER_ROW = 8
#: Rows are added until the rest of the trace is this part of it.
ENOUGH = 1e-14
#: The rest of a smooth kernel falls faster with each block: by this factor more than in the last one, in logarithms.
FASTER = 2.5
#: Rows taken at random for a block, and the least pivot of a block relative to the largest one.
CANDIDATES, LEAST_PIVOT = 96, 0.02
#: Rows of R that are computed at a time.
ROWS_AT_ONCE = 256
#: Matrices with larger or smaller entries are not tried: squares would leave the range of numbers.
RANGE = 1e100
UNIT = 0.5 * float(np.finfo(float).eps)


def low_rank_shift(gram: Array) -> float | None:
    """A number s such that ``gram + s I`` is positive semidefinite; None if a symmetric matrix is not of low rank.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 2000)
    >>> 0.0 < low_rank_shift(np.exp(-((x[:, None] - x) ** 2))) < 1e-9
    True
    >>> low_rank_shift(np.eye(2000)) is None
    True
    """
    if len(gram) < LEAST_ROWS or not _in_range(gram.diagonal()):
        return None
    L = _factor(gram)
    return None if L is None else _remainder(gram, L) + (len(L) + 2) * UNIT * float(np.vdot(L, L))


def _in_range(diagonal: Array) -> bool:
    return bool(diagonal.min() >= 0.0 and 1.0 / RANGE < diagonal.max() < RANGE)


def _factor(gram: Array) -> Array | None:
    """L with a small rest of the trace, or None as soon as it is expected to need too many rows."""
    n, rng = len(gram), np.random.default_rng(0)
    most, rank = n // ROWS_PER_ROW, 0
    L = np.empty((most, n))
    left = gram.diagonal().copy()
    before = float(left.sum())
    goal = ENOUGH * before
    while True:
        likely = left / left.sum()
        some = min(CANDIDATES, int(np.count_nonzero(likely)))
        chosen = rng.choice(n, size=some, replace=False, p=likely)
        corner = gram[np.ix_(chosen, chosen)] - L[:rank, chosen].T @ L[:rank, chosen]
        least = LEAST_PIVOT * float(corner.diagonal().max())
        root, pivots, found, _ = scipy.linalg.lapack.dpstrf(corner, tol=least, lower=1)
        if found == 0 or rank + found > most:
            return None
        chosen = chosen[pivots[:found] - 1]
        rows = gram[chosen] - L[:rank, chosen].T @ L[:rank]
        rows = scipy.linalg.solve_triangular(root[:found, :found], rows, lower=True, check_finite=False)
        L[rank : rank + found] = rows
        left -= np.einsum("ij,ij->j", rows, rows)
        if left.min() < -goal:  # an eigenvalue is more negative than that
            return None
        left = np.maximum(left, 0.0)
        rank += found
        rest = float(left.sum())
        if rest <= goal:
            return L[:rank]
        if rest >= before:
            return None
        expected = found * np.log(rest / goal) / np.log(before / rest)
        if rank + expected / FASTER > most:
            return None
        before = rest


def _remainder(gram: Array, L: Array) -> float:
    """||gram - L'L||_F, up to the round-off of the products."""
    size, total = float(gram.diagonal().max()), 0.0
    for first in range(0, len(gram), ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, len(gram))
        rows = (gram[first:last, :last] - L[:, first:last].T @ L[:, :last]) / size
        corner = rows[:, first:]
        total += 2.0 * float(np.vdot(rows, rows)) - float(np.vdot(corner, corner))
    return 1.001 * size * float(np.sqrt(total))  # more than the round-off of sums of nonnegative numbers
