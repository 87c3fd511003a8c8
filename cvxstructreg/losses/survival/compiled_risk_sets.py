"""Compiled loops over risk sets; the tests compare each of them with a few lines of NumPy.

The arrays are those of :class:`~cvxstructreg.losses.survival.risk_sets.RiskSets`: rows in the order of stratum and
time, ``block`` the block of each row, ``strata`` the first row of each stratum and that of the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]

#: Sums of exp(z) below this part of the largest exp(z) count as zero in second derivatives.
SMALLEST = 1e-150
#: Up to this range of x in each stratum, exp(x) relative to the largest is summed as it is: nothing vanishes. Beyond
#: that, sums are logarithms, which takes several times as long.
WIDEST = 300.0


@njit(cache=True)
def _log_add(a: float, b: float) -> float:
    """log(exp(a) + exp(b))."""
    high, low = (a, b) if a > b else (b, a)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))


@njit(cache=True)
def log_rows_behind(x: Floats, block: Ints, strata: Ints, out: Floats) -> None:
    """log of the sum of exp(x) over the risk set of each block, in ``out``."""
    for k in range(len(strata)):
        total = -np.inf
        for i in range(strata[k, 1] - 1, strata[k, 0] - 1, -1):
            total = _log_add(total, x[i])
            out[block[i]] = total


@njit(cache=True)
def expected_events(
    x: Floats, whole: Floats, of_events: Floats, block: Ints, strata: Ints, event: Ints, out: Floats
) -> None:
    """exp(x + log H) by row, in ``out``, with the cumulated hazard H: of earlier blocks and of its own.

    ``whole`` and ``of_events`` are the logs of the hazard of each block, for its rows without and with events.
    """
    for k in range(len(strata)):
        i, last, before = strata[k, 0], strata[k, 1], -np.inf
        while i < last:
            b = block[i]
            behind = _log_add(before, whole[b])
            own = _log_add(before, of_events[b])
            while i < last and block[i] == b:
                out[i] = np.exp(x[i] + (own if event[i] else behind))
                i += 1
            before = behind


@njit(cache=True)
def relative_sizes(x: Floats, strata: Ints, x_out: Floats, sizes: Floats) -> bool:
    """x minus the largest x of its stratum, and the exponential of that; False if the range of x is too wide."""
    for k in range(len(strata)):
        high, low = -np.inf, np.inf
        for i in range(strata[k, 0], strata[k, 1]):
            high, low = max(high, x[i]), min(low, x[i])
        if not high - low <= WIDEST:
            return False
        for i in range(strata[k, 0], strata[k, 1]):
            x_out[i] = x[i] - high
            sizes[i] = np.exp(x_out[i])
    return True


@njit(cache=True)
def relative_sums(
    sizes: Floats, block: Ints, strata: Ints, event: Ints, term_block: Ints, term_weight: Floats, term_part: Floats,
    at_risk: Floats, of_events: Floats, left: Floats, mass: Floats,
) -> None:  # fmt: skip
    """Sums of sizes of a modest range: S and D by block, S - part D by term, and sizes times the hazard by row."""
    whole, own = np.zeros(len(at_risk)), np.zeros(len(at_risk))
    for k in range(len(strata)):
        total = 0.0
        for i in range(strata[k, 1] - 1, strata[k, 0] - 1, -1):
            total += sizes[i]
            at_risk[block[i]] = total
            if event[i]:
                of_events[block[i]] += sizes[i]
    for t in range(len(term_block)):
        b = term_block[t]
        left[t] = at_risk[b] - term_part[t] * of_events[b]
        hazard = term_weight[t] / left[t]
        whole[b] += hazard
        own[b] += (1.0 - term_part[t]) * hazard
    for k in range(len(strata)):
        i, last, before = strata[k, 0], strata[k, 1], 0.0
        while i < last:
            b = block[i]
            while i < last and block[i] == b:
                mass[i] = sizes[i] * (before + (own[b] if event[i] else whole[b]))
                i += 1
            before += whole[b]


@njit(cache=True)
def curvature_product(
    order: Ints, block: Ints, strata: Ints, event: Ints, term_block: Ints, term_weight: Floats, term_part: Floats,
    mass: Floats, sizes: Floats, left: Floats, p: Floats, out: Floats,
) -> None:  # fmt: skip
    """q p - sum_l w_l v_l <v_l, p> in ``out``, with v_l the shares in the l-th risk set."""
    n_blocks = block[-1] + 1 if len(block) else 0
    behind, of_events = np.zeros(n_blocks), np.zeros(n_blocks)
    for k in range(len(strata)):
        total = 0.0
        for i in range(strata[k, 1] - 1, strata[k, 0] - 1, -1):
            moved = sizes[i] * p[order[i]]
            total += moved
            behind[block[i]] = total
            if event[i]:
                of_events[block[i]] += moved
    back, back_events = np.zeros(n_blocks), np.zeros(n_blocks)
    for t in range(len(term_block)):
        b = term_block[t]
        if left[t] > SMALLEST:
            pull = term_weight[t] * ((behind[b] - term_part[t] * of_events[b]) / left[t]) / left[t]
            back[b] += pull
            back_events[b] += term_part[t] * pull
    for k in range(len(strata)):
        i, last, total = strata[k, 0], strata[k, 1], 0.0
        while i < last:
            b = block[i]
            total += back[b]
            while i < last and block[i] == b:
                own = total - back_events[b] if event[i] else total
                out[order[i]] = mass[i] * p[order[i]] - sizes[i] * own
                i += 1
