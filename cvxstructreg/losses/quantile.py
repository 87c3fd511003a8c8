"""The quantile (pinball) loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.checks import real_number
from cvxstructreg.losses.residual import TwoSlopes


@dataclass(frozen=True, eq=False, repr=False)
class Quantile(TwoSlopes):
    """sum_i s_i (q (y_i - f_i)_+ + (1 - q) (f_i - y_i)_+): a sum over rows, not averaged.

    The pinball loss: constant scores are fitted by the q-th quantile of the targets.

    Parameters
    ----------
    y : array of shape (n,) or (n, k)
        Targets.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.
    quantile : float
        q, strictly between 0 and 1; 0.5, the default, fits the median.

    Examples
    --------
    >>> Quantile([1.0, 3.0], quantile=0.75)([0.0, 5.0])
    1.25
    """

    quantile: float = 0.5

    formula: ClassVar[str] = "sum_i s_i (q (y_i - f_i)_+ + (1 - q) (f_i - y_i)_+)"
    convention: ClassVar[str] = "summed over rows (not averaged), q the quantile; half the absolute loss for q = 1/2"

    def __post_init__(self) -> None:
        q = real_number(self.quantile, "quantile")
        if not 0.0 < q < 1.0:
            hint = f"; use {q / 100:g} for the {q:g} % quantile" if 1.0 < q < 100.0 else "; use 0.5 for the median"
            raise ValueError(f"quantile must be strictly between 0 and 1, got {self.quantile}{hint}")
        freeze(self, quantile=q)
        super().__post_init__()

    def _slopes(self) -> tuple[float, float]:
        return -self.quantile, 1.0 - self.quantile

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        weights = [1.0, 2.0, 0.0, 0.5]
        return [
            (cls(rng.normal(size=5), quantile=0.9), (5, 1)),
            (cls(rng.normal(size=(4, 2)), sample_weight=weights, quantile=0.2), (4, 2)),
            (cls(rng.normal(size=4), sample_weight=weights, offset=rng.normal(size=4), quantile=0.7), (4, 1)),
        ]
