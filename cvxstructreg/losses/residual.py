"""Base classes of losses of the residuals f_i - y_i."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cvxstructreg.core.atom import as_columns
from cvxstructreg.core.loss import Loss
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class ResidualLoss(Loss):
    """sum_i s_i phi(f_i - y_i) with real targets, one for each output."""

    def _encode(self, y: Any) -> Array:
        targets = as_columns(y, "y")
        if targets.shape[1] == 0:
            raise ValueError(f"y has no columns; it must have shape (n,) or (n, k), got {targets.shape}")
        return targets

    def shifted(self, by: Array) -> Self:
        """The loss with ``by`` added to the targets: its value at z + by equals the value of this loss at z."""
        return replace(self, y=self.y + by)

    @property
    def n_outputs(self) -> int:
        """Number of target columns."""
        return int(self.y.shape[1])


@dataclass(frozen=True, eq=False, repr=False)
class TwoSlopes(ResidualLoss):
    """sum_i s_i max(l (f_i - y_i), u (f_i - y_i)) with two slopes l < 0 < u."""

    def _slopes(self) -> tuple[float, float]:
        raise TypeError(f"{type(self).__name__} does not define _slopes()")

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        lower, upper = self._slopes()
        return self._weighted_sum(upper * cp.pos(z - self.y) - lower * cp.neg(z - self.y))

    def value(self, z: Array) -> float:
        """sum s max(l (z - y), u (z - y))."""
        lower, upper = self._slopes()
        residual = z - self.y
        return float(np.sum(self.weight_column * np.maximum(lower * residual, upper * residual)))

    def prox(self, v: Array, t: float) -> Array:
        """Residuals move towards zero by -t s l or t s u, but not beyond."""
        lower, upper = (t * self.weight_column * slope for slope in self._slopes())
        return v - np.clip(v - self.y, lower, upper)

    def conj(self, u: Array) -> float:
        """sum y u with s l <= u <= s u."""
        lower, upper = self.dual_box()
        slack = 1e-12 * np.maximum(upper, -lower)
        if np.any((u < lower - slack) | (u > upper + slack)):
            return np.inf
        return float(np.sum(self.y * u))

    def kinks(self) -> tuple[Array, Array, Array]:
        """The slopes of each row, with the kinks at the targets."""
        return *self.dual_box(), np.array(self.y)

    def dual_box(self) -> tuple[Array, Array]:
        """s l and s u."""
        s = np.broadcast_to(self.weight_column, self.y.shape)
        lower, upper = self._slopes()
        return lower * s, upper * s
