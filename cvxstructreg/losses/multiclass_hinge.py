"""The multiclass hinge loss of Lee, Lin and Wahba."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.loss import Loss, encode_multiclass, shift_into_box
from cvxstructreg.forms import centred_hinge
from cvxstructreg.numerics.arrays import Array


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassHinge(Loss):
    """sum_i s_i sum_(j != y_i) (F_ij + 1/(k-1))_+ of the centred scores, which sum to zero over the k classes.

    Centring (F minus its row means) builds the sum-to-zero coding in: with any penalty that does not grow when the
    columns of the weights are centred (ridge, kernel norm, graphs) the optimum is that of the constrained problem
    ``F 1 = 0`` of Lee, Lin and Wahba (2004).

    Parameters
    ----------
    y : array of n labels
        Any values; column j of F belongs to the j-th of ``classes``.
    rows, sample_weight
        As for every loss: the labelled rows of the model, and the s_i.
    classes : sequence, optional
        The order of the columns of F; the sorted labels by default. A class without labelled row is allowed here.

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
    def _costs(self) -> Array:
        return self.weight_column * (1.0 - self.y)

    @property
    def _tau(self) -> float:
        return -1.0 / (self.n_outputs - 1)

    def centred_hinges(self, k: int) -> centred_hinge.CentredHinges:
        """Cost s_i for every class but the own, with the kink at -1/(k-1)."""
        return centred_hinge.CentredHinges(self._costs, self._tau, 1)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return cp.sum(cp.multiply(self._costs, cp.pos(centred_hinge.centred_expr(z) - self._tau)))

    def value(self, z: Array) -> float:
        """The hinges of the centred scores."""
        return float(np.sum(self._costs * np.maximum(0.0, centred_hinge.centred(z) - self._tau)))

    def prox(self, v: Array, t: float) -> Array:
        """Row by row, with the multiplier of the sum by Newton."""
        return centred_hinge.prox(v, t * self._costs, self._tau, power=1)

    def conj(self, u: Array) -> float:
        """-1/(k-1) sum r with u = r centred, 0 <= r_ij <= s_i, r_i,y_i = 0."""
        return centred_hinge.conj(u, self._costs, self._tau, power=1)

    def into_domain(self, u: Array) -> Array:
        """r clipped to 0 <= r_ij <= s_i."""
        return centred_hinge.into_domain(u, self._costs, power=1)

    def constants(self) -> list[Array]:
        """Zero, and the code of each class: 1 for the class and -1/(k-1) for the others."""
        k = self.n_outputs
        return [np.zeros(k), *(np.where(np.arange(k) == j, 1.0, self._tau) for j in range(k))]

    def rebalance(self, u: Array, target: Array) -> Array | None:
        """In r the columns may sum to ``target`` plus any common number: choose it near u, then shift and clip."""
        costs = self._costs
        r = np.clip(centred_hinge.multipliers(u, costs), 0.0, costs)
        lowest, highest = np.max(-target), np.min(costs.sum(axis=0) - target)
        if lowest > highest + 1e-12 * costs.sum():  # they are equal where all hinges are active
            return None
        common = np.clip(np.mean(r.sum(axis=0) - target), lowest, highest)
        for j in range(r.shape[1]):
            column = shift_into_box(r[:, j], np.zeros(len(r)), costs[:, j], float(target[j] + common))
            if column is None:
                return None
            r[:, j] = column
        return centred_hinge.centred(r)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[MulticlassHinge, tuple[int, int]]]:
        """Tiny instances with the shape they act on."""
        return [
            (cls([0, 2, 1, 0]), (4, 3)),
            (cls(["b", "a", "b"], sample_weight=[2.0, 1.0, 0.5], classes=("a", "b", "c", "d")), (3, 4)),
            (cls([0, 1, 1]), (3, 2)),
        ]
