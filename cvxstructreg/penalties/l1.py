"""The sum of absolute values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.quadratic_penalty import checked_diagonal
from cvxstructreg.forms.separable import Separable
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class L1(Atom):
    """sum_j c_j |w_j|.

    The lasso (Tibshirani 1996): weights that do not help enough are exactly zero.

    Parameters
    ----------
    weights : array of d nonnegative numbers, optional
        The c_j, ones by default. A weight of zero leaves its feature unpenalised.

    Examples
    --------
    >>> L1()([1.0, -2.0])
    3.0
    >>> L1(weights=[0.0, 1.0])([1.0, -2.0])
    2.0
    """

    weights: Any = None

    formula: ClassVar[str] = "sum_j c_j |w_j|"
    convention: ClassVar[str] = "intercepts are not penalised"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", checked_diagonal(self.weights, "L1"))

    @property
    def size(self) -> int | None:
        """Number of weights, if there are any."""
        return None if self.weights is None else int(self.weights.size)

    def separable(self) -> Separable:
        """Absolute values without bounds."""
        return Separable.l1(np.array(1.0) if self.weights is None else self.weights[:, None])

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        if self.weights is None:
            return cp.sum(cp.abs(z))
        return cp.sum(cp.multiply(np.broadcast_to(self.weights[:, None], z.shape), cp.abs(z)))

    def value(self, z: Array) -> float:
        """sum c |z|."""
        return self.separable().value(z)

    def prox(self, v: Array, t: float) -> Array:
        """Soft thresholding."""
        return self.separable().prox(v, t)

    def conj(self, u: Array) -> float:
        """0 if |u_j| <= c_j for all j, else infinite."""
        return self.separable().conj(u)

    def dual_norm(self, u: Array) -> float:
        """max_j |u_j| / c_j; infinite if u_j is not zero for some c_j = 0."""
        c = np.broadcast_to(self.separable().weights, u.shape)
        if np.any(np.abs(u[c == 0]) > 1e-14 * np.abs(u).max(initial=0.0)):  # larger than round-off
            return np.inf
        return float(np.max(np.abs(u[c > 0]) / c[c > 0], initial=0.0))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[L1, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [(cls(), (4, 1)), (cls(weights=[1.0, 0.0, 2.5]), (3, 2))]
