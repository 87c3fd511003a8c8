"""The names of the features that a fitted model selects, and fits on parts of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples


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


#: Arguments of ``fit`` that belong to the columns or to the model, and are the same for all rows.
NOT_OF_ROWS = ("feature_names", "groups", "graph", "penalty")


def options_of_rows(options: dict[str, Any], n_rows: int, rows: Any) -> dict[str, Any]:
    """Return arguments of ``fit`` for some of the rows: lists and arrays with an entry for each row are cut.

    Examples
    --------
    >>> options_of_rows({"sample_weight": [1.0, 2.0, 3.0], "feature_names": ["a", "b", "c"]}, 3, [0, 2])
    {'sample_weight': [1.0, 3.0], 'feature_names': ['a', 'b', 'c']}
    """
    cut = {
        name: _safe_indexing(values, rows)
        for name, values in options.items()
        if name.rpartition("__")[2] not in NOT_OF_ROWS
        and (isinstance(values, list | tuple) or hasattr(values, "shape"))
        and np.ndim(values) > 0
        and _num_samples(values) == n_rows
    }
    return options | cut


def fitted_on(estimator: Any, X: Any, y: Any, rows: Any, options: dict[str, Any]) -> tuple[set[str], int]:
    """Fit a copy of the estimator on some of the rows; return what it selects, and the number of features."""
    own = options_of_rows(options, _num_samples(X), rows)
    model = clone(estimator).fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **own)
    return selected_names(model)
