"""The Huber loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.checks import real_number
from cvxstructreg.losses.residual import ResidualLoss
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Huber(ResidualLoss):
    """sum_i s_i h(f_i - y_i), h(r) = r^2 / 2 up to |r| = delta and delta |r| - delta^2 / 2 beyond: a sum over rows.

    Parameters
    ----------
    y : array of shape (n,) or (n, k)
        Targets.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.
    delta : float
        Where the loss turns from a square into an absolute value, in the units of y. The usual 1.345 is for residuals
        of standard deviation one.

    Examples
    --------
    >>> Huber([1.0, 3.0], delta=1.0)([0.5, 5.0])
    1.625
    """

    delta: float = 1.345

    formula: ClassVar[str] = "sum_i s_i h(f_i - y_i)"
    convention: ClassVar[str] = (
        "summed over rows (not averaged), h(r) = r^2 / 2 up to |r| = delta, delta |r| - delta^2 / 2 beyond"
    )

    has_curvature_jumps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        delta = real_number(self.delta, "delta")
        if not 0.0 < delta < np.inf:
            remedy = "use Absolute(y) for the limit 0 and Squared(y) for the limit of large delta"
            raise ValueError(f"delta must be positive and finite, got {self.delta}; {remedy}")
        freeze(self, delta=delta)
        super().__post_init__()

    def _inner(self, z: Array) -> Array:
        """The residuals, clipped to [-delta, delta]."""
        return np.clip(z - self.y, -self.delta, self.delta)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self._weighted_sum(0.5 * cp.huber(z - self.y, self.delta))

    def value(self, z: Array) -> float:
        """sum s c (r - c / 2) with c the clipped residual r."""
        inner = self._inner(z)
        return float(np.sum(self.weight_column * inner * (z - self.y - 0.5 * inner)))

    def grad(self, z: Array) -> Array:
        """s times the clipped residual."""
        return self.weight_column * self._inner(z)

    def hess_diag(self, z: Array) -> Array:
        """s where the residual is below delta, else 0 (a generalised Hessian)."""
        return self.weight_column * (np.abs(z - self.y) < self.delta)

    def hessp(self, z: Array, p: Array) -> Array:
        """hess_diag * p."""
        return self.hess_diag(z) * p

    def lipschitz(self) -> float:
        """max s."""
        return float(np.max(self.sample_weight))

    def prox(self, v: Array, t: float) -> Array:
        """The residual r becomes r / (1 + t s), or moves by t s delta if it stays beyond delta."""
        step, residual = t * self.weight_column, v - self.y
        return v - np.clip(step / (1.0 + step) * residual, -step * self.delta, step * self.delta)

    def conj(self, u: Array) -> float:
        """sum y u + u^2 / (2 s) with |u| <= s delta."""
        s = np.broadcast_to(self.weight_column, u.shape)
        if np.any(np.abs(u) > s * self.delta * (1.0 + 1e-12)):
            return np.inf
        return float(np.sum(u * self.y) + 0.5 * np.sum(u[s > 0] ** 2 / s[s > 0]))

    def constants(self) -> list[Array]:
        """The roots of sum s clip(b - y, -delta, delta), a piecewise linear function of b, for each output."""
        return [np.array([self._best_constant(column) for column in self.y.T])]

    def _best_constant(self, y: Array) -> float:
        ends = np.concatenate([y - self.delta, y + self.delta])
        order = np.argsort(ends)
        ends, bends = ends[order], np.concatenate([self.sample_weight, -self.sample_weight])[order]
        slopes = np.maximum(np.cumsum(bends)[:-1], 0.0)
        values = np.concatenate([[0.0], np.cumsum(slopes * np.diff(ends))]) - self.delta * self.sample_weight.sum()
        return float(np.interp(0.0, values, ends))

    def dual_box(self) -> tuple[Array, Array]:
        """-s delta and s delta."""
        width = np.broadcast_to(self.delta * self.weight_column, self.y.shape)
        return -width, width

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        weights = [1.0, 2.0, 0.0, 0.5]
        return [
            (cls(rng.normal(size=5), delta=0.5), (5, 1)),
            (cls(rng.normal(size=(4, 2)), sample_weight=weights, offset=rng.normal(size=(4, 2))), (4, 2)),
        ]
