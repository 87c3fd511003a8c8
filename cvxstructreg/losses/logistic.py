"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from cvxstructreg.losses.binary import BinaryLoss
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.monotone_root import increasing_root
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Logistic(BinaryLoss):
    """sum_i s_i log(1 + exp(-y_i f_i)): a sum over rows, not averaged.

    Parameters
    ----------
    y : array of n labels
        0/1 or -1/+1; any two values with ``classes=(negative, positive)``.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.

    Examples
    --------
    >>> round(Logistic([0, 1])([0.0, 0.0]), 4)
    1.3863
    """

    attains_infimum: ClassVar[bool] = False
    formula: ClassVar[str] = "sum_i s_i log(1 + exp(-y_i f_i))"
    convention: ClassVar[str] = "summed over rows (not averaged), y in {-1, +1}"

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self._weighted_sum(cp.logistic(-self._margin_expr(z)))

    def value(self, z: Array) -> float:
        """sum s log(1 + e^(-yz)), computed without overflow."""
        margin = self.y * z
        return float((self.weight_column * (np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0))).sum())

    def grad(self, z: Array) -> Array:
        """-s y / (1 + e^(yz))."""
        return -self.weight_column * self.y * expit(-self.y * z)

    def hess_diag(self, z: Array) -> Array:
        """s q (1 - q), where q is the probability of the other class."""
        q = expit(-self.y * z)
        return self.weight_column * q * (1.0 - q)

    def derivatives(self, z: Array) -> tuple[float, Array, Array]:
        """All three from the margins."""
        s, margin = self.weight_column, self.y * z
        q = expit(-margin)
        value = float((s * (np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0))).sum())
        sq = s * q
        return value, -self.y * sq, sq * (1.0 - q)

    def hessp(self, z: Array, p: Array) -> Array:
        """s q (1 - q) p."""
        return self.hess_diag(z) * p

    def lipschitz(self) -> float:
        """max s / 4."""
        return float(np.max(self.sample_weight)) / 4.0

    def prox(self, v: Array, t: float) -> Array:
        """Row by row: the margin m solves m - y v = t s / (1 + e^m), by Newton steps inside a bracket."""
        a, step = self.y * v, t * self.weight_column

        def residual(m: Array) -> tuple[Array, Array]:
            q = expit(-m)
            return m - a - step * q, 1.0 + step * q * (1.0 - q)

        start = a + step * expit(-a) / (1.0 + step * expit(-a) * expit(a))
        tolerance = 1e-15 * (1.0 + np.abs(a) + step)
        # the root lies between a and a + step, as 0 < 1/(1 + e^m) < 1
        return self.y * increasing_root(residual, a, a + step, start, tolerance)

    def conj(self, u: Array) -> float:
        """sum s (q log q + (1 - q) log(1 - q)) with q = -y u / s in [0, 1]."""
        s, counted = self.weight_column, self._counted
        if counted is None:
            q = -self.y * u / s
        elif np.any(u[~counted]):
            return np.inf
        else:
            q = np.where(counted, -self.y * u / np.where(counted, s, 1.0), 0.0)
        lowest, highest = q.min(), q.max()
        if lowest < -1e-12 or highest > 1.0 + 1e-12:
            return np.inf
        if lowest < 0.0 or highest > 1.0:
            q = np.clip(q, 0.0, 1.0)
        return float((s * (xlogy(q, q) + xlog1py(1.0 - q, -q))).sum())  # log(1 - q) would lose digits for small q

    def constants(self) -> list[Array]:
        """The log odds of the classes; zero if there is only one class, which has no best constant."""
        positive = float(np.sum(self.sample_weight[self.y[:, 0] > 0]))
        negative = float(np.sum(self.sample_weight[self.y[:, 0] < 0]))
        return [np.array([np.log(positive) - np.log(negative) if positive and negative else 0.0])]

    def dual_box(self) -> tuple[Array, Array]:
        """-y u / s in [0, 1]."""
        return self._slopes()
