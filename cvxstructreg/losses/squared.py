"""The squared loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from cvxstructreg.losses.residual import ResidualLoss
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Squared(ResidualLoss):
    """1/2 sum_i s_i (F_i - y_i)^2: a sum over rows, halved, not averaged.

    Parameters
    ----------
    y : array of shape (n,) or (n, k)
        Targets.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.

    Examples
    --------
    >>> Squared([1.0, 3.0])([0.0, 1.0])
    2.5
    """

    formula: ClassVar[str] = "1/2 sum_i s_i (f_i - y_i)^2"
    convention: ClassVar[str] = "summed over rows (not averaged), with the factor 1/2"
    has_constant_curvature: ClassVar[bool] = True
    has_squared_residuals: ClassVar[bool] = True

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        roots = np.broadcast_to(np.sqrt(self.weight_column), self.y.shape)
        return 0.5 * cp.sum_squares(cp.multiply(roots, z - self.y))

    def value(self, z: Array) -> float:
        """1/2 sum s (z - y)^2."""
        return float(0.5 * np.sum(self.weight_column * (z - self.y) ** 2))

    def grad(self, z: Array) -> Array:
        """s (z - y)."""
        return self.weight_column * (z - self.y)

    def hess_diag(self, z: Array) -> Array:
        """s."""
        return np.broadcast_to(self.weight_column, z.shape).copy()

    def hessp(self, z: Array, p: Array) -> Array:
        """s p."""
        return self.weight_column * p

    def lipschitz(self) -> float:
        """max s."""
        return float(np.max(self.sample_weight))

    def prox(self, v: Array, t: float) -> Array:
        """(v + t s y) / (1 + t s)."""
        return (v + t * self.weight_column * self.y) / (1.0 + t * self.weight_column)

    def conj(self, u: Array) -> float:
        """sum u y + u^2 / (2 s); rows of weight zero need u = 0."""
        s = np.broadcast_to(self.weight_column, u.shape)
        if np.all(self.sample_weight > 0):
            return float(np.vdot(u, self.y) + 0.5 * np.vdot(u, u / self.weight_column))
        if np.any(u[s == 0]):
            return np.inf
        return float(np.sum(u * self.y) + 0.5 * np.sum(u[s > 0] ** 2 / s[s > 0]))

    def constants(self) -> list[Array]:
        """The weighted means of the targets."""
        return [np.ravel(self.weight_column.T @ self.y) / float(np.sum(self.sample_weight))]

    def dual_box(self) -> tuple[Array, Array]:
        """No bounds, except u = 0 for rows of weight zero."""
        width = np.broadcast_to(np.where(self.weight_column > 0, np.inf, 0.0), self.y.shape)
        return -width, width

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(rng.normal(size=5)), (5, 1)),
            (cls(rng.normal(size=(4, 2)), sample_weight=[1.0, 2.0, 0.0, 0.5]), (4, 2)),
            (cls(rng.normal(size=4), sample_weight=[1.0, 2.0, 0.0, 0.5], offset=rng.normal(size=4)), (4, 1)),
        ]
