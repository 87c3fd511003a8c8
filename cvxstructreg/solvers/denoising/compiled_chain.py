"""Exact weighted total variation denoising of chains, compiled.

    minimize  1/2 sum_i s_i (x_i - v_i)^2 + sum_i lam_i |x_i - x_(i+1)|

by dynamic programming (Johnson 2013). The best value of the first k terms is a convex function of x_k. Its derivative
is increasing and piecewise linear. An edge clips this derivative to [-lam_k, lam_k], and the places where it is clipped
bound x_k, given x_(k+1). Each step removes pieces at both ends and adds two, so that the time is linear in the length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]


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
def denoise_chains(order: Ints, starts: Ints, lam: Floats, v: Floats, s: Floats, x: Floats) -> None:
    """Denoise many chains: chain c has the nodes order[starts[c]] to order[starts[c + 1] - 1].

    ``lam[e]`` belongs to the edge between order[e] and order[e + 1]; at the end of a chain it is not used.
    """
    longest = 0
    for c in range(len(starts) - 1):
        longest = max(longest, starts[c + 1] - starts[c])
    values, weights, found = np.empty(longest), np.empty(longest), np.empty(longest)
    knots, slopes, heights = np.empty(2 * longest + 2), np.empty(2 * longest + 2), np.empty(2 * longest + 2)
    lowest = np.empty(2 * longest + 2)
    for c in range(len(starts) - 1):
        first, n = starts[c], starts[c + 1] - starts[c]
        for k in range(n):
            values[k] = v[order[first + k]]
            weights[k] = s[order[first + k]]
        denoise_chain(values[:n], weights[:n], lam[first : first + n], found[:n], knots, slopes, heights, lowest)
        for k in range(n):
            x[order[first + k]] = found[k]


@njit(cache=True)
def flows(order: Ints, starts: Ints, lam: Floats, rest: Floats, q: Floats) -> None:
    """The multipliers q_e of the edges with K'q = rest on each chain: sums from the start, clipped to [-lam, lam]."""
    for c in range(len(starts) - 1):
        total = 0.0
        for e in range(starts[c], starts[c + 1] - 1):
            total += rest[order[e]]
            total = min(max(total, -lam[e]), lam[e])
            q[e] = total
