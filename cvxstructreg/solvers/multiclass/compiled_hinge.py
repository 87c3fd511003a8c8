"""Compiled steps of the solvers for centred hinges; imported only where they are called, because numba is slow to load.

U are the multipliers of the hinges c (Z - tau)_+^p for each row and class: 0 <= U <= c where p = 1, 0 <= U where p = 2
and c > 0, and U = 0 where c = 0.
"""

from __future__ import annotations

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.compiled_clock import numba

_FAST = {"reassoc", "contract", "nsz"}


@numba.njit(cache=True, fastmath=_FAST)
def reflect(v: Array, costs: Array, tau: Array, squared: np.ndarray, t: float, Z: Array, V: Array) -> None:
    """Z = the prox of t times the hinges at v, entry by entry, and V = 2 Z - v with its rows centred."""
    m, k = v.shape
    for i in range(m):
        total = 0.0
        for j in range(k):
            s = v[i, j] - tau[i]
            if s > 0.0:
                s = s / (1.0 + 2.0 * t * costs[i, j]) if squared[i] else max(0.0, s - t * costs[i, j])
            z = s + tau[i]
            Z[i, j] = z
            V[i, j] = 2.0 * z - v[i, j]
            total += V[i, j]
        total /= k
        for j in range(k):
            V[i, j] -= total


@numba.njit(cache=True, fastmath=_FAST)
def hinge_sum(Z: Array, costs: Array, tau: Array, squared: np.ndarray) -> float:
    """sum c (Z - tau)_+^p."""
    total = 0.0
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            s = max(0.0, Z[i, j] - tau[i])
            total += costs[i, j] * (s * s if squared[i] else s)
    return total


@numba.njit(cache=True, fastmath=_FAST)
def dual_sum(U: Array, costs: Array, tau: Array, squared: np.ndarray) -> float:
    """The conjugate: sum tau U, plus U^2 / (4 c) where p = 2."""
    total = 0.0
    for i in range(U.shape[0]):
        for j in range(U.shape[1]):
            total += tau[i] * U[i, j]
            if squared[i] and costs[i, j] > 0.0:
                total += U[i, j] * U[i, j] / (4.0 * costs[i, j])
    return total


@numba.njit(cache=True)
def into_domain(U: Array, costs: Array, squared: np.ndarray) -> None:
    """Clip U to its bounds in place; subtract the smallest entry of each row, which keeps the centred rows."""
    m, k = U.shape
    for i in range(m):
        least = np.inf
        for j in range(k):
            c = costs[i, j]
            u = max(0.0, U[i, j]) if c > 0.0 else 0.0
            U[i, j] = u if squared[i] else min(u, c)
            least = min(least, U[i, j])
        if least > 0.0:
            for j in range(k):
                U[i, j] -= least


@numba.njit(cache=True)
def _shifted_sum(u: Array, costs: Array, squared: np.ndarray, q: Array, mu: float, inner: bool) -> tuple[float, float]:
    """q'clip(u - mu q) and minus its slope; with ``inner``, only entries strictly between their bounds move."""
    total, slope = 0.0, 0.0
    for i in range(u.size):
        c = costs[i]
        if c == 0.0:
            continue
        x = u[i]
        if not inner or (x > 0.0 and (squared[i] or x < c)):
            x -= mu * q[i]
            if x <= 0.0:
                x = 0.0
            elif not squared[i] and x >= c:
                x = c
            else:
                slope += q[i] * q[i]
        total += q[i] * x
    return total, slope


@numba.njit(cache=True)
def _shift_column(u: Array, costs: Array, squared: np.ndarray, q: Array, goal: float, inner: bool) -> bool:
    """u <- clip(u - mu q) with q'u = goal, in place, by Newton steps in a bracket; False if there is no such mu."""
    reach = goal + 1e-300
    for i in range(u.size):
        reach = max(reach, (u[i] if squared[i] else costs[i]) / q[i], goal / (q[i] * q[i]), u[i] / q[i])
    low, high, mu = -2.0 * reach, 2.0 * reach, 0.0
    slack = 1e-15 * goal
    if _shifted_sum(u, costs, squared, q, low, inner)[0] < goal - slack:
        return False
    if _shifted_sum(u, costs, squared, q, high, inner)[0] > goal + slack:
        return False
    for _ in range(200):
        total, slope = _shifted_sum(u, costs, squared, q, mu, inner)
        if abs(total - goal) <= slack:
            break
        if total > goal:
            low = mu
        else:
            high = mu
        step = mu + (total - goal) / slope if slope > 0.0 else low
        mu = step if low < step < high else 0.5 * (low + high)
        if mu in (low, high):
            break
    for i in range(u.size):
        x = u[i]
        if costs[i] > 0.0 and (not inner or (x > 0.0 and (squared[i] or x < costs[i]))):
            x = max(0.0, x - mu * q[i])
            u[i] = x if squared[i] else min(x, costs[i])
    return True


@numba.njit(cache=True)
def balance(U: Array, costs: Array, squared: np.ndarray, q: Array) -> bool:
    """Move U within its bounds, in place, so that q'U_j is the same for all classes j; False if that fails.

    Entries strictly between their bounds are moved first: near the optimum, this does not change the dual value to
    first order.
    """
    m, k = U.shape
    goal, most = 0.0, np.inf
    for j in range(k):
        capacity = 0.0
        for i in range(m):
            goal += q[i] * U[i, j] / k
            if costs[i, j] > 0.0:
                capacity += np.inf if squared[i] else q[i] * costs[i, j]
        most = min(most, capacity)
    goal = min(goal, most)
    u, c = np.empty(m), np.empty(m)
    for j in range(k):
        for i in range(m):  # explicit loops: an assignment to a slice takes seconds to compile
            u[i], c[i] = U[i, j], costs[i, j]
        met = False
        for attempt in range(2):  # literal True and False would compile the function twice
            met = met or _shift_column(u, c, squared, q, goal, attempt == 0)
        if not met:
            return False
        for i in range(m):
            U[i, j] = u[i]
    return True


@numba.njit(cache=True)
def mirror(matrix: Array) -> None:
    """Copy the upper triangle to the lower one in place, in blocks that fit into the cache."""
    n, size = len(matrix), 64
    for first in range(0, n, size):
        for start in range(0, first + size, size):
            for i in range(first, min(first + size, n)):
                for j in range(start, min(start + size, i)):
                    matrix[i, j] = matrix[j, i]


@numba.njit(cache=True)
def slopes_of_columns(
    at: Array, order: np.ndarray, costs: Array, squared: np.ndarray, q: Array, kinks: Array, lines: Array, after: Array
) -> np.ndarray:
    """The table for :func:`intercepts_at` of the columns sum_i c_ij (q_i (t - at_ij))_+^p_i; returns ``starts``.

    ``order`` sorts each column of ``at``. Infinite entries are left out, so the end of the table may stay unused.
    """
    m, k = at.shape
    starts = np.zeros(k + 1, dtype=np.int64)
    for j in range(k):
        jumps, rise, offset = 0.0, 0.0, 0.0
        position = starts[j]
        for number in range(m):
            i = order[number, j]
            t = at[i, j]
            if t == np.inf:
                break
            weight = costs[i, j] * q[i]
            if squared[i]:
                rise += 2.0 * weight * q[i]
                offset += 2.0 * weight * q[i] * t
            else:
                jumps += weight
            kinks[position], after[position] = t, jumps + rise * t - offset
            lines[0, position], lines[1, position], lines[2, position] = jumps, rise, offset
            position += 1
        starts[j + 1] = position
    return starts


@numba.njit(cache=True)
def intercepts_at(slope: float, starts: np.ndarray, kinks: Array, lines: Array, after: Array, b: Array) -> float:
    """b_j is the first point where column j has at least this slope, or its last kink if there is none; returns sum(b).

    Columns are stored one after the other, beginning at ``starts``. Between kinks the slope is jumps + rise t - offset
    with the three rows of ``lines``; ``after`` is the slope to the right of each kink.
    """
    total = 0.0
    for j in range(len(b)):
        first, last = starts[j], starts[j + 1]
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            if after[middle] < slope:
                low = middle + 1
            else:
                high = middle
        t = kinks[min(low, last - 1)]
        if low > first and lines[1, low - 1] > 0.0:
            reached = (slope - lines[0, low - 1] + lines[2, low - 1]) / lines[1, low - 1]
            if low == last or reached < kinks[low]:
                t = max(reached, kinks[low - 1])
        b[j] = t
        total += t
    return total


@numba.njit(cache=True)
def bisected_intercepts(
    low: float, high: float, count: int, starts: np.ndarray, kinks: Array, lines: Array, after: Array, b: Array
) -> None:
    """b with sum zero, by bisection between two slopes: sum(b) is negative at the first and positive at the second."""
    below, above = np.empty_like(b), np.empty_like(b)
    lack = intercepts_at(low, starts, kinks, lines, after, below)
    excess = intercepts_at(high, starts, kinks, lines, after, above)
    for _ in range(count):
        middle = 0.5 * (low + high)
        total = intercepts_at(middle, starts, kinks, lines, after, b)
        negative = total < 0.0
        if negative:
            low, lack = middle, total
        else:
            high, excess = middle, total
        for j in range(len(b)):  # explicit loops: an assignment to a slice takes seconds to compile
            if negative:
                below[j] = b[j]
            else:
                above[j] = b[j]
    share = -lack / (excess - lack)
    for j in range(len(b)):
        b[j] = below[j] + (above[j] - below[j]) * share
