"""Compiled loops for the box programs of the hinge loss: two rows at a time, or one at a time without intercept."""

from __future__ import annotations

import numpy as np

from cvxstructreg.runtime.compiled_clock import numba


@numba.njit(cache=True)
def pairs(K, C, y, a, slope, eps, max_iter):  # type: ignore[no-untyped-def]
    """Sequential minimal optimisation of 1/2 a'Qa - 1'a in the box 0 <= a <= C, with y'a constant.

    Here Q_ij = y_i y_j K_ij. Each step moves the pair of rows with the largest second-order gain (Fan, Chen and Lin
    2005). ``a`` and ``slope`` = Qa - 1 are updated in place. The loop ends when the optimality conditions are violated
    by less than ``eps``, or after ``max_iter`` steps. Returns the number of steps.
    """
    n, least = len(a), _least_curvature(K)
    for step in range(max_iter):
        first, highest = -1, -np.inf
        for t in range(n):
            if (y[t] > 0 and a[t] < C[t]) or (y[t] < 0 and a[t] > 0):
                value = -y[t] * slope[t]
                if value > highest:
                    highest, first = value, t
        if first < 0:
            return step
        row = K[first]
        second, lowest, best = -1, np.inf, 0.0
        for t in range(n):
            if (y[t] > 0 and a[t] > 0) or (y[t] < 0 and a[t] < C[t]):
                value = -y[t] * slope[t]
                if value < lowest:
                    lowest = value
                difference = highest - value
                if difference > 0:
                    curved = row[first] + K[t, t] - 2.0 * row[t]
                    gain = difference * difference / max(curved, least)
                    if gain > best:
                        best, second = gain, t
        if second < 0 or highest - lowest < eps:
            return step
        other = K[second]
        curved = max(row[first] + other[second] - 2.0 * row[second], least)
        # move a_first by y_first d and a_second by -y_second d
        d = (-y[first] * slope[first] + y[second] * slope[second]) / curved
        room = C[first] - a[first] if y[first] > 0 else a[first]
        room_other = a[second] if y[second] > 0 else C[second] - a[second]
        d = min(d, room, room_other)
        change, change_other = y[first] * d, -y[second] * d
        a[first] = _snapped(a[first] + change, C[first])
        a[second] = _snapped(a[second] + change_other, C[second])
        for t in range(n):
            slope[t] += y[t] * d * (row[t] - other[t])
    return max_iter


@numba.njit(cache=True)
def singles(K, C, y, a, slope, eps, max_iter):  # type: ignore[no-untyped-def]
    """Coordinate descent on 1/2 a'Qa - 1'a in the box, by the row with the largest gain; otherwise as :func:`pairs`."""
    n, least = len(a), _least_curvature(K)
    for step in range(max_iter):
        chosen, best, worst = -1, 0.0, 0.0
        for t in range(n):
            violated = slope[t]
            if (violated > 0 and a[t] <= 0) or (violated < 0 and a[t] >= C[t]):
                continue
            worst = max(worst, abs(violated))
            gain = violated * violated / max(K[t, t], least)
            if gain > best:
                best, chosen = gain, t
        if chosen < 0 or worst < eps:
            return step
        row = K[chosen]
        moved = min(max(a[chosen] - slope[chosen] / max(row[chosen], least), 0.0), C[chosen])
        change = moved - a[chosen]
        a[chosen] = moved
        for t in range(n):
            slope[t] += y[t] * y[chosen] * change * row[t]
    return max_iter


@numba.njit(cache=True)
def _least_curvature(K):  # type: ignore[no-untyped-def]
    """The curvature below which steps are round-off, from the largest diagonal entry."""
    largest = 0.0
    for t in range(len(K)):
        largest = max(largest, K[t, t])
    return max(1e-12 * largest, 1e-300)


@numba.njit(cache=True)
def _snapped(value, top):  # type: ignore[no-untyped-def]
    """The value, moved exactly to a bound if it is beyond it or within round-off of it."""
    if value <= 1e-14 * top:
        return 0.0
    return top if value >= (1.0 - 1e-14) * top else value
