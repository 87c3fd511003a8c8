"""Absolute values and squares that begin beyond a margin: the dead zone of dissimilar pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import Atom, freeze
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class DeadZone(Atom):
    """sum_p c_p (|z_p| - margin)_+, zero as long as |z_p| is within the margin.

    Examples
    --------
    >>> DeadZone([1.0, 2.0], 0.5)([-3.0, 0.4])
    2.5
    """

    weights: Any
    margin: float

    power: ClassVar[int] = 1
    formula: ClassVar[str] = "sum_p c_p (|z_p| - margin)_+"
    convention: ClassVar[str] = "a single output or each output by itself"

    def __post_init__(self) -> None:
        freeze(self, weights=np.asarray(self.weights, dtype=float), margin=float(self.margin))

    @property
    def size(self) -> int | None:
        """Number of entries."""
        return int(self.weights.size)

    @property
    def _c(self) -> Array:
        return np.asarray(self.weights[:, None])

    def _beyond(self, z: Array) -> Array:
        return np.maximum(np.abs(z) - self.margin, 0.0)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        beyond = cp.pos(cp.abs(z) - self.margin)
        return cp.sum(cp.multiply(np.broadcast_to(self._c, z.shape), beyond**self.power))

    def value(self, z: Array) -> float:
        """The sum over entries."""
        return float(np.sum(self._c * self._beyond(z) ** self.power))

    def prox(self, v: Array, t: float) -> Array:
        """The part beyond the margin is shortened by t c; the rest stays."""
        beyond = self._beyond(v)
        return v - np.sign(v) * np.minimum(beyond, t * self._c)

    def conj(self, u: Array) -> float:
        """margin |u| where |u| <= c, else infinite."""
        c = np.broadcast_to(self._c, u.shape)
        if np.any(np.abs(u) > c * (1.0 + 1e-12)):
            return np.inf
        return self.margin * float(np.abs(u).sum())

    def into_domain(self, u: Array) -> Array:
        """u clipped to |u| <= c."""
        return np.clip(u, -self._c, self._c)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Any, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [(cls([1.0, 0.5, 2.0], 0.5), (3, 1)), (cls([1.0, 0.0], 1.5), (2, 2))]


class SquaredDeadZone(DeadZone):
    """sum_p c_p ((|z_p| - margin)_+)^2.

    Examples
    --------
    >>> SquaredDeadZone([1.0, 2.0], 0.5)([-3.0, 0.4])
    6.25
    """

    power: ClassVar[int] = 2
    formula: ClassVar[str] = "sum_p c_p ((|z_p| - margin)_+)^2"

    def grad(self, z: Array) -> Array:
        """2 c times the part beyond the margin."""
        return np.asarray(2.0 * self._c * np.sign(z) * self._beyond(z))

    def hess_diag(self, z: Array) -> Array:
        """2 c beyond the margin, else 0."""
        return np.where(np.abs(z) > self.margin, 2.0 * self._c, 0.0)

    def hessp(self, z: Array, p: Array) -> Array:
        """The diagonal Hessian times p."""
        return self.hess_diag(z) * p

    def lipschitz(self) -> float:
        """2 max c."""
        return 2.0 * float(np.max(self.weights, initial=0.0))

    def prox(self, v: Array, t: float) -> Array:
        """The part beyond the margin is divided by 1 + 2 t c."""
        beyond = self._beyond(v)
        return v - np.sign(v) * (beyond - beyond / (1.0 + 2.0 * t * self._c))

    def conj(self, u: Array) -> float:
        """margin |u| + u^2 / (4 c); infinite if u is not zero for some c = 0."""
        c = np.broadcast_to(self._c, u.shape)
        if np.any(u[c == 0]):
            return np.inf
        used = c > 0
        return self.margin * float(np.abs(u).sum()) + float(np.sum(u[used] ** 2 / (4.0 * c[used])))

    def into_domain(self, u: Array) -> Array:
        """Zero where c = 0."""
        return np.where(self._c > 0, u, 0.0)
