"""The hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cvxstructreg.losses.binary import BinaryLoss
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Hinge(BinaryLoss):
    """sum_i s_i (1 - y_i f_i)_+: a sum over rows, not averaged.

    Parameters
    ----------
    y : array of n labels
        0/1 or -1/+1; any two values with ``classes=(negative, positive)``.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.

    Examples
    --------
    >>> Hinge([-1, 1])([0.5, 0.5])
    2.0
    """

    formula: ClassVar[str] = "sum_i s_i (1 - y_i f_i)_+"
    convention: ClassVar[str] = "summed over rows (not averaged), y in {-1, +1}"

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self._weighted_sum(self._shortfall_expr(z))

    def value(self, z: Array) -> float:
        """sum s (1 - yz)_+."""
        return float(np.sum(self.weight_column * self._shortfall(z)))

    def prox(self, v: Array, t: float) -> Array:
        """A margin below 1 moves up by t s, but not beyond 1."""
        m = self.y * v
        return self.y * np.maximum(m, np.minimum(m + t * self.weight_column, 1.0))

    def conj(self, u: Array) -> float:
        """sum y u with -y u in [0, s]."""
        a, s = -self.y * u, self.weight_column
        if np.any((a < -1e-12 * s) | (a > s + 1e-12 * s)):
            return np.inf
        return float(-np.sum(a))

    def constants(self) -> list[Array]:
        """The kinks -1 and 1 of the loss as a function of one common score."""
        return [np.array([-1.0]), np.array([1.0])]

    def hinges(self) -> tuple[Array, Array]:
        """The labels and the weights of the rows."""
        return self.y[:, 0].copy(), np.array(self.sample_weight)

    def kinks(self) -> tuple[Array, Array, Array]:
        """Slope -s or s on one side of the kink y, and 0 on the other."""
        return *self._slopes(), np.array(self.y)

    def dual_box(self) -> tuple[Array, Array]:
        """-y u in [0, s]."""
        return self._slopes()
