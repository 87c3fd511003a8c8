"""Exact weighted total variation denoising of chains, compiled.

    minimize  1/2 sum_i s_i (x_i - v_i)^2 + sum_i lam_i |x_i - x_(i+1)|

by dynamic programming (Johnson 2013). The best value of the first k terms is a convex function of x_k. Its derivative
is increasing and piecewise linear. An edge clips this derivative to [-lam_k, lam_k], and the places where it is clipped
bound x_k, given x_(k+1). Each step removes pieces at both ends and adds two, so that the time is linear in the length.

If all s and all lam are equal, the constant pieces of x are found from the left to the right (Condat 2013), which takes
a third of the time unless pieces are read again and again; then dynamic programming takes over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]

#: Chains of equal length whose numbers are read and written together, and unused numbers between them.
TOGETHER, APART = 16, 9
#: Steps to the right, in lengths of the chain, after which dynamic programming takes over.
MOST_READ = 8


@njit(cache=True)
def denoise_even_chain(v: Floats, lam: float, x: Floats) -> bool:
    """Write the minimiser for s = 1 and equal lam to ``x``; False if entries would be read too often.

    The piece that starts at ``first`` has a value in [low, high]. ``under`` and ``over`` are the sums of v - x over it
    for these two values, and ``last_low`` and ``last_high`` are the last places where they reach lam and -lam.
    """
    n = len(v)
    k = first = last_low = last_high = 0
    low, high, under, over = v[0] - lam, v[0] + lam, lam, -lam
    for _ in range(MOST_READ * n):
        if k == n - 1:  # the sum must end at zero
            if under < 0.0:
                x[first : last_low + 1] = low
                k = first = last_low = last_low + 1
                low, under, over = v[k], lam, v[k] + lam - high
            elif over > 0.0:
                x[first : last_high + 1] = high
                k = first = last_high = last_high + 1
                high, over, under = v[k], -lam, v[k] - lam - low
            else:
                x[first:n] = low + under / (k - first + 1)
                return True
        elif v[k + 1] + under < low - lam:  # no value is as low as this: the piece ends where it last could
            x[first : last_low + 1] = low
            k = first = last_low = last_high = last_low + 1
            low, high, under, over = v[k], v[k] + (lam + lam), lam, -lam
        elif v[k + 1] + over > high + lam:
            x[first : last_high + 1] = high
            k = first = last_low = last_high = last_high + 1
            low, high, under, over = v[k] - (lam + lam), v[k], lam, -lam
        else:
            k += 1
            under += v[k] - low
            over += v[k] - high
            if under >= lam:
                low += (under - lam) / (k - first + 1)
                under, last_low = lam, k
            if over <= -lam:
                high += (over + lam) / (k - first + 1)
                over, last_high = -lam, k
    return False


@njit(cache=True)
def denoise_chain(
    v: Floats, s: Floats, lam: Floats, x: Floats, knots: Floats, slopes: Floats, heights: Floats, lowest: Floats
) -> None:
    """Write the minimiser of one chain to ``x``.

    ``knots``, ``slopes`` and ``heights`` are workspace of twice the length: where the derivative bends, and the change
    of its slope and height there. ``lowest`` is workspace of twice the length for the bounds of each x_k.
    """
    n = len(v)
    if n == 1:
        x[0] = v[0]
        return
    left, right = n, n - 1  # the first and the last knot in use; none at first
    first_slope, first_height = s[0], -s[0] * v[0]
    last_slope, last_height = s[0], -s[0] * v[0]
    for k in range(n - 1):
        # the derivative is slope * x + height on each piece; from the left until it exceeds -lam_k
        slope, height = first_slope, first_height
        while left <= right and slope * knots[left] + height <= -lam[k]:
            slope += slopes[left]
            height += heights[left]
            left += 1
        low = (-lam[k] - height) / slope
        upper_slope, upper_height = last_slope, last_height
        while left <= right and upper_slope * knots[right] + upper_height >= lam[k]:
            upper_slope -= slopes[right]
            upper_height -= heights[right]
            right -= 1
        high = (lam[k] - upper_height) / upper_slope
        lowest[2 * k], lowest[2 * k + 1] = low, high
        left -= 1
        knots[left], slopes[left], heights[left] = low, slope, height + lam[k]
        right += 1
        knots[right], slopes[right], heights[right] = high, -upper_slope, lam[k] - upper_height
        # the clipped derivative is -lam_k at the far left and lam_k at the far right; the next data term is added
        first_slope, first_height = s[k + 1], -s[k + 1] * v[k + 1] - lam[k]
        last_slope, last_height = s[k + 1], -s[k + 1] * v[k + 1] + lam[k]
    slope, height = first_slope, first_height
    while left <= right and slope * knots[left] + height <= 0.0:
        slope += slopes[left]
        height += heights[left]
        left += 1
    x[n - 1] = -height / slope
    for k in range(n - 2, -1, -1):
        x[k] = min(max(x[k + 1], lowest[2 * k]), lowest[2 * k + 1])


@njit(cache=True)
def denoise_direction(
    order: Ints,
    starts: Ints,
    lam: Floats,
    even: float,
    y: Floats,
    s: Floats,
    total: Floats,
    old: Floats,
    new: Floats,
    x: Floats,
) -> None:
    """Minimise over the edges of one direction: chain c has the nodes order[starts[c]] to order[starts[c + 1] - 1].

    ``lam[e]`` belongs to the edge between order[e] and order[e + 1]; at the end of a chain it is not used. ``total`` is
    the sum of all u, in which ``old`` is replaced by ``new``, and x = y - total / s afterwards. ``even`` is lam / s if
    that is the same everywhere, else negative.
    """
    chains = len(starts) - 1
    longest = 0
    for c in range(chains):
        longest = max(longest, starts[c + 1] - starts[c])
    row = longest + APART  # rows a power of two apart would share few places in the cache
    values, weights, found = np.empty((TOGETHER, row)), np.empty((TOGETHER, row)), np.empty((TOGETHER, row))
    knots, slopes, heights = np.empty(2 * longest + 2), np.empty(2 * longest + 2), np.empty(2 * longest + 2)
    lowest = np.empty(2 * longest + 2)
    c = 0
    while c < chains:  # chains of one length at once: neighbours in memory are often in chains that follow each other
        n, many = starts[c + 1] - starts[c], 1
        while many < TOGETHER and c + many < chains and starts[c + many + 1] - starts[c + many] == n:
            many += 1
        for k in range(n):
            for m in range(many):
                i = order[starts[c + m] + k]
                weights[m, k] = s[i]
                values[m, k] = y[i] - (total[i] - old[i]) / s[i]
        for m in range(many):
            if even >= 0.0 and denoise_even_chain(values[m, :n], even, found[m, :n]):
                continue
            first = starts[c + m]
            its = lam[first : first + n]
            denoise_chain(values[m, :n], weights[m, :n], its, found[m, :n], knots, slopes, heights, lowest)
        for k in range(n):
            for m in range(many):
                i = order[starts[c + m] + k]
                x[i] = found[m, k]
                new[i] = weights[m, k] * (values[m, k] - found[m, k])
                total[i] += new[i] - old[i]
        c += many


@njit(cache=True)
def advance(factor: float, new: Floats, u: Floats, ahead: Floats) -> None:
    """``ahead`` goes beyond ``new`` by a part of the step from ``u``, which then becomes ``new``."""
    for i in range(len(u)):
        ahead[i] = new[i] + factor * (new[i] - u[i])
        u[i] = new[i]


@njit(cache=True)
def dual_value(total: Floats, y: Floats, s: Floats) -> float:
    """sum_i total_i y_i - total_i^2 / (2 s_i)."""
    value = 0.0
    for i in range(len(y)):
        value += total[i] * (y[i] - 0.5 * total[i] / s[i])
    return value


@njit(cache=True)
def variation(order: Ints, starts: Ints, lam: Floats, x: Floats) -> float:
    """The sum of lam |x_i - x_j| over all edges of one direction."""
    value = 0.0
    for c in range(len(starts) - 1):
        for e in range(starts[c], starts[c + 1] - 1):
            value += lam[e] * abs(x[order[e]] - x[order[e + 1]])
    return value


@njit(cache=True)
def join_equal(order: Ints, starts: Ints, x: Floats, apart: float, root: Ints) -> None:
    """Join the sets of two neighbours that differ by at most ``apart``; ``root`` leads to the first node of a set."""
    for c in range(len(starts) - 1):
        for e in range(starts[c], starts[c + 1] - 1):
            i, j = order[e], order[e + 1]
            if abs(x[i] - x[j]) > apart:
                continue
            while root[i] != i:
                root[i] = root[root[i]]
                i = root[i]
            while root[j] != j:
                root[j] = root[root[j]]
                j = root[j]
            if i < j:
                root[j] = i
            else:
                root[i] = j


@njit(cache=True)
def average(root: Ints, s: Floats, x: Floats, sums: Floats, sizes: Floats, means: Floats) -> None:
    """Write the mean of each set to ``means``; roots come before the other nodes of their sets."""
    for i in range(len(x)):
        root[i] = root[root[i]]
        sums[i] = sizes[i] = 0.0
        sums[root[i]] += s[i] * x[i]
        sizes[root[i]] += s[i]
    for i in range(len(x)):
        means[i] = sums[root[i]] / sizes[root[i]]


@njit(cache=True)
def flows(order: Ints, starts: Ints, lam: Floats, rest: Floats, q: Floats) -> None:
    """The multipliers q_e of the edges with K'q = rest on each chain: sums from the start, clipped to [-lam, lam]."""
    for c in range(len(starts) - 1):
        total = 0.0
        for e in range(starts[c], starts[c + 1] - 1):
            total += rest[order[e]]
            total = min(max(total, -lam[e]), lam[e])
            q[e] = total
