"""The folds of a cross-validated estimator."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from cvxstructreg.estimators.linear import LinearEstimator, Matrix, TrainingData
from cvxstructreg.estimators.row_blocks import block_folds
from cvxstructreg.row_blocks.design import RowBlocks


class Folded(LinearEstimator):
    """A linear estimator with the parameter ``cv``."""

    cv: Any

    def _labels(self, target: NDArray[Any]) -> NDArray[Any]:
        return self.classes_[target] if is_classifier(self) else target

    def _splits(self, data: TrainingData, weights: Matrix | None) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        labels = self._labels(data.target)
        splits = block_folds(data.X, self.cv) if isinstance(data.X, RowBlocks) else None
        if splits is None:
            rows = labels if isinstance(data.X, RowBlocks) else data.X
            splits = list(check_cv(self.cv, labels, classifier=is_classifier(self)).split(rows, labels))
        if not splits:
            raise ValueError(f"cv has no folds: {self.cv!r}; use at least two")
        for number, (train, test) in enumerate(splits):
            if weights is not None and not (weights[train].any() and weights[test].any()):
                raise ValueError(
                    f"fold {number}: sample_weight is zero on all training rows or on all test rows; use fewer folds"
                )
            if is_classifier(self):
                missing = np.setdiff1d(np.arange(len(self.classes_)), data.target[train])
                if missing.size:
                    label = self.classes_.tolist()[missing[0]]
                    raise ValueError(
                        f"fold {number} has no training row of class {label!r}; use fewer folds, or a stratified cv"
                    )
        return splits

    def _without_names(self) -> Self:
        """Return a copy without column names, for arrays."""
        bare = copy(self)
        bare.__dict__.pop("feature_names_in_", None)
        return bare
