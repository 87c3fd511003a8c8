"""Loops over long chains with X = I, compiled: what they are made of, their objective, and their bound.

Sums are made of SHORT numbers each, which are added with a correction of the round-off. So the error of a sum, with
that of its terms, is at most SHORT times the precision times the sum of absolute values. A single s or lam belongs to
all rows or edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]

#: Numbers that are added without a correction of the round-off.
SHORT = 16


@njit(cache=True)
def is_identity(starts: Ints, columns: Ints, values: Floats) -> bool:
    """Whether row i of a sparse matrix has the single entry 1 in column i."""
    same = True
    for i in range(len(values)):
        same &= starts[i + 1] == i + 1 and columns[i] == i and values[i] == 1.0
    return same


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
def constant_sums(c: float, s: Floats, y: Floats, sums: Floats) -> None:
    """Add sum_i s_i (y_i - c)^2 / 2, sum_i s_i (y_i - c) and sum_i s_i to the first three columns."""
    one = len(s) == 1
    for begin in range(0, len(y), SHORT):
        its_y = y[begin : begin + SHORT]
        value = first = weight = 0.0
        for j in range(len(its_y)):
            off, its_s = its_y[j] - c, s[0] if one else s[begin + j]
            value += 0.5 * its_s * off * off
            first += its_s * off
            weight += its_s
        add(sums, 0, value)
        add(sums, 1, first)
        add(sums, 2, weight)


@njit(cache=True)
def chain_dual(s: Floats, lam: Floats, y: Floats, x: Floats, u: Floats, q: Floats) -> None:
    """The multipliers q of the edges, and u = -K'q: sums of s (y - x) from the start, clipped to [-lam, lam]."""
    before = 0.0
    for i in range(len(q)):
        its_s, most = s[0] if len(s) == 1 else s[i], lam[0] if len(lam) == 1 else lam[i]
        flow = min(max(before + its_s * (y[i] - x[i]), -most), most)
        q[i], u[i] = flow, before - flow
        before = flow
    u[len(q)] = before


@njit(cache=True)
def chain_sums(s: Floats, lam: Floats, y: Floats, x: Floats, u: Floats, q: Floats, sums: Floats) -> bool:
    """Whether u = -K'q and |q| <= lam; adds sums that give the objective, the bound and its round-off.

    These are sums of 1/2 s (x - y)^2, lam |x_i - x_(i+1)|, the conjugate u y + u^2 / (2 s), the absolute values of its
    parts, and the sizes that round-off is a part of: |u x|, and the numbers that add up to u times |x| or |y + u / s|.
    """
    one, even, before, wrong = len(s) == 1, len(lam) == 1, 0.0, False
    for begin in range(0, len(y), SHORT):
        its_y, its_x, its_u = y[begin : begin + SHORT], x[begin : begin + SHORT], u[begin : begin + SHORT]
        its_q = q[begin : begin + SHORT]
        loss = jumps = cost = size = noise = 0.0
        for j in range(len(its_y)):
            flow, weight = 0.0, s[0] if one else s[begin + j]
            if j < len(its_q):  # the last node has no edge
                flow, most = its_q[j], lam[0] if even else lam[begin + j]
                wrong |= not abs(flow) <= most
                jumps += most * abs(its_x[j] - x[begin + j + 1])
            wrong |= its_u[j] != before - flow
            off, step, product = its_x[j] - its_y[j], its_u[j] / weight, its_u[j] * its_y[j]
            square = 0.5 * its_u[j] * step
            loss += 0.5 * weight * off * off
            cost += product + square
            size += abs(product) + square
            noise += abs(its_u[j] * its_x[j]) + (abs(before) + abs(flow)) * max(abs(its_x[j]), abs(its_y[j] + step))
            before = flow
        add(sums, 0, loss)
        add(sums, 1, jumps)
        add(sums, 2, cost)
        add(sums, 3, size)
        add(sums, 4, noise)
    return not wrong
