"""A smooth penalty that is quadratic near zero and linear far from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.quadratic_penalty import checked_diagonal
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class HuberPenalty(Atom):
    """sum_j c_j h(w_j), with h(x) = x^2 for |x| <= M and 2 M |x| - M^2 beyond: ``cp.huber``.

    A smooth substitute for L1 (Huber 1964), and a building block for :func:`cvxstructreg.compose`.

    Parameters
    ----------
    M : float
        Where the quadratic part ends; positive.
    weights : array of d nonnegative numbers, optional
        The c_j, ones by default.

    Examples
    --------
    >>> HuberPenalty(M=1.0)([0.5, -3.0])
    5.25
    """

    M: float = 1.0
    weights: Any = None

    formula: ClassVar[str] = "sum_j c_j huber(w_j, M)"
    convention: ClassVar[str] = "w^2 up to |w| = M, no factor 1/2; intercepts are not penalised"

    def __post_init__(self) -> None:
        if not np.isfinite(self.M) or not self.M > 0:
            raise ValueError(f"M must be positive and finite, got {self.M!r}")
        object.__setattr__(self, "M", float(self.M))
        object.__setattr__(self, "weights", checked_diagonal(self.weights, "HuberPenalty"))

    @property
    def size(self) -> int | None:
        """Number of weights, if there are any."""
        return None if self.weights is None else int(self.weights.size)

    @property
    def _c(self) -> Array:
        return np.ones((1, 1)) if self.weights is None else np.asarray(self.weights[:, None])

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        each = cp.huber(z, self.M)
        return cp.sum(each if self.weights is None else cp.multiply(np.broadcast_to(self._c, z.shape), each))

    def value(self, z: Array) -> float:
        """The sum over all entries."""
        size = np.abs(z)
        near = np.minimum(size, self.M)
        return float(np.sum(self._c * (near**2 + 2.0 * self.M * (size - near))))

    def grad(self, z: Array) -> Array:
        """2 c clip(z, -M, M)."""
        return np.asarray(2.0 * self._c * np.clip(z, -self.M, self.M))

    def hess_diag(self, z: Array) -> Array:
        """2 c where |z| <= M, else 0."""
        return np.where(np.abs(z) <= self.M, 2.0 * self._c, 0.0)

    def hessp(self, z: Array, p: Array) -> Array:
        """The diagonal Hessian times p."""
        return self.hess_diag(z) * p

    def lipschitz(self) -> float:
        """2 max c."""
        return 2.0 * float(self._c.max())

    def prox(self, v: Array, t: float) -> Array:
        """v / (1 + 2 t c) where that is at most M, else v moved towards zero by 2 t c M."""
        a = 2.0 * t * self._c
        near = v / (1.0 + a)
        return np.where(np.abs(near) <= self.M, near, v - np.sign(v) * a * self.M)

    def conj(self, u: Array) -> float:
        """sum_j u_j^2 / (4 c_j) if |u_j| <= 2 M c_j, else infinite."""
        c = np.broadcast_to(self._c, u.shape)
        if np.any(np.abs(u) > 2.0 * self.M * c * (1.0 + 1e-12)):
            return np.inf
        used = c > 0
        return float(np.sum(u[used] ** 2 / (4.0 * c[used])))

    def into_domain(self, u: Array) -> Array:
        """The nearest point with |u_j| <= 2 M c_j."""
        limit = 2.0 * self.M * self._c
        return np.clip(u, -limit, limit)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[HuberPenalty, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [(cls(), (4, 1)), (cls(0.3, weights=[1.0, 0.0, 2.5]), (3, 2))]
