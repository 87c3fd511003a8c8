"""Bounds on the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import Atom, freeze
from cvxstructreg.core.checks import real_array
from cvxstructreg.forms.separable import Separable
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Box(Atom):
    """0 if lower <= w_j <= upper for all j, else infinite.

    Known signs or limits of weights, as in least squares with bounds (Lawson and Hanson 1974).

    Parameters
    ----------
    lower, upper : number or array of d numbers
        May be infinite. The strength of the term has no effect.

    Examples
    --------
    >>> Box(-1, 1)([0.5, -1.0]), Box(-1, 1)([2.0, 0.0])
    (0.0, inf)
    """

    lower: Any = -np.inf
    upper: Any = np.inf

    formula: ClassVar[str] = "[lower <= w <= upper]"
    convention: ClassVar[str] = "a constraint: 0 inside, infinite outside, at every strength"

    def __post_init__(self) -> None:
        lower, upper = real_array(self.lower, "bounds"), real_array(self.upper, "bounds")
        if lower.ndim > 1 or upper.ndim > 1 or (lower.ndim and upper.ndim and lower.shape != upper.shape):
            raise ValueError(
                f"bounds must be single numbers or one for each feature, got shapes {lower.shape} and {upper.shape}"
            )
        if np.isnan(lower).any() or np.isnan(upper).any():
            raise ValueError("bounds must not be NaN; use -inf or inf for no bound")
        if np.any(lower > upper) or np.any(lower == np.inf) or np.any(upper == -np.inf):
            raise ValueError("every lower bound must be at most its upper bound, with a finite number between them")
        freeze(self, lower=lower, upper=upper)

    @property
    def size(self) -> int | None:
        """Number of bounds, if there is one for each feature."""
        return max(self.lower.size, self.upper.size) if self.lower.ndim or self.upper.ndim else None

    def separable(self) -> Separable:
        """Bounds without absolute values."""
        return Separable.bounds(*(b[:, None] if b.ndim else b for b in (self.lower, self.upper)))

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition: the indicator of the bounds."""
        constraints = []
        for bound, is_lower in ((self.lower, True), (self.upper, False)):
            full = np.broadcast_to(bound[:, None] if bound.ndim else bound, z.shape)
            rows, columns = np.nonzero(np.isfinite(full))
            if rows.size:
                given = full[rows, columns]
                constraints.append(z[rows, columns] >= given if is_lower else z[rows, columns] <= given)
        return cp.transforms.indicator(constraints, err_tol=1e-6) if constraints else cp.Constant(0.0)

    def value(self, z: Array) -> float:
        """0 inside the bounds, else infinite."""
        return self.separable().value(z)

    def prox(self, v: Array, t: float) -> Array:
        """v clipped to the bounds."""
        return self.separable().prox(v, t)

    def conj(self, u: Array) -> float:
        """sum of max(lower u, upper u)."""
        return self.separable().conj(u)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Any, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(-0.5, 0.25), (4, 1)),
            (cls([-np.inf, 0.0, -1.0], [0.5, np.inf, 1.0]), (3, 2)),
            (cls(0.1, 0.3), (2, 1)),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class NonNegative(Box):
    """0 if all weights are at least 0, else infinite (Lawson and Hanson 1974).

    Examples
    --------
    >>> NonNegative()([0.5, 0.0]), NonNegative()([0.5, -1.0])
    (0.0, inf)
    """

    lower: Any = 0.0
    formula: ClassVar[str] = "[w >= 0]"

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(self.lower != 0) or np.any(self.upper != np.inf):
            raise ValueError("NonNegative takes no bounds; use Box(lower, upper)")

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Any, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [(cls(), (3, 2))]
