"""What losses of means m_i = exp(f_i) share: the checks of y, and exponentials that cannot overflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import as_columns
from cvxstructreg.core.loss import Loss
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property

#: Exponents are cut here in derivatives, so that these stay finite; values beyond are infinite long before.
LARGEST_EXPONENT = 300.0


@dataclass(frozen=True, eq=False, repr=False)
class LogLinkLoss(Loss):
    """sum_i s_i d(y_i, exp(f_i)) / 2 with the unit deviance d of a family of nonnegative y: never negative."""

    def _encode(self, y: Any) -> Array:
        values = as_columns(y, "y")
        if values.shape[1] != 1:
            raise ValueError(f"y must have one value for each row, got shape {values.shape}; use one loss per output")
        if (values < 0).any():
            raise ValueError(self._says_negative(float(values.min())))
        return values

    def _says_negative(self, lowest: float) -> str:
        return f"y must be nonnegative, got {lowest:g}; use Squared(y) for values of both signs"

    @cached_property
    def _log_y(self) -> Array:
        """log y, and 0 where y is zero."""
        return np.log(np.where(self.y > 0, self.y, 1.0))

    def _total(self, terms: Array) -> float:
        """sum s times terms, which may be infinite in rows of weight zero."""
        s = self.weight_column
        return float((s * terms if self._all_count else np.where(s > 0, s * terms, 0.0)).sum())

    @cached_property
    def _all_count(self) -> bool:
        """Whether no row has weight zero."""
        return bool(np.all(self.weight_column > 0))

    def is_nonnegative(self, shape: tuple[int, int]) -> bool:
        """True: deviances are, which the sign rules of CVXPY do not detect."""
        return True

    def gains(self, columns: Array) -> sp.csr_array:
        """Minus the scores of rows with y = 0, whose loss decreases forever; other scores must not move."""
        counted = np.asarray(self.sample_weight) > 0
        positive = self.y[:, 0] > 0
        moving, fixed = columns[counted & ~positive], columns[counted & positive]
        return sp.csr_array(np.vstack([-moving, fixed, -fixed]))


def over_weights(u: Array, s: Array) -> Array:
    """u / s, zero for rows of weight zero."""
    return np.divide(u, s, out=np.zeros_like(u), where=s > 0)


def safe_exp(z: Array) -> Array:
    """exp(z), cut so that derivatives stay finite."""
    return np.asarray(np.exp(np.minimum(z, LARGEST_EXPONENT)))
