"""The names of the features that a fitted model selects, and fits on parts of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing


def selected_names(model: Any) -> tuple[set[str], int]:
    """Return the names of the features with a nonzero weight, and the number of features.

    ``model`` is a fitted estimator of this library, any linear model with ``coef_``, or a pipeline that ends in one.
    """
    last = model[-1] if hasattr(model, "steps") else model
    if not hasattr(last, "coef_"):
        raise TypeError(f"{type(last).__name__} has no coef_; selection needs a linear model")
    weights = np.atleast_2d(np.asarray(last.coef_))
    if hasattr(last, "selected_features"):
        return {row.name for row in last.selected_features()}, weights.shape[1]
    names = getattr(last, "feature_names_in_", None)
    labels = [f"x{j}" for j in range(weights.shape[1])] if names is None else list(map(str, names))
    return {labels[j] for j in np.flatnonzero(weights.any(axis=0))}, weights.shape[1]


def fitted_on(estimator: Any, X: Any, y: Any, rows: Any, options: dict[str, Any]) -> tuple[set[str], int]:
    """Fit a copy of the estimator on some of the rows; return what it selects, and the number of features."""
    model = clone(estimator).fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **options)
    return selected_names(model)
