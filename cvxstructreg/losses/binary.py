"""The base class of losses of the margin m_i = y_i f_i with labels -1/+1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.loss import Loss, encode_binary
from cvxstructreg.forms.shortfall import shortfall
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class BinaryLoss(Loss):
    """sum_i s_i phi(y_i f_i) with labels 0/1, -1/+1, or any two values given as ``classes=(negative, positive)``.

    All rows may be of one class if there is an offset: then the scores of a constant may not be the best ones.
    """

    classes: Any = None

    def _encode(self, y: Any) -> Array:
        signs, classes = encode_binary(y, self.classes, one_class=self.offset is not None)
        freeze(self, classes=classes)
        return signs

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.offset is None and self._requires_offset():
            raise ValueError("sample_weight is zero for all examples of one class; a classifier needs examples of both")

    def _requires_offset(self) -> bool:
        """Whether all examples that count are of one class."""
        return len(np.unique(self.y[self.sample_weight > 0])) < 2

    def _shortfall(self, z: Array) -> Array:
        """(1 - y_i f_i)_+: by how much the margins are below 1."""
        return shortfall(self.y * z)

    def _shortfall_expr(self, z: cp.Expression) -> cp.Expression:
        return cp.pos(1 - self._margin_expr(z))

    def _slopes(self) -> tuple[Array, Array]:
        """The bounds of the dual variables of a loss whose slope in the margin is between -s_i and 0."""
        steepest = -self.y * self.weight_column
        return np.minimum(0.0, steepest), np.maximum(0.0, steepest)

    def _margin_expr(self, z: cp.Expression) -> cp.Expression:
        return cp.multiply(self.y, z)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls([0, 1, 1, 0, 1]), (5, 1)),
            (cls(["no", "yes", "no", "yes"], sample_weight=[1.0, 2.0, 0.0, 0.5], classes=("no", "yes")), (4, 1)),
            (cls([0, 1, 1, 0], sample_weight=[1.0, 2.0, 0.0, 0.5], offset=[0.5, -1.0, 2.0, 0.0]), (4, 1)),
        ]
