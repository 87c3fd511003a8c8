"""Exact weighted total variation denoising of chains, compiled.

    minimize  1/2 sum_i s_i (x_i - v_i)^2 + sum_i lam_i |x_i - x_(i+1)|

by dynamic programming (Johnson 2013). The best value of the first k terms is a convex function of x_k. Its derivative
is increasing and piecewise linear. An edge clips this derivative to [-lam_k, lam_k], and the places where it is clipped
bound x_k, given x_(k+1). Each step removes pieces at both ends and adds two, so that the time is linear in the length.

If all s and all lam are equal, the constant pieces of x are found from the left to the right (Condat 2013), which takes
a third of the time unless pieces are read again and again; then dynamic programming takes over. Long chains are
searched in many parts at once (:mod:`~cvxstructreg.solvers.denoising.compiled_parts`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]

#: Paths of equal length whose numbers are read and written together, and unused numbers between them.
TOGETHER, APART = 16, 9
#: Steps to the right, in lengths of the chain up to the current place and some slack, after which dynamic programming
#: takes over.
MOST_READ = 4
#: 1, 1/2, 1/3 and so on: a product takes less time than a division.
PARTS = 1.0 / np.arange(1, 1025)


@njit(cache=True)
def denoise_even_chain(v: Floats, lam: float, x: Floats) -> bool:
    """Write the minimiser for s = 1 and equal lam to ``x``; False if entries would be read too often."""
    state = v[0] - lam, v[0] + lam, lam, -lam
    return follow(v, lam, x, (0, 0, 0, 0), state, False, len(v)) >= 0


@njit(cache=True, inline="always")  # a call takes a tenth longer
def follow(v: Floats, lam: float, x: Floats, places: Any, state: Any, joins: bool, slack: int) -> int:
    """Write the minimiser for s = 1 and equal lam to ``x``, from a piece that has begun.

    The piece that starts at ``first`` has a value in [low, high]. ``under`` and ``over`` are the sums of v - x over it
    for these two values, and ``last_low`` and ``last_high`` are the last places where they reach lam and -lam.
    ``places`` are the last place that was read, ``first``, ``last_low`` and ``last_high``; ``state`` are the others.

    If it ``joins``, ``x`` has pieces that were found from other starts, and no numbers elsewhere. If a piece begins
    where one of them does, and the value rises or falls there alike, then all others follow, and the search ends.
    Returns that place, the length of the chain if there is none, or a negative number if entries are read too often.
    """
    n = len(v)
    k, first, last_low, last_high = places
    low, high, under, over = state
    begin = first - slack
    for count in range(MOST_READ * (n + slack)):
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
                return n
            continue
        below, above = v[k + 1] - low + under, v[k + 1] - high + over
        if below < -lam:  # no value is as low as this: the piece ends where it last could
            joined = joins and x[last_low] > x[last_low + 1]
            x[first : last_low + 1] = low
            if joined:
                return last_low + 1
            k = first = last_low = last_high = last_low + 1
            if count > MOST_READ * (first - begin):
                return -1
            low, high, under, over = v[k], v[k] + (lam + lam), lam, -lam
        elif above > lam:
            joined = joins and x[last_high] < x[last_high + 1]
            x[first : last_high + 1] = high
            if joined:
                return last_high + 1
            k = first = last_low = last_high = last_high + 1
            if count > MOST_READ * (first - begin):
                return -1
            low, high, under, over = v[k] - (lam + lam), v[k], lam, -lam
        else:  # without branches: which one would be taken is hard to predict
            k += 1
            share = PARTS[k - first] if k - first < len(PARTS) else 1.0 / (k - first + 1)
            last_low = k if below >= lam else last_low
            last_high = k if above <= -lam else last_high
            low += max(below - lam, 0.0) * share
            high += min(above + lam, 0.0) * share
            under, over = min(below, lam), max(above, -lam)
    return -1


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
def denoise_row(v: Floats, even: float, s: Floats, lam: Floats, x: Floats) -> None:
    """Write the minimiser of one path to ``x``; ``even`` is lam / s if that is the same everywhere, else negative."""
    if even < 0.0 or not denoise_even_chain(v, even, x):
        rooms = np.empty((4, 2 * len(v) + 2))
        denoise_chain(v, s, lam, x, rooms[0], rooms[1], rooms[2], rooms[3])


@njit(cache=True)
def denoise_direction(
    offset: int,
    first: Ints,
    lengths: Ints,
    lam: Floats,
    even: float,
    s: Floats,
    inverse: Floats,
    old: Floats,
    new: Floats,
    x: Floats,
) -> None:
    """Minimise over the edges of one direction: path c has the nodes first[c] + k * offset, k < lengths[c].

    ``lam[i]`` belongs to the edge between i and i + offset, and ``inverse`` is 1 / s. ``x`` is y minus the sum of all
    u / s, in which ``old`` is replaced by ``new``. ``even`` is lam / s if that is the same everywhere, else negative.
    """
    if offset == 1:  # the numbers of a path follow each other
        for i in range(len(x)):
            new[i] = x[i] + old[i] * inverse[i]
        for c in range(len(first)):
            a, e = first[c], first[c] + lengths[c]
            denoise_row(new[a:e], even, s[a:e], lam[a:e], x[a:e])
        for i in range(len(x)):
            new[i] = s[i] * (new[i] - x[i])
        return
    row = lengths.max() + APART  # rows a power of two apart would share few places in the cache
    values, found = np.empty((TOGETHER, row)), np.empty((TOGETHER, row))
    c = 0
    while c < len(first):  # paths of one length that begin at neighbours are read and written together
        a, n, many = first[c], lengths[c], 1
        while many < TOGETHER and c + many < len(first) and lengths[c + many] == n and first[c + many] == a + many:
            many += 1
        for k in range(n):
            at = a + k * offset
            its_x, its_old, its_inverse = x[at : at + many], old[at : at + many], inverse[at : at + many]
            for m in range(many):
                values[m, k] = its_x[m] + its_old[m] * its_inverse[m]
        for m in range(many):
            if even < 0.0:
                end = a + m + (n - 1) * offset + 1
                its_s, its_lam = s[a + m : end : offset].copy(), lam[a + m : end : offset].copy()
                denoise_row(values[m, :n], even, its_s, its_lam, found[m, :n])
            elif not denoise_even_chain(values[m, :n], even, found[m, :n]):
                ones = np.ones(n)
                denoise_row(values[m, :n], -1.0, ones, even * ones, found[m, :n])
        for k in range(n):
            at = a + k * offset
            its_x, its_new, its_s = x[at : at + many], new[at : at + many], s[at : at + many]
            for m in range(many):
                its_x[m] = found[m, k]
                its_new[m] = its_s[m] * (values[m, k] - found[m, k])
        c += many


@njit(cache=True)
def advance(factor: float, new: Floats, u: Floats, ahead: Floats, y: Floats, inverse: Floats, x: Floats) -> None:
    """Each row of ``ahead`` goes beyond ``new`` by a part of the step from ``u``, which then becomes ``new``.

    ``x`` becomes y minus the sum of ``ahead`` / s, where ``inverse`` is 1 / s.
    """
    x[:] = y
    for o in range(len(u)):
        its_new, its_u, its_ahead = new[o], u[o], ahead[o]
        for i in range(len(y)):
            moved = its_new[i] + factor * (its_new[i] - its_u[i])
            its_u[i], its_ahead[i] = its_new[i], moved
            x[i] -= moved * inverse[i]


@njit(cache=True)
def dual_value(x: Floats, y: Floats, s: Floats) -> float:
    """sum_i u_i y_i - u_i^2 / (2 s_i) for u = s (y - x)."""
    value = 0.0
    for i in range(len(y)):
        value += 0.5 * s[i] * (y[i] - x[i]) * (y[i] + x[i])
    return value


@njit(cache=True)
def variation(offset: int, lam: Floats, x: Floats) -> float:
    """The sum of lam |x_i - x_j| over all edges of one direction."""
    value = 0.0
    for i in range(len(x) - offset):
        value += lam[i] * abs(x[i] - x[i + offset])
    return value


@njit(cache=True)
def join_equal(offset: int, edges: Ints, x: Floats, apart: float, root: Ints) -> None:
    """Join the sets of two neighbours that differ by at most ``apart``; ``root`` leads to the first node of a set."""
    for e in range(len(x) - offset):
        i, j = e, e + offset
        if edges[e] < 0 or abs(x[i] - x[j]) > apart:
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
def flows(offset: int, edges: Ints, lam: Floats, rest: Floats, q: Floats) -> None:
    """The multipliers q_i of the edges with K'q = rest on each path: sums from the start, clipped to [-lam, lam]."""
    for i in range(len(q)):
        q[i] = 0.0
    for i in range(len(q)):
        if edges[i] >= 0:
            before = q[i - offset] if i >= offset else 0.0
            q[i] = min(max(before + rest[i], -lam[i]), lam[i])
