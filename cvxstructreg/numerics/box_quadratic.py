"""A sparse convex quadratic function within finite bounds: active sets of primal and dual values.

    minimize over x    1/2 x'Qx + v'x    subject to    lower <= x <= upper

Each step solves for the entries that are at no bound. Those beyond a bound go there, and those at a bound with the
wrong slope are set free. For Laplacians this converges. In any case every x within the bounds proves a lower bound by
convexity:  -1/2 x'Qx + min over y within the bounds of (Qx + v)'y.

Reference: Hintermueller, Ito and Kunisch (2002), The primal-dual active set strategy as a semismooth Newton method.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.sparse_factor import factorised
from cvxstructreg.runtime import deadline

#: Steps, and the part of the diagonal that is added to a singular matrix.
STEPS, ADDED = 30, 1e-12


def lowest_within(Q: sp.csr_array, v: Array, lower: Array, upper: Array, x: Array, enough: float) -> Array:
    """The x with the best lower bound, until that misses the minimum by at most ``enough``.

    Examples
    --------
    >>> Q = sp.csr_array([[2.0, -2.0], [-2.0, 2.0]])
    >>> lowest_within(Q, np.array([-1.0, 0.5]), -np.ones(2), np.ones(2), np.zeros(2), 1e-9).round(6)
    array([1.  , 0.75])
    """
    found, best = np.clip(x, lower, upper), -np.inf
    x, scale = found, Q.diagonal()
    scale = np.where(scale > 0.0, scale, 1.0)
    slope = np.asarray(Q @ x) + v
    for _ in range(STEPS):
        ahead = x - slope / scale
        low, high = (ahead < lower) & (x <= lower), (ahead > upper) & (x >= upper)
        inside = np.clip(x, lower, upper)
        product = np.asarray(Q @ inside)
        half = 0.5 * float(inside @ product)
        bound = -half + float(np.sum(np.minimum((product + v) * lower, (product + v) * upper)))
        if bound > best:
            found, best = inside, bound
        free = np.flatnonzero(~(low | high))
        if half + float(v @ inside) - best <= enough or deadline.passed():
            break
        x = np.where(low, lower, np.where(high, upper, 0.0))
        inner = Q[free][:, free]
        if free.size:
            x[free] = factorised(sp.csr_array(inner + _little(inner))).solve(-(np.asarray(Q @ x) + v)[free])
        slope = np.asarray(Q @ x) + v
        slope[free] = 0.0
    return found


def _little(matrix: sp.csr_array) -> sp.dia_array:
    """A small diagonal that makes a positive semidefinite matrix positive definite."""
    diagonal = matrix.diagonal()
    return sp.diags_array(ADDED * (diagonal + (float(diagonal.max(initial=0.0)) or 1.0)))
