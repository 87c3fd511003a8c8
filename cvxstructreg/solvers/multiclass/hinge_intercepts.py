"""The best intercepts for given scores. If costs differ by orders of magnitude, a small error of b causes a large gap.

    minimize over b, 1'b = 0    sum_j phi_j(b_j),     phi_j(t) = sum_i c_ij (Z_ij + q_i t - tau_i)_+^p_i

The phi_j are convex and coupled only by the constraint. At the optimum, each phi_j has the slope of the multiplier at
b_j, and b_j increases with the multiplier. So the multiplier is found by bisection, and b_j by a search for the slope
among the sorted kinks of phi_j.
"""

from __future__ import annotations

import numpy as np

from cvxstructreg.numerics.arrays import Array

#: Bisections of the multiplier, enough for double precision.
BISECTIONS = 80
#: Slopes beyond this count as infinite.
LARGEST = 1e300


def best_intercepts(Z: Array, costs: Array, tau: Array, squared: np.ndarray, q: Array) -> Array | None:
    """b for the scores Z without intercept; None if a class has no costs, so that its intercept is arbitrary."""
    from cvxstructreg.solvers.multiclass import compiled_hinge

    if not np.all(costs.max(axis=0, initial=0.0) > 0):
        return None
    size, k = Z.size, Z.shape[1]
    kinks, lines, after, b = np.empty(size), np.empty((3, size)), np.empty(size), np.empty(k)
    at_kink = np.where(costs > 0, (tau[:, None] - Z) / q[:, None], np.inf)
    order = np.argsort(at_kink, axis=0)
    starts = compiled_hinge.slopes_of_columns(at_kink, order, costs, squared, q, kinks, lines, after)
    table = starts, kinks, lines, after, b

    def at(slope: float) -> float:
        return float(compiled_hinge.intercepts_at(slope, *table))

    # without squares, the slope of phi_j is largest after the last kink, where b_j can grow without bound
    last = starts[1:] - 1
    caps = np.where(lines[1, last] > 0, np.inf, after[last])
    low, high = 0.0, min(float(caps.min()), LARGEST)
    if high == LARGEST:
        high = float(after[last].max())
        while at(high) < 0 and high < LARGEST:
            high *= 2.0
    if at(low) >= 0:  # below all kinks, where all costs are zero
        return np.asarray(b - b.mean())
    if at(high) <= 0:
        b[int(np.argmin(caps))] -= b.sum()
        return b
    compiled_hinge.bisected_intercepts(low, high, BISECTIONS, *table)
    return b
