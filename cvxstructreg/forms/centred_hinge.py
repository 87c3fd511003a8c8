"""Sums of hinges of centred rows: the one shape behind the sum-to-zero multiclass loss and dissimilarity pairs.

    h(Z) = sum_ij c_ij ((Z_ij - mean_j Z_i. ) - tau)_+^p

Centring each row is the sum-to-zero coding: a function of the centred scores does not change when all columns move
together, so every other term of a model is free to choose rows that sum to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.monotone_root import increasing_root
from cvxstructreg.runtime.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class CentredHinges:
    """The data of h: costs c (rows x k, nonnegative), the kink tau and the power p (1 or 2).

    Examples
    --------
    >>> hinges = CentredHinges(np.array([[0.0, 1.0, 1.0]]), -0.5, 1)
    >>> hinges.value(np.array([[2.0, 2.0, 2.0]]))
    1.0
    """

    costs: Array
    tau: float
    power: int

    __repr__ = short_repr

    def value(self, z: Array) -> float:
        """h(z)."""
        return float(np.sum(self.costs * np.maximum(0.0, centred(z) - self.tau) ** self.power))

    def expr_of_zero_sums(self, z: cp.Expression) -> cp.Expression:
        """h of rows that sum to zero already, by the constraints of the problem."""
        excess = cp.pos(z - self.tau)
        return cp.sum(cp.multiply(self.costs, excess if self.power == 1 else cp.square(excess)))


def centred(z: Array) -> Array:
    """Rows minus their means."""
    return z - z.mean(axis=1, keepdims=True)


def centred_expr(z: cp.Expression) -> cp.Expression:
    """Rows of a CVXPY expression minus their means."""
    k = z.shape[1]
    return z @ (np.eye(k) - np.full((k, k), 1.0 / k))


def prox(v: Array, costs: Array, tau: float, power: int) -> Array:
    """argmin_x  h(x) + 1/2 ||x - v||^2 with the costs (times the step) of h.

    The row mean of v stays. On the centred rows the multiplier of ``sum_j x_ij = 0`` is the root of a decreasing
    piecewise linear function: Newton steps inside a bracket.
    """
    mean = v.mean(axis=1, keepdims=True)
    a = v - mean

    def entries(shift: Array) -> tuple[Array, Array]:
        s = a - shift - tau
        if power == 1:
            return tau + np.where(s > costs, s - costs, np.minimum(s, 0.0)), ((s > costs) | (s < 0)).astype(float)
        slope = np.where(s > 0, 1.0 / (1.0 + 2.0 * costs), 1.0)
        return tau + s * slope, slope

    def minus_sum(shift: Array) -> tuple[Array, Array]:
        x, slope = entries(shift)
        return -x.sum(axis=1, keepdims=True), slope.sum(axis=1, keepdims=True)

    size = np.abs(a).max(axis=1, keepdims=True) + abs(tau) + 1.0  # of the root and of x, whatever the costs
    reach = size + costs.max(axis=1, keepdims=True)
    low = -(1.0 + 2.0 * costs.max(axis=1, keepdims=True)) * reach
    shift = increasing_root(minus_sum, low, reach, np.zeros_like(mean), 1e-14 * size)
    return centred(entries(shift)[0]) + mean


def multipliers(u: Array, costs: Array) -> Array:
    """The r with u = r centred that the conjugate is cheapest at: r_ij = 0 where the cost is 0, else r_i. >= 0.

    Row by row ``r = u - c``; a class that costs nothing fixes ``c = u_ij``, otherwise c is the smallest entry.
    """
    free = costs == 0
    c = np.where(free.any(axis=1), np.where(free, u, np.inf).min(axis=1), u.min(axis=1))
    return np.asarray(u - c[:, None])


def into_domain(u: Array, costs: Array, power: int) -> Array:
    """A point near u in the domain of the conjugate: its r clipped to r >= 0 and, for p = 1, r <= c."""
    r = np.maximum(multipliers(u, costs), 0.0)
    return centred(np.minimum(r, costs) if power == 1 else np.where(costs > 0, r, 0.0))


def conj(u: Array, costs: Array, tau: float, power: int) -> float:
    """sum tau r (+ r^2 / (4c) for p = 2) with r >= 0, r <= c for p = 1; rows of u sum to zero."""
    scale = 1e-11 * max(float(np.abs(u).max(initial=0.0)), float(costs.max(initial=0.0)))
    if np.any(np.abs(u.sum(axis=1, keepdims=True)) > scale):
        return np.inf
    r = multipliers(u, costs)
    if np.any(r < -scale) or np.any((costs == 0) & (np.abs(r) > scale)):
        return np.inf
    if power == 1:
        return np.inf if np.any(r > costs + scale) else float(tau * r.sum())
    positive = costs > 0
    return float(tau * r.sum() + np.sum(r[positive] ** 2 / (4.0 * costs[positive])))
