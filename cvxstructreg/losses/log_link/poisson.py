"""The Poisson loss: counts, with or without exposures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import wrightomega, xlog1py, xlogy

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.checks import real_array
from cvxstructreg.losses.log_link.base import LARGEST_EXPONENT, LogLinkLoss, over_weights, safe_exp
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(LogLinkLoss):
    """sum_i s_i (m_i - y_i log m_i + y_i log y_i - y_i) with m_i = t_i exp(f_i): half the deviance, not averaged.

    Parameters
    ----------
    y : array of n counts
        Nonnegative integers.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.
    exposure : array of n positive numbers, optional
        t_i, the time or population that the count was observed in; ones by default. An exposure t is the same as an
        offset log t.

    Examples
    --------
    >>> round(Poisson([0, 1, 3])([0.0, 0.0, 0.0]), 4)
    2.2958
    >>> round(Poisson([0, 1, 3], exposure=[1.0, 2.0, 3.0])([0.0, 0.0, 0.0]), 4)
    1.3069
    """

    exposure: Any = None

    attains_infimum: ClassVar[bool] = False
    formula: ClassVar[str] = "sum_i s_i (t_i exp(f_i) - y_i f_i + c_i)"
    convention: ClassVar[str] = (
        "summed over rows (not averaged), half the Poisson deviance of means t_i exp(f_i) "
        "(c_i = y_i log(y_i / t_i) - y_i; t_i are the exposures, 1 by default)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, exposure=_checked_exposure(self.exposure, len(self.y)))
        if not np.any(self.y[self.sample_weight > 0]):
            raise ValueError(
                "all counts of positive weight are zero, so the best rate is zero and its logarithm diverges"
            )

    def _encode(self, y: Any) -> Array:
        counts = super()._encode(y)
        if np.any(counts % 1):
            first = float(counts[counts % 1 > 0][0])
            remedy = "for rates pass the counts as y and exposure=; for other nonnegative values use Tweedie(y)"
            raise ValueError(f"y must be whole counts, got {first:g}; {remedy}")
        return counts

    def _says_negative(self, lowest: float) -> str:
        return f"y must be counts of at least 0, got {lowest:g}; drop such rows, or use Squared(y) for differences"

    @cached_property
    def _t(self) -> Array:
        """The exposures as an (n, 1) array."""
        return np.ones((len(self.y), 1)) if self.exposure is None else np.asarray(self.exposure).reshape(-1, 1)

    @cached_property
    def _best(self) -> Array:
        """log(y / t), the score of the lowest loss; -log t for a count of zero."""
        return np.asarray(self._log_y - np.log(self._t))

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        constants = self.y * self._best - self.y
        return self._weighted_sum(cp.multiply(self._t, cp.exp(z)) - cp.multiply(self.y, z) + constants)

    def value(self, z: Array) -> float:
        """sum s y (e^r - 1 - r) with r = z - log(y / t), and s t e^z for counts of zero."""
        r = z - self._best
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.where(self.y > 0, self.y * (np.expm1(r) - r), np.exp(r))
            return self._total(terms)

    def grad(self, z: Array) -> Array:
        """s (t e^z - y)."""
        r = np.minimum(z - self._best, LARGEST_EXPONENT)
        return self.weight_column * np.where(self.y > 0, self.y * np.expm1(r), np.exp(r))

    def hess_diag(self, z: Array) -> Array:
        """s t e^z."""
        return self.weight_column * self._t * safe_exp(z)

    def derivatives(self, z: Array) -> tuple[float, Array, Array]:
        """All three from e^r with r = z - log(y / t), unless that overflows."""
        r = z - self._best
        if r.max() > LARGEST_EXPONENT:
            return self.value(z), self.grad(z), self.hess_diag(z)
        s, some, power, growth = self.weight_column, self.y > 0, np.exp(r), np.expm1(r)
        value = self._total(np.where(some, self.y * (growth - r), power))
        return value, s * np.where(some, self.y * growth, power), s * np.where(some, self.y, 1.0) * power

    def hessp(self, z: Array, p: Array) -> Array:
        """s t e^z p."""
        return self.hess_diag(z) * p

    def prox(self, v: Array, t: float) -> Array:
        """With a = v + t s y, the x of x + t s t_i e^x = a, by the Wright omega function."""
        s = t * self.weight_column
        a = v + s * self.y
        with np.errstate(divide="ignore"):
            logs = np.log(s * self._t)
        omega = np.where(s > 0, wrightomega(np.where(s > 0, a + logs, 0.0)), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.log(omega) - logs  # the same number; a - omega would lose digits for large omega
        return np.where(omega > 1.0, far, a - omega)

    def conj(self, u: Array) -> float:
        """sum s (m log(m / y) - m + y) + u log(y / t) with m = y + u / s >= 0; s (m log(m / t) - m) for y = 0."""
        s = self.weight_column
        ratio = over_weights(u, s)
        mean = self.y + ratio
        if np.any(mean < -1e-12 * (1.0 + self.y)) or np.any(u[s == 0]):
            return np.inf
        mean = np.maximum(mean, 0.0)
        relative = np.maximum(np.divide(ratio, self.y, out=np.zeros_like(ratio), where=self.y > 0), -1.0)
        counted = self.y * (xlog1py(1.0 + relative, relative) - relative)
        terms = np.where(self.y > 0, counted, xlogy(mean, mean) - mean)
        return float(np.sum(s * terms) + np.sum(u * self._best))

    def constants(self) -> list[Array]:
        """The logarithm of the common rate."""
        s = self.weight_column
        return [np.array([np.log(float(np.sum(s * self.y)) / float(np.sum(s * self._t)))])]

    def dual_box(self) -> tuple[Array, Array]:
        """u >= -s y, and u = 0 for rows of weight zero."""
        s = self.weight_column
        return -s * self.y, np.where(s > 0, np.inf, 0.0)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        weights = [1.0, 2.0, 0.0, 0.5]
        return [
            (cls([0, 1, 3, 0, 12]), (5, 1)),
            (cls([2, 0, 1, 5], sample_weight=weights, exposure=[1.0, 0.5, 2.0, 10.0]), (4, 1)),
            (cls([2, 0, 1, 5], sample_weight=weights, offset=[0.5, -1.0, 2.0, 0.0]), (4, 1)),
        ]


def _checked_exposure(exposure: Any, n: int) -> Any:
    if exposure is None:
        return None
    array = real_array(exposure, "exposure").reshape(-1)
    if array.shape != (n,):
        raise ValueError(f"exposure must have one number for each of the {n} counts, got shape {np.shape(exposure)}")
    if not np.isfinite(array).all():
        raise ValueError("exposure contains NaN or infinite values; drop the rows whose exposure is unknown")
    if (array <= 0).any():
        remedy = "drop rows without exposure (their counts carry no information)"
        raise ValueError(f"exposure must be positive, got {float(array.min()):g}; {remedy}")
    return array
