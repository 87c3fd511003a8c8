"""The absolute loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from cvxstructreg.losses.residual import TwoSlopes


@dataclass(frozen=True, eq=False, repr=False)
class Absolute(TwoSlopes):
    """sum_i s_i |f_i - y_i|: a sum over rows, not averaged.

    Least absolute deviations: constant scores are fitted by the median. Twice ``Quantile(y, 0.5)``.

    Parameters
    ----------
    y : array of shape (n,) or (n, k)
        Targets.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.

    Examples
    --------
    >>> Absolute([1.0, 3.0])([0.0, 5.0])
    3.0
    """

    formula: ClassVar[str] = "sum_i s_i |f_i - y_i|"
    convention: ClassVar[str] = "summed over rows (not averaged), no factor 1/2"

    def _slopes(self) -> tuple[float, float]:
        return -1.0, 1.0

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(rng.normal(size=5)), (5, 1)),
            (cls(rng.normal(size=(4, 2)), sample_weight=[1.0, 2.0, 0.0, 0.5], offset=rng.normal(size=(4, 2))), (4, 2)),
        ]
