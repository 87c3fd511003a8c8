"""The squared loss of several tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from cvxstructreg.core.atom import freeze
from cvxstructreg.core.checks import real_array
from cvxstructreg.losses.squared import Squared
from cvxstructreg.numerics.arrays import Array


@dataclass(frozen=True, eq=False, repr=False)
class MultiTask(Squared):
    """1/2 sum_i s_i sum_j c_j (F_ij - y_ij)^2: the squared loss of k tasks, which share their features.

    The weights have one row for each feature and one column for each task. Group norms act on rows: with groups of one
    feature each, ``GroupLasso`` selects features for all tasks at once, and other groups select sets of features.

    Parameters
    ----------
    y : array of shape (n, k)
        Targets, one column for each task.
    rows, sample_weight, offset
        As for every loss: the labelled rows of the model, the s_i, and scores known in advance.
    task_weight : array of k positive numbers, optional
        c_j, ones by default. Tasks of different units are made comparable by 1 / variance.

    Examples
    --------
    >>> MultiTask([[1.0, 0.0], [3.0, 2.0]], task_weight=[1.0, 0.5])([[0.0, 0.0], [1.0, 0.0]])
    3.5
    """

    task_weight: Any = None

    formula: ClassVar[str] = "1/2 sum_i s_i sum_j c_j (F_ij - y_ij)^2"
    convention: ClassVar[str] = (
        "summed over rows and tasks (not averaged), with the factor 1/2; c_j are the task weights, 1 by default; "
        "group norms are over rows of the weights"
    )

    def _encode(self, y: Any) -> Array:
        targets = super()._encode(y)
        if np.ndim(y) != 2:
            raise ValueError(f"y must have one column for each task, got shape {np.shape(y)}; use Squared(y) for one")
        return targets

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task_weight is None:
            return
        weights = real_array(self.task_weight, "task_weight").reshape(-1)
        if weights.shape != (self.n_outputs,):
            raise ValueError(f"task_weight must have one number for each of the {self.n_outputs} tasks, got {weights}")
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError(f"task_weight must be positive and finite, got {weights}; drop the columns of other tasks")
        freeze(self, task_weight=weights)

    @property
    def weight_column(self) -> Array:
        """s_i c_j as an (n, k) array, or (n, 1) without task weights."""
        column = np.asarray(self.sample_weight).reshape(-1, 1)
        return column if self.task_weight is None else column * np.asarray(self.task_weight)

    def lipschitz(self) -> float:
        """max s c."""
        return float(np.max(self.weight_column))

    def constants(self) -> list[Array]:
        """The weighted means of the targets, which task weights do not change."""
        return [np.average(self.y, axis=0, weights=self.sample_weight)]

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        weights = [1.0, 2.0, 0.0, 0.5]
        return [
            (cls(rng.normal(size=(5, 3))), (5, 3)),
            (cls(rng.normal(size=(4, 2)), sample_weight=weights, task_weight=[1.0, 0.3]), (4, 2)),
            (cls(rng.normal(size=(4, 2)), task_weight=[1.0, 0.3], offset=rng.normal(size=(4, 2))), (4, 2)),
        ]
