"""The squared norm of the weights, and of the function that they define."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.forms.quadratic_penalty import QuadraticPenalty, checked_diagonal
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Ridge(QuadraticPenalty):
    """||w||^2, or sum_j weights_j w_j^2: no factor 1/2 (Hoerl and Kennard 1970).

    Parameters
    ----------
    weights : array of d nonnegative numbers, optional
        Ones by default.

    Examples
    --------
    >>> Ridge()([1.0, 2.0])
    5.0
    >>> Ridge(weights=[1.0, 0.5])([1.0, 2.0])
    3.0
    """

    weights: Any = None

    formula: ClassVar[str] = "||w||^2"
    convention: ClassVar[str] = "no factor 1/2; intercepts are not penalised"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", checked_diagonal(self.weights, "Ridge"))

    @property
    def size(self) -> int | None:
        """Number of weights, if there are any."""
        return None if self.weights is None else int(self.weights.size)

    def quadratic(self, m: int) -> QuadraticForm:
        """The diagonal form for m features."""
        return QuadraticForm.diagonal_form(np.ones(m) if self.weights is None else self.weights)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        if self.weights is None:
            return cp.sum_squares(z)
        return cp.sum_squares(cp.multiply(np.broadcast_to(np.sqrt(self.weights)[:, None], z.shape), z))

    def lipschitz(self) -> float:
        """2 max c."""
        return 2.0 if self.weights is None else 2.0 * float(np.max(self.weights))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [(cls(), (4, 1)), (cls(weights=[1.0, 0.0, 2.5]), (3, 2))]


@dataclass(frozen=True, eq=False, repr=False)
class RKHSNorm(Ridge):
    """||f||^2 of the function: theta' gram theta for a Kernel model, ||w||^2 for a Linear one. No factor 1/2.

    With this penalty the same objective works for a linear model and for any kernel (Kimeldorf and Wahba 1971).

    Examples
    --------
    >>> RKHSNorm()
    RKHSNorm()
    """

    target: ClassVar[str] = "function"
    formula: ClassVar[str] = "||f||_K^2"
    convention: ClassVar[str] = (
        "theta' gram theta (||w||^2 for a linear model), no factor 1/2, intercepts not penalised"
    )

    def __post_init__(self) -> None:
        if self.weights is not None:
            raise ValueError("RKHSNorm takes no weights; use Ridge(weights=...) or Quadratic(matrix=...)")

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [(cls(), (4, 1))]
