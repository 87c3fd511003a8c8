"""The squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cvxstructreg.losses.binary import BinaryLoss
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class SquaredHinge(BinaryLoss):
    """sum_i s_i ((1 - y_i f_i)_+)^2: a sum over rows, not averaged and not halved.

    Parameters
    ----------
    y : array of n labels
        0/1 or -1/+1; any two values with ``classes=(negative, positive)``.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.

    Examples
    --------
    >>> SquaredHinge([-1, 1])([0.5, 0.5])
    2.5
    """

    formula: ClassVar[str] = "sum_i s_i ((1 - y_i f_i)_+)^2"
    convention: ClassVar[str] = "summed over rows (not averaged), no factor 1/2, y in {-1, +1}"
    has_curvature_jumps: ClassVar[bool] = True

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self._weighted_sum(cp.square(self._shortfall_expr(z)))

    def value(self, z: Array) -> float:
        """sum s (1 - yz)_+^2."""
        return float(np.sum(self.weight_column * self._shortfall(z) ** 2))

    def grad(self, z: Array) -> Array:
        """-2 s y (1 - yz)_+."""
        return -2.0 * self.weight_column * self.y * self._shortfall(z)

    def hess_diag(self, z: Array) -> Array:
        """2 s on the rows with margin below 1 (a generalised Hessian)."""
        return 2.0 * self.weight_column * (self.y * z < 1.0)

    def hessp(self, z: Array, p: Array) -> Array:
        """2 s p on the rows with margin below 1."""
        return self.hess_diag(z) * p

    def lipschitz(self) -> float:
        """2 max s."""
        return 2.0 * float(np.max(self.sample_weight))

    def prox(self, v: Array, t: float) -> Array:
        """The margin m < 1 becomes (m + 2ts) / (1 + 2ts)."""
        m, step = self.y * v, 2.0 * t * self.weight_column
        return self.y * np.where(m < 1.0, (m + step) / (1.0 + step), m)

    def conj(self, u: Array) -> float:
        """sum a^2 / (4 s) - a with a = -y u >= 0."""
        a, s = -self.y * u, self.weight_column
        if np.any(a < -1e-12 * s) or np.any(a[s == 0]):
            return np.inf
        return float(np.sum(a[s > 0] ** 2 / (4.0 * s[s > 0])) - np.sum(a))

    def dual_box(self) -> tuple[Array, Array]:
        """-y u >= 0, and u = 0 for rows of weight zero."""
        width = np.where(self.weight_column > 0, np.inf, 0.0)
        return np.where(self.y > 0, -width, 0.0), np.where(self.y > 0, 0.0, width)
