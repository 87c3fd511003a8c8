"""Data in blocks of rows as the X of an estimator: checks, prediction, and folds of whole blocks."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from cvxstructreg.numerics.block_norms import block_sums
from cvxstructreg.row_blocks.design import RowBlocks
from cvxstructreg.row_blocks.sources import is_source

#: Folds if ``cv`` is not given, as in scikit-learn.
FOLDS = 5


def as_row_blocks(X: Any) -> RowBlocks | None:
    """Blocks of rows if X is a source of blocks (see :class:`cvxstructreg.RowBlocks`), else None."""
    if isinstance(X, RowBlocks):
        return X
    return RowBlocks(X) if is_source(X) else None


def checked_data(estimator: Any, X: Any, y: Any, y_numeric: bool = False) -> tuple[Any, NDArray[Any]]:
    """Return X and y, checked as scikit-learn does; blocks of rows are checked when they are read."""
    blocks = as_row_blocks(X)
    if blocks is None:
        X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=y_numeric)
        return X, y
    y = blocks.y if y is None else y
    if y is None:
        raise ValueError("y is missing: the blocks have no labels; pass them to fit, or write them with the blocks")
    y = column_or_1d(y, warn=True)
    check_consistent_length(blocks, y)
    if y_numeric:
        y = y.astype(float)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinite values; drop these rows")
    estimator.n_features_in_ = blocks.shape[1]
    estimator.__dict__.pop("feature_names_in_", None)
    return blocks, y


def checked_rows(estimator: Any, X: Any) -> Any:
    """Return the X of a prediction, checked."""
    blocks = as_row_blocks(X)
    if blocks is None:
        return validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)
    if blocks.shape[1] != estimator.n_features_in_:
        name = type(estimator).__name__
        raise ValueError(
            f"X has {blocks.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features as input"
        )
    return blocks


def rows_of(X: Any, chosen: NDArray[Any]) -> Any:
    """Return some rows of X; of blocks, those of whole blocks only."""
    if not isinstance(X, RowBlocks):
        return X[chosen]
    marked = np.zeros(X.shape[0], dtype=bool)
    marked[chosen] = True
    counts = block_sums(marked.astype(float), X.starts)
    if np.any((counts > 0) & (counts < np.diff(X.starts))):
        raise ValueError("a fold has a part of a block of rows; pass cv=None or a number, for folds of whole blocks")
    return X.take(np.flatnonzero(counts))


def block_folds(X: RowBlocks, cv: Any) -> list[tuple[NDArray[Any], NDArray[Any]]] | None:
    """Return training and test rows of folds that consist of whole blocks; None if ``cv`` is neither None nor a number.

    Fold f has the blocks f, f + k, f + 2k, ...
    """
    if cv is not None and not isinstance(cv, Integral):
        return None
    count = FOLDS if cv is None else int(cv)
    if not 2 <= count <= X.n_blocks:
        raise ValueError(f"cv={count} folds need at least as many blocks of rows, got {X.n_blocks}; use fewer folds")
    owner = np.repeat(np.arange(X.n_blocks) % count, np.diff(X.starts))
    return [(np.flatnonzero(owner != fold), np.flatnonzero(owner == fold)) for fold in range(count)]
