"""Roots of increasing functions, many at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cvxstructreg.numerics.arrays import Array


def increasing_root(
    function: Callable[[Array], tuple[Array, Array]], low: Array, high: Array, start: Array, tolerance: Array
) -> Array:
    """x with |f(x)| <= tolerance, entry by entry, for increasing f with its root in [low, high].

    ``function(x)`` returns f(x) and f'(x). Newton steps are taken while they stay inside the bracket and halve the
    residual; otherwise the bracket is halved. An entry that has converged stays where it is.
    """
    x, previous = start, np.full_like(start, np.inf)
    for _ in range(200):
        residual, slope = function(x)
        unsolved = np.abs(residual) > tolerance
        if not unsolved.any():
            break
        low, high = np.where(residual < 0, x, low), np.where(residual > 0, x, high)
        newton = x - residual / np.maximum(slope, 1e-250 * np.maximum(np.abs(residual), 1.0))  # no overflow
        good = (newton > low) & (newton < high) & (np.abs(residual) <= 0.5 * previous)
        x = np.where(unsolved, np.where(good, newton, 0.5 * (low + high)), x)
        previous = np.where(good, np.abs(residual), np.inf)
    return x
