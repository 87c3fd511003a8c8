"""Sums of hinges of centred rows, shared by the sum-to-zero multiclass loss and by dissimilar pairs.

    h(Z) = sum_ij c_ij ((Z_ij - mean_j Z_i. ) - tau)_+^p

Centring each row is the sum-to-zero coding: a function of the centred scores does not change when all columns move
together, so every other term of a model is free to choose rows that sum to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.monotone_root import increasing_root
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.runtime.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class CentredHinges:
    """h by its costs c (rows x k, nonnegative), the kink tau and the power p (1 or 2).

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

    def excess(self, z: Array) -> Array:
        """By how much the centred entries are above the kink: (Z_ij - mean_j Z_i. - tau)_+."""
        return np.maximum(0.0, centred(z) - self.tau)

    def value(self, z: Array) -> float:
        """h(z)."""
        return float(np.sum(self.costs * self.excess(z) ** self.power))

    def expr(self, z: cp.Expression) -> cp.Expression:
        """h(z) as a CVXPY expression."""
        return self.expr_of_zero_sums(centred_expr(z))

    def expr_of_zero_sums(self, z: cp.Expression) -> cp.Expression:
        """h(z) for rows that the constraints of the problem make sum to zero."""
        excess = cp.pos(z - self.tau)
        return cp.sum(cp.multiply(self.costs, excess if self.power == 1 else cp.square(excess)))

    def grad(self, z: Array) -> Array:
        """The gradient for p = 2: 2 c times the excess, centred."""
        return centred(2.0 * self.costs * self.excess(z))

    def hessp(self, z: Array, p: Array) -> Array:
        """A generalised Hessian for p = 2, times p: 2 c on the entries above the kink.

        An entry at the kink counts half. With two classes both entries are there at once, and this is the Hessian.
        """
        active = np.heaviside(centred(z) - self.tau, 0.5)
        return centred(2.0 * self.costs * active * centred(p))

    def prox(self, v: Array, t: float) -> Array:
        """argmin_x  t h(x) + 1/2 ||x - v||^2.

        The row mean of v stays. On the centred rows the multiplier of ``sum_j x_ij = 0`` is the root of a decreasing
        piecewise linear function: Newton steps inside a bracket.
        """
        costs, tau = t * self.costs, self.tau
        mean = v.mean(axis=1, keepdims=True)
        a = v - mean

        def entries(shift: Array) -> tuple[Array, Array]:
            s = a - shift - tau
            if self.power == 1:
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

    def conj(self, u: Array) -> float:
        """sum tau r (+ r^2 / (4c) for p = 2) with r >= 0, r <= c for p = 1; rows of u sum to zero."""
        costs = self.costs
        scale = 1e-11 * max(float(np.abs(u).max(initial=0.0)), float(costs.max(initial=0.0)))
        if np.any(np.abs(u.sum(axis=1, keepdims=True)) > scale):
            return np.inf
        r = multipliers(u, costs)
        if np.any(r < -scale) or np.any((costs == 0) & (np.abs(r) > scale)):
            return np.inf
        if self.power == 1:
            return np.inf if np.any(r > costs + scale) else float(self.tau * r.sum())
        positive = costs > 0
        return float(self.tau * r.sum() + np.sum(r[positive] ** 2 / (4.0 * costs[positive])))

    def into_domain(self, u: Array) -> Array:
        """A point near u in the domain of the conjugate: its r clipped to r >= 0 and, for p = 1, r <= c."""
        r = np.maximum(multipliers(u, self.costs), 0.0)
        return centred(np.minimum(r, self.costs) if self.power == 1 else np.where(self.costs > 0, r, 0.0))


def centred(z: Array) -> Array:
    """Rows minus their means."""
    return z - z.mean(axis=1, keepdims=True)


def centred_expr(z: cp.Expression) -> cp.Expression:
    """Rows of a CVXPY expression minus their means."""
    k = z.shape[1]
    return z @ (np.eye(k) - np.full((k, k), 1.0 / k))


def multipliers(u: Array, costs: Array) -> Array:
    """The r with u = r centred at which the conjugate is smallest: r_ij = 0 where the cost is 0, else r_i. >= 0.

    Row by row ``r = u - c``; a class that costs nothing fixes ``c = u_ij``, otherwise c is the smallest entry.
    """
    free = costs == 0
    c = np.where(free.any(axis=1), np.where(free, u, np.inf).min(axis=1), u.min(axis=1))
    return np.asarray(u - c[:, None])
