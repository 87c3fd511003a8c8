"""The norm of the function of a Kernel model, if it is the only term on the weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cvxstructreg.numerics.arrays import Array

if TYPE_CHECKING:
    from cvxstructreg.forms.quadratic_form import QuadraticForm
    from cvxstructreg.forms.scaled_form import ScaledForm


def squared_norm(theta: Array, h: Array) -> float:
    """theta'h with h = gram theta, which can be negative only by round-off."""
    return max(0.0, float(np.sum(theta * h)))


@dataclass(frozen=True)
class ScaledFunctionNorm:
    """``scale * theta'h`` with h = gram theta, a function of theta or of h.

    Examples
    --------
    >>> gram, theta = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0])
    >>> norm = ScaledFunctionNorm(0.5)
    >>> norm.value(theta, gram @ theta)
    13.0
    >>> norm.grad(gram @ theta).tolist()  # by theta
    [5.0, 7.0]
    """

    scale: float

    @property
    def curvature(self) -> float:
        """The gradient by h divided by theta."""
        return 2.0 * self.scale

    def value(self, theta: Array, h: Array) -> float:
        """scale * theta'h."""
        return self.scale * squared_norm(theta, h)

    def grad(self, x: Array) -> Array:
        """2 scale x: the gradient by theta if x = h, and the gradient by h if x = theta."""
        return self.curvature * x

    def conj(self, square: float) -> float:
        """The conjugate u'gram u / (4 scale) at a dual point u of the scores, given ``square`` = u'gram u."""
        return square / (2.0 * self.curvature)

    def relative(self, forms: Iterable[ScaledForm]) -> list[tuple[float, QuadraticForm]]:
        """Quadratic terms with strengths divided by that of the norm."""
        return [(form.scale / self.scale, form.form) for form in forms]
