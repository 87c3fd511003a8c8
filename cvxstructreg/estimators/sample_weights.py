"""Sample weights, class weights, and other columns of numbers for the loss."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length

Weights = NDArray[np.float64]


def checked_sample_weight(sample_weight: Any, X: Any) -> Weights:
    """Return one finite weight of at least 0 for each row; the default is 1, and a number is repeated."""
    n = X.shape[0]
    if sample_weight is None and getattr(X, "is_row_blocks", False):
        sample_weight = X.sample_weight  # stored with the blocks, or None
    if sample_weight is None or isinstance(sample_weight, Real):
        values = np.full(n, 1.0 if sample_weight is None else float(sample_weight))
    else:
        values = check_array(sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
        if values.ndim != 1:
            raise ValueError(f"Sample weights must be 1D array or scalar, got shape {values.shape}")
        check_consistent_length(X, values)
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("sample_weight has negative or non-finite entries; all must be finite and at least 0")
    if not values.any():
        raise ValueError("sample_weight is zero everywhere; at least one row needs a positive weight")
    return values


def checked_column(values: Any, X: Any, name: str) -> Any:
    """Return one finite number for each row (or one for each row and output); None for None."""
    if values is None:
        return None
    if np.ndim(values) == 0:
        raise ValueError(f"{name} must have one number for each row of X, got a single number, {values!r}")
    column = check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
    check_consistent_length(X, column)
    return np.asarray(column)


def times_class_weight(weights: Weights, class_weight: Any, codes: NDArray[Any], classes: NDArray[Any]) -> Weights:
    """Return s_i times the weight of the class of row i.

    ``"balanced"`` gives every class the same total: sum(s) / (k * sum of s in the class).
    """
    if class_weight is None:
        return weights
    k = len(classes)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}")
        totals = np.bincount(codes, weights, minlength=k)
        if (totals == 0).any():
            raise ValueError("class_weight='balanced' needs a positive sample_weight in every class")
        factors = weights.sum() / (k * totals)
    elif isinstance(class_weight, Mapping):
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(f"class_weight contains {unknown[0]!r}, but the classes in y are {classes.tolist()}")
        factors = np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
        if not np.isfinite(factors).all() or (factors < 0).any():
            raise ValueError(f"class_weight must be finite and at least 0, got {dict(class_weight)!r}")
    else:
        raise TypeError(f"class_weight must be None, 'balanced' or a dict, got {type(class_weight).__name__}")
    return weights * factors[codes]
