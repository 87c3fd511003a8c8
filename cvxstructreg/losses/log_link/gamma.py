"""The gamma loss: positive values whose spread grows with their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import wrightomega

from cvxstructreg.losses.log_link.base import LARGEST_EXPONENT, LogLinkLoss, over_weights
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp

#: The smallest number above -1.
ABOVE_MINUS_ONE = float(np.nextafter(-1.0, 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class Gamma(LogLinkLoss):
    """sum_i s_i (y_i exp(-f_i) + f_i - log y_i - 1): half the gamma deviance of means exp(f_i), not averaged.

    Parameters
    ----------
    y : array of n positive numbers
        Targets, such as costs or durations.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.

    Examples
    --------
    >>> round(Gamma([1.0, 2.0])([0.0, 0.0]), 4)
    0.3069
    """

    formula: ClassVar[str] = "sum_i s_i (y_i exp(-f_i) + f_i - log(y_i) - 1)"
    convention: ClassVar[str] = "summed over rows (not averaged), half the gamma deviance of means exp(f_i)"

    def _encode(self, y: Any) -> Array:
        values = super()._encode(y)
        if (values == 0).any():
            remedy = "use Tweedie(y) for positive values with zeros, or model the zeros apart with Logistic"
            raise ValueError(f"y must be positive, got 0; {remedy}")
        return values

    def _says_negative(self, lowest: float) -> str:
        return f"y must be positive, got {lowest:g}; use Squared(y) for values of both signs"

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self._weighted_sum(cp.multiply(self.y, cp.exp(-z)) + z - self._log_y - 1.0)

    def value(self, z: Array) -> float:
        """sum s (e^-r - 1 + r) with r = z - log y."""
        r = z - self._log_y
        with np.errstate(over="ignore", invalid="ignore"):
            return self._total(np.expm1(-r) + r)

    def _minus_r(self, z: Array) -> Array:
        """log y - z, cut so that derivatives stay finite."""
        return np.minimum(self._log_y - z, LARGEST_EXPONENT)

    def grad(self, z: Array) -> Array:
        """s (1 - y e^-z)."""
        return -self.weight_column * np.expm1(self._minus_r(z))

    def hess_diag(self, z: Array) -> Array:
        """s y e^-z."""
        return self.weight_column * np.exp(self._minus_r(z))

    def derivatives(self, z: Array) -> tuple[float, Array, Array]:
        """All three from y e^-z, unless that overflows."""
        minus_r = self._log_y - z
        if minus_r.max() > LARGEST_EXPONENT:
            return self.value(z), self.grad(z), self.hess_diag(z)
        s, growth = self.weight_column, np.expm1(minus_r)
        return self._total(growth - minus_r), -s * growth, s * np.exp(minus_r)

    def hessp(self, z: Array, p: Array) -> Array:
        """s y e^-z p."""
        return self.hess_diag(z) * p

    def prox(self, v: Array, t: float) -> Array:
        """With a = v - t s, the x of x = a + t s y e^-x, by the Wright omega function."""
        s = t * self.weight_column
        a = v - s
        with np.errstate(divide="ignore"):
            logs = np.log(s) + self._log_y
        omega = np.where(s > 0, wrightomega(np.where(s > 0, logs - a, 0.0)), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = logs - np.log(omega)  # the same number; a + omega would lose digits for large omega
        return np.where(omega > 1.0, far, a + omega)

    def conj(self, u: Array) -> float:
        """sum s (a log a - a + 1) + u log y with a = 1 - u / s >= 0."""
        s = self.weight_column
        ratio = u / s if self._all_count else over_weights(u, s)
        if ratio.max() > 1.0 + 1e-12 or (not self._all_count and np.any(u[s == 0])):
            return np.inf
        ratio = np.minimum(ratio, 1.0)
        logs = np.log1p(np.maximum(-ratio, ABOVE_MINUS_ONE))  # where a is zero, so is a log a
        return float((s * ((1.0 - ratio) * logs + ratio)).sum() + (u * self._log_y).sum())

    def constants(self) -> list[Array]:
        """The logarithm of the mean."""
        return [np.array([np.log(np.average(self.y[:, 0], weights=self.sample_weight))])]

    def dual_box(self) -> tuple[Array, Array]:
        """u <= s, and u = 0 for rows of weight zero."""
        s = self.weight_column
        return np.where(s > 0, -np.inf, 0.0), np.array(s)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        weights = [1.0, 2.0, 0.0, 0.5]
        return [
            (cls([0.1, 1.0, 3.0, 0.5, 12.0]), (5, 1)),
            (cls([2.0, 0.7, 1.0, 5.0], sample_weight=weights, offset=[0.5, -1.0, 2.0, 0.0]), (4, 1)),
        ]
