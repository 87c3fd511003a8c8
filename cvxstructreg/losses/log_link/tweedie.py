"""The Tweedie loss: nonnegative values, some of them exactly zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import wrightomega, xlogy

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.checks import real_number
from cvxstructreg.losses.log_link.base import LARGEST_EXPONENT, LogLinkLoss, over_weights
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.monotone_root import increasing_root
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Tweedie(LogLinkLoss):
    """sum_i s_i (exp((2-p) f_i) / (2-p) + y_i exp((1-p) f_i) / (p-1) - c_i): half the Tweedie deviance, not averaged.

    The variance of y is proportional to the p-th power of its mean exp(f_i). For 1 < p < 2 the values are sums of a
    Poisson number of gamma variables, such as the claims of one year: zero or positive.

    Parameters
    ----------
    y : array of n nonnegative numbers
        Targets.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.
    power : float
        p, strictly between 1 and 2; the limits are ``Poisson`` and ``Gamma``.

    Examples
    --------
    >>> round(Tweedie([0.0, 4.0], power=1.5)([0.0, 0.0]), 4)
    4.0
    """

    power: float = 1.5

    attains_infimum: ClassVar[bool] = False
    has_slow_prox: ClassVar[bool] = True
    formula: ClassVar[str] = "sum_i s_i (exp((2-p) f_i) / (2-p) + y_i exp((1-p) f_i) / (p-1) - c_i)"
    convention: ClassVar[str] = (
        "summed over rows (not averaged), half the Tweedie deviance of means exp(f_i) "
        "(c_i = y_i^(2-p) / ((2-p) (p-1)); p is the power)"
    )

    def __post_init__(self) -> None:
        p = real_number(self.power, "power")
        if not 1.0 < p < 2.0:
            remedy = {1.0: "use Poisson(y) for 1", 2.0: "use Gamma(y) for 2"}.get(p, "other powers are not convex")
            raise ValueError(f"power must be strictly between 1 and 2, got {self.power}; {remedy}")
        freeze(self, power=p)
        super().__post_init__()
        if not np.any(self.y[self.sample_weight > 0]):
            why = "the best mean is zero and its logarithm diverges"
            raise ValueError(f"all values of positive weight are zero: {why}; add rows with positive values")

    @property
    def _exponents(self) -> tuple[float, float]:
        """a = 2 - p and b = p - 1, with a + b = 1."""
        return 2.0 - self.power, self.power - 1.0

    @cached_property
    def _size(self) -> Array:
        """y^a, and 1 where y is zero: the loss is s y^a (expm1(a r) / a + expm1(-b r) / b) with r = z - log y."""
        return np.where(self.y > 0, self.y, 1.0) ** self._exponents[0]

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        a, b = self._exponents
        constants = np.where(self.y > 0, self._size, 0.0) / (a * b)
        return self._weighted_sum(cp.exp(a * z) / a + cp.multiply(self.y, cp.exp(-b * z)) / b - constants)

    def value(self, z: Array) -> float:
        """sum s y^a (expm1(a r) / a + expm1(-b r) / b); s e^(a z) / a where y is zero."""
        (a, b), r = self._exponents, z - self._log_y
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.where(self.y > 0, self._size * (np.expm1(a * r) / a + np.expm1(-b * r) / b), np.exp(a * r) / a)
            return self._total(terms)

    def _powers(self, z: Array) -> tuple[Array, Array]:
        """s y^a e^(a r) and s y^a e^(-b r), cut so that derivatives stay finite; the second is 0 where y is zero."""
        (a, b), r, size = self._exponents, z - self._log_y, self.weight_column * self._size
        up, down = np.exp(np.minimum(a * r, LARGEST_EXPONENT)), np.exp(np.minimum(-b * r, LARGEST_EXPONENT))
        return size * up, np.where(self.y > 0, size * down, 0.0)

    def grad(self, z: Array) -> Array:
        """s (e^(a z) - y e^(-b z))."""
        up, down = self._powers(z)
        return up - down

    def hess_diag(self, z: Array) -> Array:
        """s (a e^(a z) + b y e^(-b z))."""
        (a, b), (up, down) = self._exponents, self._powers(z)
        return a * up + b * down

    def derivatives(self, z: Array) -> tuple[float, Array, Array]:
        """The value, and both derivatives from the same powers."""
        (a, b), (up, down) = self._exponents, self._powers(z)
        return self.value(z), up - down, a * up + b * down

    def hessp(self, z: Array, p: Array) -> Array:
        """hess_diag * p."""
        return self.hess_diag(z) * p

    def prox(self, v: Array, t: float) -> Array:
        """The root of t f'(x) + x - v: by Newton steps inside a bracket, or by the Wright omega function for y = 0."""
        (a, b), positive = self._exponents, self.y > 0
        step = t * self.weight_column * self._size
        goal = np.where(positive, v - self._log_y, 0.0)

        def residual(r: Array) -> tuple[Array, Array]:
            up, down = np.exp(np.minimum(a * r, LARGEST_EXPONENT)), np.exp(np.minimum(-b * r, LARGEST_EXPONENT))
            return r - goal + step * (up - down), 1.0 + step * (a * up + b * down)

        # the root is between 0, where the loss is lowest, and the given point
        low, high = np.minimum(goal, 0.0), np.maximum(goal, 0.0)
        tolerance = 1e-15 * (1.0 + np.abs(goal))
        r = increasing_root(residual, low, high, goal / (1.0 + step), tolerance)
        with np.errstate(divide="ignore"):
            omega = wrightomega(np.where(step > 0, np.log(a * step) + a * v, -np.inf))
        return np.where(positive, r + self._log_y, v - omega / a)

    def conj(self, u: Array) -> float:
        """<u, z> - f(z) at the z with f'(z) = u, row by row; u >= 0 where y is zero."""
        (a, b), s = self._exponents, self.weight_column
        slope = over_weights(u, s * self._size)
        positive = self.y > 0
        if np.any(slope[~positive] < -1e-12) or np.any(u[s == 0]):
            return np.inf
        zero = np.maximum(slope, 0.0)
        goal = np.where(positive, slope, 0.0)

        def residual(r: Array) -> tuple[Array, Array]:
            up, down = np.exp(np.minimum(a * r, LARGEST_EXPONENT)), np.exp(np.minimum(-b * r, LARGEST_EXPONENT))
            return up - down - goal, a * up + b * down

        low, high = -np.log1p(np.maximum(-goal, 0.0)) / b, np.log1p(np.maximum(goal, 0.0)) / a
        tolerance = 4e-16 * (1.0 + np.abs(goal))
        r = increasing_root(residual, low, high, np.clip(np.arcsinh(goal), low, high), tolerance)
        counted = goal * r - np.expm1(a * r) / a - np.expm1(-b * r) / b
        terms = np.where(positive, counted, (xlogy(zero, zero) - zero) / a)
        return float(np.sum(s * self._size * terms) + np.sum(u * self._log_y))

    def constants(self) -> list[Array]:
        """The logarithm of the mean."""
        return [np.array([np.log(np.average(self.y[:, 0], weights=self.sample_weight))])]

    def dual_box(self) -> tuple[Array, Array]:
        """u >= 0 where y is zero, and u = 0 for rows of weight zero."""
        width = np.where(self.weight_column > 0, np.inf, 0.0)
        return np.where(self.y > 0, -width, 0.0), width

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        weights = [1.0, 2.0, 0.0, 0.5]
        return [
            (cls([0.1, 0.0, 3.0, 0.5, 12.0]), (5, 1)),
            (cls([2.0, 0.0, 1.0, 5.0], sample_weight=weights, power=1.9), (4, 1)),
            (cls([2.0, 0.0, 1.0, 5.0], sample_weight=weights, offset=[0.5, -1.0, 2.0, 0.0], power=1.1), (4, 1)),
        ]
