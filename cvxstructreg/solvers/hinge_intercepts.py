"""The best intercepts of given scores: where costs differ by orders of magnitude, a small error of b is a large gap.

    minimize over b, 1'b = 0    sum_j phi_j(b_j),     phi_j(t) = sum_i c_ij (Z_ij + q_i t - tau_i)_+^p_i

The phi_j are convex and meet in the constraint only: all have the slope of its multiplier at their b_j, and b_j grows
with it. So the multiplier is found by bisection, and b_j by looking up the slope among the sorted kinks of phi_j.
"""

from __future__ import annotations

import numpy as np

from cvxstructreg.core.atom import Array

#: Bisections of the multiplier: as many as double precision has use for.
BISECTIONS = 80


class _Column:
    """The slopes of one phi_j, at its kinks from the left to the right."""

    def __init__(self, costs: Array, kinks: Array, q: Array, squared: np.ndarray) -> None:
        order = np.argsort(kinks)
        self.kinks, weight = kinks[order], (costs * q)[order]
        bent = np.where(squared[order], 2.0 * weight * q[order], 0.0)
        # between kinks the slope is jumps + rise * t - offset
        self.jumps = np.cumsum(np.where(squared[order], 0.0, weight))
        self.rise = np.cumsum(bent)
        self.offset = np.cumsum(bent * self.kinks)
        self.after = self.jumps + self.rise * self.kinks - self.offset  # the slope right of each kink

    def at(self, slope: float) -> float:
        """The smallest t from where on phi has at least this slope; its last kink, if it never has."""
        i = int(np.searchsorted(self.after, slope))
        if i > 0 and self.rise[i - 1] > 0:
            reached = (slope - self.jumps[i - 1] + self.offset[i - 1]) / self.rise[i - 1]
            if i == len(self.kinks) or reached < self.kinks[i]:
                return float(max(reached, self.kinks[i - 1]))
        return float(self.kinks[min(i, len(self.kinks) - 1)])


def best_intercepts(Z: Array, costs: Array, tau: Array, squared: np.ndarray, q: Array) -> Array | None:
    """b for the scores Z without intercept; None if a class costs nothing at all, and so has no best one."""
    if not np.all(costs.max(axis=0, initial=0.0) > 0):
        return None
    columns = []
    for j in range(Z.shape[1]):
        counted = np.flatnonzero(costs[:, j])
        kinks = (tau[counted] - Z[counted, j]) / q[counted]
        columns.append(_Column(costs[counted, j], kinks, q[counted], squared[counted]))

    def at(slope: float) -> Array:
        return np.array([column.at(slope) for column in columns])

    # a phi_j without squares has no larger slope than past its last kink, from where on its b_j is free to grow
    caps = [np.inf if column.rise[-1] > 0 else float(column.after[-1]) for column in columns]
    low, high = 0.0, min(*caps, 1e300)
    if high == 1e300:
        high = max(float(column.after[-1]) for column in columns)
        while at(high).sum() < 0 and high < 1e300:
            high *= 2.0
    b_low, b_high = at(low), at(high)
    if b_low.sum() >= 0:  # below all kinks, where nothing costs anything
        return np.asarray(b_low - b_low.mean())
    if b_high.sum() <= 0:
        b_high[int(np.argmin(caps))] -= b_high.sum()
        return b_high
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        b = at(middle)
        if b.sum() < 0:
            low, b_low = middle, b
        else:
            high, b_high = middle, b
    below, above = float(b_low.sum()), float(b_high.sum())
    return np.asarray(b_low + (b_high - b_low) * (-below / (above - below)))
