"""The sorted L1 norm: SLOPE (Bogdan, van den Berg, Sabatti, Su and Candes 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # SciPy loads scipy.special when it is first used

from cvxstructreg.core.atom import Atom, freeze
from cvxstructreg.core.checks import checked_count, real_array, real_number
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class SLOPE(Atom):
    """sum_j c_j |w|_(j), with |w|_(1) >= |w|_(2) >= ... the sorted absolute weights and c_1 >= c_2 >= ... >= 0.

    The largest weight has the largest cost, and correlated features get weights of equal size. The prox is one
    isotonic regression, by pooling adjacent violators (Bogdan et al. 2015, algorithm 3).

    Parameters
    ----------
    weights : array of d nonnegative numbers that never rise
        The c_j; the first is positive. See :meth:`bh` and :meth:`oscar` for usual choices.

    Examples
    --------
    >>> SLOPE([3.0, 2.0, 1.0])([1.0, -5.0, 2.0])
    20.0
    >>> SLOPE([3.0, 2.0, 1.0]).prox([1.0, -5.0, 4.5], 1.0).tolist()
    [0.0, -2.25, 2.25]
    """

    weights: Any

    formula: ClassVar[str] = "sum_j c_j |w|_(j)"
    convention: ClassVar[str] = "the largest c_j for the largest |w_j|; each output sorted by itself"

    def __post_init__(self) -> None:
        c = real_array(self.weights, "the weights of SLOPE")
        if c.ndim != 1 or not c.size:
            raise ValueError(
                f"the weights of SLOPE must be a list of d numbers, one for each feature, got shape {c.shape}; for "
                "equal weights use L1(), for others SLOPE.bh(d) or SLOPE.oscar(d, a, b)"
            )
        if not np.isfinite(c).all() or c.min() < 0:
            raise ValueError(f"the weights of SLOPE must be finite and at least 0, got {float(c.min())}")
        if np.any(np.diff(c) > 0):
            first = int(np.argmax(np.diff(c) > 0))
            raise ValueError(
                f"the weights of SLOPE must never rise, but weight {first + 1} is larger than weight {first} "
                f"({c[first + 1]:g} > {c[first]:g}); pass np.sort(weights)[::-1]"
            )
        if c[0] == 0:
            raise ValueError("all weights of SLOPE are zero; make the first ones positive, or leave out the term")
        freeze(self, weights=c)
        freeze(self, _sums=np.cumsum(self.weights))

    @classmethod
    def bh(cls, d: int, q: float = 0.1) -> SLOPE:
        """c_j = Phi^-1(1 - j q / (2 d)): controls the false discovery rate q for orthogonal features and unit noise.

        Examples
        --------
        >>> SLOPE.bh(3, q=0.1).weights.round(3).tolist()
        [2.128, 1.834, 1.645]
        """
        count, rate = checked_count(d, "d"), real_number(q, "q")
        if not 0.0 < rate < 1.0:
            raise ValueError(f"q must be between 0 and 1, got {rate}; the usual choices are 0.05 and 0.1")
        return cls(scipy.special.ndtri(1.0 - np.arange(1, count + 1) * rate / (2.0 * count)))

    @classmethod
    def oscar(cls, d: int, a: float = 1.0, b: float = 1.0) -> SLOPE:
        """c_j = a + b (d - j): a |w|_1 + b sum_(i < j) max(|w_i|, |w_j|) (OSCAR; Bondell and Reich 2008).

        Examples
        --------
        >>> SLOPE.oscar(3, a=1.0, b=0.5).weights.tolist()
        [2.0, 1.5, 1.0]
        """
        count, first, step = checked_count(d, "d"), real_number(a, "a"), real_number(b, "b")
        if not (first >= 0 and step >= 0):
            raise ValueError(f"a and b must be at least 0, got a = {first} and b = {step}")
        return cls(first + step * np.arange(count - 1, -1, -1.0))

    @property
    def size(self) -> int | None:
        """Number of weights."""
        return int(self.weights.size)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition: a sum of (c_j - c_(j+1)) times the sum of the j largest absolute values."""
        steps = self.weights - np.append(self.weights[1:], 0.0)
        return cp.sum(
            [
                steps[j] * cp.sum_largest(cp.abs(z[:, output]), j + 1)
                for j in np.flatnonzero(steps)
                for output in range(z.shape[1])
            ]
        )

    def value(self, z: Array) -> float:
        """The weighted sum of sorted absolute values."""
        return float(np.sum(self.weights[:, None] * -np.sort(-np.abs(z), axis=0)))

    def prox(self, v: Array, t: float) -> Array:
        """Sorted, shifted by t c, made decreasing by pooling adjacent violators, clipped at zero, and put back."""
        return np.column_stack([self._prox_of_column(column, t) for column in v.T])

    def _prox_of_column(self, v: Array, t: float) -> Array:
        from scipy.optimize import isotonic_regression  # slow to import

        size = np.abs(v)
        order = np.argsort(-size, kind="stable")
        pooled = isotonic_regression(size[order] - t * self.weights, increasing=False).x
        out = np.empty_like(v)
        out[order] = np.maximum(pooled, 0.0)
        return np.copysign(out, v)

    def dual_norm(self, u: Array) -> float:
        """max_i (|u|_(1) + ... + |u|_(i)) / (c_1 + ... + c_i), over all outputs."""
        sums = np.cumsum(-np.sort(-np.abs(u), axis=0), axis=0)
        return float(np.max(sums / self.__dict__["_sums"][:, None], initial=0.0))

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[SLOPE, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls([3.0, 2.0, 2.0, 0.5]), (4, 1)),
            (cls([1.0, 0.0, 0.0]), (3, 2)),
            (cls.bh(4), (4, 1)),
            (cls.oscar(3, 0.5, 1.0), (3, 2)),
        ]
