"""Roots of increasing functions, computed for many entries at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxstructreg.numerics.arrays import Array

#: Most steps. Halving alone narrows any bracket of doubles to round-off in fewer.
STEPS = 200
#: Slopes are at least this times the residual, so that a Newton step cannot overflow.
LEAST_SLOPE = 1e-250


def increasing_root(
    function: Callable[[Array], tuple[Array, Array]], low: Array, high: Array, start: Array, tolerance: Array
) -> Array:
    """Return x with |f(x)| <= tolerance, entry by entry, for an increasing f whose root is in [low, high].

    ``function(x)`` returns f(x) and f'(x). A Newton step is taken if it stays inside the bracket and the last one
    halved the residual; otherwise the bracket is halved. Entries that have converged do not change.
    """
    x, previous = start, np.full_like(start, np.inf)
    for _ in range(STEPS):
        residual, slope = function(x)
        unsolved = np.abs(residual) > tolerance
        if not unsolved.any():
            break
        low, high = np.where(residual < 0, x, low), np.where(residual > 0, x, high)
        newton = x - residual / np.maximum(slope, LEAST_SLOPE * np.maximum(np.abs(residual), 1.0))
        good = (newton > low) & (newton < high) & (np.abs(residual) <= 0.5 * previous)
        x = np.where(unsolved, np.where(good, newton, 0.5 * (low + high)), x)
        previous = np.where(good, np.abs(residual), np.inf)
    return x
