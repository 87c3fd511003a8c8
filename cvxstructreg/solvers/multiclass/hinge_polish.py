"""A Newton step: the exact solution for a guess of which hinges are inactive, at their kink, or beyond it.

Let S_j be the rows at the kink in class j (for p = 2: beyond it). With U fixed elsewhere, optimality is linear in U_S
and b:

    [K (U_j - mean U)]_i + U_ij / (2 c_ij) [p = 2] - q_i b_j = -tau_i  (i in S_j),    q'(U_j - mean U) = 0,   1'b = 0

The classes are coupled only by the mean. So U_Sj and b_j are eliminated class by class, which leaves one system for the
mean.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.multiclass.hinge_bounds import Bounds


def zones(bounds: Bounds, v: Array, sigma: float) -> tuple[Array, Array, Array]:
    """The free entries (at the kink), their compliance 1 / (2c) for p = 2, and U at its upper bound."""
    costs, squared = bounds.costs, bounds.squared[:, None]
    pulled = sigma * (v - bounds.tau[:, None])
    beyond = ~squared & (pulled >= costs) & (costs > 0)
    free = (pulled > 0) & (costs > 0) & ~beyond
    compliance = np.where(squared & (costs > 0), 0.5 / np.where(costs > 0, costs, 1.0), 0.0)
    return free, compliance, np.where(beyond, costs, 0.0)


def work(free: Array) -> float:
    """The number of multiplications of :func:`polished`."""
    sizes, m = free.sum(axis=0).astype(float), len(free)
    return float(np.sum(sizes**3 / 3.0 + 2.0 * sizes**2 * m) + m**3)


def polished(bounds: Bounds, K: Array, free: Array, compliance: Array, fixed: Array) -> tuple[Array, Array] | None:
    """The (U, b) that solves the system for these zones; None if it is singular."""
    m, k = free.shape
    q = bounds.q
    fixed_pull = K @ fixed
    system, right = np.eye(m), fixed.sum(axis=1) / k
    slope, offset = np.zeros(m), 0.0  # sum_j b_j = offset + slope'mean
    parts = []
    tiny = 1e-13 * float(K.diagonal().max())
    for j in range(k):
        S = np.flatnonzero(free[:, j])
        if not S.size:
            if q is not None:
                return None
            parts.append((S, np.zeros(0), np.zeros((0, m)), 0.0, np.zeros(m)))
            continue
        rows = K[S]
        B = rows[:, S].copy()
        B[np.diag_indices(S.size)] += compliance[S, j] + tiny
        factor, failed = scipy.linalg.lapack.dpotrf(B, lower=1, overwrite_a=True)
        if failed:
            return None
        sides = [rows, (-bounds.tau[S] - fixed_pull[S, j])[:, None]]
        if q is not None:
            sides.append(q[S][:, None])
        solved = scipy.linalg.lapack.dpotrs(factor, np.hstack(sides), lower=1)[0]
        Q, p = solved[:, :m], solved[:, m]
        b0, b_slope = 0.0, np.zeros(m)
        if q is not None:
            e = solved[:, m + 1]
            weight = float(q[S] @ e)
            # b_j from q'(U_j - mean) = 0
            b0 = -(float(q @ fixed[:, j]) + float(q[S] @ p)) / weight
            b_slope = (q - q[S] @ Q) / weight
            p, Q = p + b0 * e, Q + np.outer(e, b_slope)
            offset, slope = offset + b0, slope + b_slope
        system[S] -= Q / k
        right[S] += p / k
        parts.append((S, p, Q, b0, b_slope))
    if q is not None:  # the equations for b, summed over the classes, are redundant; 1'b = 0 replaces the sum
        size = float(np.abs(slope).max()) or 1.0
        system += np.outer(q, slope / size)
        right = right - q * (offset / size)
    try:
        mean = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        return None
    U, b = fixed.copy(), np.zeros(k)
    for j, (S, p, Q, b0, b_slope) in enumerate(parts):
        U[S, j] = p + Q @ mean
        b[j] = b0 + float(b_slope @ mean)
    return (U, b) if np.isfinite(U).all() else None
