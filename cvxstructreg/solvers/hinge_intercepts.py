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


def _column(costs: Array, kinks: Array, q: Array, squared: np.ndarray) -> tuple[Array, Array, Array]:
    """The kinks of one phi_j in order, its slope jumps + rise t - offset past each of them, and just there."""
    order = np.argsort(kinks)
    kinks, weight, squared = kinks[order], (costs * q)[order], squared[order]
    bent = np.where(squared, 2.0 * weight * q[order], 0.0)
    lines = np.cumsum([np.where(squared, 0.0, weight), bent, bent * kinks], axis=1)
    return kinks, lines, lines[0] + lines[1] * kinks - lines[2]


def best_intercepts(Z: Array, costs: Array, tau: Array, squared: np.ndarray, q: Array) -> Array | None:
    """b for the scores Z without intercept; None if a class costs nothing at all, and so has no best one."""
    from cvxstructreg.solvers import kernels_hinge

    if not np.all(costs.max(axis=0, initial=0.0) > 0):
        return None
    columns = []
    for j in range(Z.shape[1]):
        counted = np.flatnonzero(costs[:, j])
        kinks = (tau[counted] - Z[counted, j]) / q[counted]
        columns.append(_column(costs[counted, j], kinks, q[counted], squared[counted]))
    starts = np.cumsum([0, *(len(kinks) for kinks, _, _ in columns)])
    table = starts, np.concatenate([c[0] for c in columns]), np.hstack([c[1] for c in columns])
    after, b = np.concatenate([c[2] for c in columns]), np.empty(len(columns))

    def at(slope: float) -> float:
        return float(kernels_hinge.intercepts_at(slope, *table, after, b))

    # a phi_j without squares has no larger slope than past its last kink, from where on its b_j is free to grow
    caps = [np.inf if lines[1, -1] > 0 else float(slopes[-1]) for _, lines, slopes in columns]
    low, high = 0.0, min(*caps, 1e300)
    if high == 1e300:
        high = max(float(slopes[-1]) for _, _, slopes in columns)
        while at(high) < 0 and high < 1e300:
            high *= 2.0
    if at(low) >= 0:  # below all kinks, where nothing costs anything
        return np.asarray(b - b.mean())
    if at(high) <= 0:
        b[int(np.argmin(caps))] -= b.sum()
        return b
    kernels_hinge.bisected_intercepts(low, high, BISECTIONS, *table, after, b)
    return b
