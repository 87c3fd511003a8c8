"""The multiclass hinge loss of Lee, Lin and Wahba."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.loss import Loss, encode_multiclass, shift_into_box
from cvxstructreg.forms.centred_hinge import CentredHinges, centred, multipliers
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassHinge(Loss):
    """sum_i s_i sum_(j != y_i) (F_ij + 1/(k-1))_+ of the centred scores, which sum to zero over the k classes.

    Centring subtracts the row means from F, which gives the sum-to-zero coding. The optimum is that of the problem with
    the constraint ``F 1 = 0`` (Lee, Lin and Wahba 2004) for every penalty that does not grow when the columns of the
    weights are centred, such as ridge, kernel norm and graphs.

    Parameters
    ----------
    y : array of n labels
        Any values; column j of F belongs to the j-th of ``classes``.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.
    classes : sequence, optional
        The order of the columns of F; the sorted labels by default. A class may have no labelled row.

    Examples
    --------
    >>> MulticlassHinge([0, 1, 2])([[2, -1, -1], [0, 0, 0], [0, 0, 0]])
    2.0
    """

    classes: Any = None

    formula: ClassVar[str] = "sum_i s_i sum_(j != y_i) (F_ij + 1/(k-1))_+"
    convention: ClassVar[str] = "summed over rows (not averaged), of scores centred over the k classes (F 1 = 0)"

    def _encode(self, y: Any) -> Array:
        numbers, classes = encode_multiclass(y, self.classes)
        freeze(self, classes=classes)
        return np.eye(len(classes))[numbers]

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def _hinges(self) -> CentredHinges:
        return CentredHinges(self.weight_column * (1.0 - self.y), -1.0 / (self.n_outputs - 1), 1)

    def centred_hinges(self, k: int) -> CentredHinges:
        """Cost s_i for each class except the own one, with the kink at -1/(k-1)."""
        return self._hinges

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self._hinges.expr(z)

    def value(self, z: Array) -> float:
        """The hinges of the centred scores."""
        return self._hinges.value(z)

    def prox(self, v: Array, t: float) -> Array:
        """Row by row, with the multiplier of the sum by Newton steps."""
        return self._hinges.prox(v, t)

    def conj(self, u: Array) -> float:
        """-1/(k-1) sum r with u = r centred, 0 <= r_ij <= s_i, r_i,y_i = 0."""
        return self._hinges.conj(u)

    def into_domain(self, u: Array) -> Array:
        """r clipped to 0 <= r_ij <= s_i."""
        return self._hinges.into_domain(u)

    def constants(self) -> list[Array]:
        """Zero, and the code of each class: 1 for the class itself and -1/(k-1) for the others."""
        k, kink = self.n_outputs, self._hinges.tau
        return [np.zeros(k), *(np.where(np.arange(k) == j, 1.0, kink) for j in range(k))]

    def rebalance(self, u: Array, target: Array) -> Array | None:
        """The columns of r may sum to ``target`` plus any common number: choose it from u, then shift and clip."""
        costs = self._hinges.costs
        r = np.clip(multipliers(u, costs), 0.0, costs)
        lowest, highest = np.max(-target), np.min(costs.sum(axis=0) - target)
        if lowest > highest + 1e-12 * costs.sum():  # they are equal where all hinges are active
            return None
        common = np.clip(np.mean(r.sum(axis=0) - target), lowest, highest)
        for j in range(r.shape[1]):
            column = shift_into_box(r[:, j], np.zeros(len(r)), costs[:, j], float(target[j] + common))
            if column is None:
                return None
            r[:, j] = column
        return centred(r)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[MulticlassHinge, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls([0, 2, 1, 0]), (4, 3)),
            (cls(["b", "a", "b"], sample_weight=[2.0, 1.0, 0.5], classes=("a", "b", "c", "d")), (3, 4)),
            (cls([0, 1, 1]), (3, 2)),
            (cls([0, 2, 1], offset=rng.normal(size=(3, 3))), (3, 3)),
        ]
