"""Loops over long chains with X = I, compiled: what they are made of, their objective, and their bound.

Sums are made of SHORT numbers each, in any order. JOINED of them are added, and their sums are added with a correction
of the round-off. So the error of a sum, with that of its terms, is at most 32 times half the precision times the sum of
absolute values. A single s or lam belongs to all rows or edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]

#: Numbers that are added in any order, and sums of so many numbers that are added without a correction.
SHORT, JOINED = 16, 4
#: Nodes of which a loop makes several passes while they are in the cache.
BLOCK = 256
#: Parts of a chain whose multipliers are found together: each waits for the one before it in the same part.
PARTS = 4


@njit(cache=True)
def is_identity(starts: Ints, columns: Ints, values: Floats) -> bool:
    """Whether row i of a sparse matrix has the single entry 1 in column i."""
    other = False
    for i in range(len(values)):  # without branches, so that the compiler makes vectors
        other |= (starts[i + 1] != i + 1) | (columns[i] != i) | (values[i] != 1.0)
    return not other


@njit(cache=True)
def is_chain(starts: Ints, columns: Ints, values: Floats) -> bool:
    """Whether row i of a sparse matrix is w_i - w_(i+1)."""
    for i in range(len(starts) - 1):
        j = 2 * i
        if starts[i + 1] != j + 2 or columns[j] != i or columns[j + 1] != i + 1:
            return False
        if values[j] != 1.0 or values[j + 1] != -1.0:
            return False
    return True


@njit(cache=True)
def add(sums: Floats, m: int, value: float) -> None:
    """Add a number to sums[0, m]; sums[1, m] has the round-off."""
    total = sums[0, m] + value
    rest = total - sums[0, m]
    sums[1, m] += (sums[0, m] - (total - rest)) + (value - rest)
    sums[0, m] = total


@njit(cache=True)
def all_equal(values: Floats) -> bool:
    """Whether all numbers are equal."""
    same = True
    for i in range(len(values)):
        same &= values[i] == values[0]
    return same


@njit(cache=True, fastmath={"reassoc"})
def weighted_sums(s: Floats, y: Floats, near: float) -> tuple[float, float]:
    """sum_i s_i (y_i - near) and sum_i s_i."""
    total = weight = 0.0
    for i in range(len(y)):
        total += s[i] * (y[i] - near)
        weight += s[i]
    return total, weight


@njit(cache=True, fastmath={"reassoc"})
def weighted_squares(s: Floats, y: Floats, c: float) -> tuple[float, float]:
    """sum_i s_i (y_i - c)^2 / 2 and sum_i s_i y_i^2 / 2."""
    spread = square = 0.0
    for i in range(len(y)):
        spread += 0.5 * s[i] * (y[i] - c) * (y[i] - c)
        square += 0.5 * s[i] * y[i] * y[i]
    return spread, square


@njit(cache=True)
def block_moments(s: Floats, y: Floats, found: Floats) -> None:
    """For each BLOCK of y its weight, its mean, and the :func:`weighted_squares` about the mean, a column of each."""
    even = np.full(BLOCK, s[0])
    for row in range(len(found)):
        its_y = y[row * BLOCK : (row + 1) * BLOCK]
        its_s = even[: len(its_y)] if len(s) == 1 else s[row * BLOCK : (row + 1) * BLOCK]
        total, weight = weighted_sums(its_s, its_y, its_y[0])
        mean = its_y[0] + total / weight
        found[row, 0], found[row, 1] = weight, mean
        found[row, 2], found[row, 3] = weighted_squares(its_s, its_y, mean)


@njit(cache=True)
def begin_parts(lam: Floats, x: Floats, begins: Ints, first: Floats) -> None:
    """Begin PARTS parts of a chain where x jumps: the multiplier before such a place, ``first``, is lam or -lam.

    Parts may be empty. The last entries of ``begins`` and ``first`` are those of the end of the chain.
    """
    begins[PARTS], first[PARTS] = len(x), 0.0
    for part in range(PARTS - 1, 0, -1):
        i = max(part * len(x) // PARTS, 1)
        while i < begins[part + 1] and x[i - 1] == x[i]:
            i += 1
        begins[part], first[part] = i, first[part + 1]
        if i < begins[part + 1]:
            most = lam[0] if len(lam) == 1 else lam[i - 1]
            first[part] = most if x[i - 1] > x[i] else -most
    begins[0], first[0] = 0, 0.0


@njit(cache=True)
def flows(rise: Floats, most: Floats, q: Floats) -> None:
    """Write sums of each row of ``rise`` to ``q`` behind its first column, clipped to [-most, most].

    There are PARTS rows. Their sums are independent, so that a processor adds them at the same time.
    """
    a, b, c, d = q[0, 0], q[1, 0], q[2, 0], q[3, 0]
    for j in range(rise.shape[1]):
        a = min(max(a + rise[0, j], -most[0, j]), most[0, j])
        b = min(max(b + rise[1, j], -most[1, j]), most[1, j])
        c = min(max(c + rise[2, j], -most[2, j]), most[2, j])
        d = min(max(d + rise[3, j], -most[3, j]), most[3, j])
        q[0, j + 1], q[1, j + 1], q[2, j + 1], q[3, j + 1] = a, b, c, d


@njit(cache=True)
def load(s: Floats, lam: Floats, begin: int, end: int, own: Floats) -> None:
    """Write s, 1 / s and lam of nodes and their edges to the rows of ``own``; the last node has no edge."""
    for j in range(end - begin):
        own[0, j] = s[0] if len(s) == 1 else s[begin + j]
        own[1, j] = 1.0 / own[0, j]
    last = end if len(lam) == 1 else min(end, len(lam))
    for j in range(last - begin):
        own[2, j] = lam[0] if len(lam) == 1 else lam[begin + j]
    own[2, last - begin : end - begin] = 0.0


@njit(cache=True, fastmath={"reassoc"})
def short_sums(
    s: Floats, inverse: Floats, lam: Floats, y: Floats, x: Floats, q: Floats
) -> tuple[float, float, float, float, float]:
    """The sums of :func:`chain_sums` over SHORT nodes; ``x`` has one more, and ``q`` has one before."""
    loss = jumps = cost = size = noise = 0.0
    for j in range(SHORT):
        u = q[j] - q[j + 1]
        off, step, product = x[j] - y[j], u * inverse[j], u * y[j]
        square = 0.5 * u * step
        loss += 0.5 * s[j] * off * off
        jumps += lam[j] * abs(x[j] - x[j + 1])
        cost += product + square
        size += abs(product) + square
        noise += abs(u * x[j]) + (abs(q[j]) + abs(q[j + 1])) * max(abs(x[j]), abs(y[j] + step))
    return loss, jumps, cost, size, noise


@njit(cache=True)
def block_sums(own: Floats, y: Floats, x: Floats, begin: int, end: int, q: Floats, sums: Floats) -> None:
    """Add the sums of nodes from ``begin`` to ``end``; ``q`` has their multipliers, and one before."""
    own_s, own_inverse, own_lam = own[0], own[1], own[2]
    whole = begin + (min(end, len(y) - 1) - begin) // SHORT * SHORT
    for joined in range(begin, whole, JOINED * SHORT):
        loss = jumps = cost = size = noise = 0.0
        for i in range(joined, min(joined + JOINED * SHORT, whole), SHORT):
            j = i - begin
            its_s, its_inverse, its_lam = own_s[j : j + SHORT], own_inverse[j : j + SHORT], own_lam[j : j + SHORT]
            its_y, its_x, its_q = y[i : i + SHORT], x[i : i + SHORT + 1], q[j : j + SHORT + 1]
            found = short_sums(its_s, its_inverse, its_lam, its_y, its_x, its_q)
            loss, jumps, cost = loss + found[0], jumps + found[1], cost + found[2]
            size, noise = size + found[3], noise + found[4]
        add(sums, 0, loss)
        add(sums, 1, jumps)
        add(sums, 2, cost)
        add(sums, 3, size)
        add(sums, 4, noise)
    rest = end - whole
    if rest > 0:  # zeros add nothing
        its_own, its_y, its_x, its_q = np.zeros((3, SHORT)), np.zeros(SHORT), np.zeros(SHORT + 1), np.empty(SHORT + 1)
        its_own[:, :rest], its_y[:rest] = own[:, whole - begin : end - begin], y[whole:end]
        its_x[:rest], its_own[2, rest - 1] = x[whole:end], 0.0
        its_q[:] = q[end - begin]
        its_q[:rest] = q[whole - begin : end - begin]
        if end < len(x):
            add(sums, 1, own[2, end - begin - 1] * abs(x[end - 1] - x[end]))
        found = short_sums(its_own[0], its_own[1], its_own[2], its_y, its_x, its_q)
        for m in range(5):
            add(sums, m, found[m])


@njit(cache=True)
def chain_proof(s: Floats, lam: Floats, y: Floats, x: Floats, u: Floats, q: Floats, sums: Floats) -> None:
    """Multipliers q of the edges that belong to x, u = -K'q, and the sums of :func:`chain_sums`.

    The multipliers are sums of s (y - x) from the start, clipped to [-lam, lam]. ``u`` and ``q`` may be empty: then
    they are not stored.
    """
    begins, first = np.empty(PARTS + 1, np.int64), np.empty(PARTS + 1)
    begin_parts(lam, x, begins, first)
    own, rise, flow = np.ones((PARTS, 3, BLOCK)), np.zeros((PARTS, BLOCK)), np.zeros((PARTS, BLOCK + 1))
    own[:, 2] = lam[0] if len(lam) else 0.0
    flow[:, 0] = first[:PARTS]
    even = len(s) == len(lam) == 1
    if even:
        own[:, 0], own[:, 1] = s[0], 1.0 / s[0]
    for ahead in range(0, (begins[1:] - begins[:-1]).max(), BLOCK):
        for part in range(PARTS):
            begin = min(begins[part] + ahead, begins[part + 1])
            end = min(begin + BLOCK, begins[part + 1])
            if not even:
                load(s, lam, begin, end, own[part])
            its_s, its_y, its_x, its_rise = own[part, 0], y[begin:end], x[begin:end], rise[part]
            for j in range(end - begin):
                its_rise[j] = its_s[j] * (its_y[j] - its_x[j])
        flows(rise, own[:, 2], flow)
        for part in range(PARTS):
            begin = min(begins[part] + ahead, begins[part + 1])
            end = min(begin + BLOCK, begins[part + 1])
            if begin == end:
                continue
            its_q = flow[part]
            following = its_q[BLOCK]
            if end == begins[part + 1]:
                its_q[end - begin] = first[part + 1]
            block_sums(own[part], y, x, begin, end, its_q, sums)
            for j in range(min(end, len(u)) - begin):
                u[begin + j] = its_q[j] - its_q[j + 1]
            for j in range(min(end, len(q)) - begin):
                q[begin + j] = its_q[j + 1]
            its_q[0] = following


@njit(cache=True)
def chain_sums(s: Floats, lam: Floats, y: Floats, x: Floats, u: Floats, q: Floats, sums: Floats) -> bool:
    """Whether u = -K'q and |q| <= lam; adds sums that give the objective, the bound and its round-off.

    These are sums of 1/2 s (x - y)^2, lam |x_i - x_(i+1)|, the conjugate u y + u^2 / (2 s), the absolute values of its
    parts, and the sizes that round-off is a part of: |u x|, and the numbers that add up to u times |x| or |y + u / s|.
    """
    own, flow, wrong = np.empty((3, BLOCK)), np.zeros(BLOCK + 1), False
    for begin in range(0, len(y), BLOCK):
        end = min(begin + BLOCK, len(y))
        load(s, lam, begin, end, own)
        for j in range(end - begin):
            flow[j + 1] = q[begin + j] if begin + j < len(q) else 0.0  # the last node has no edge
            wrong |= not abs(flow[j + 1]) <= own[2, j]
            wrong |= u[begin + j] != flow[j] - flow[j + 1]
        block_sums(own, y, x, begin, end, flow, sums)
        flow[0] = flow[end - begin]
    return not wrong
