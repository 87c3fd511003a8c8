"""Shared code of the graph builders: checked data, names of the columns, and the k largest entries of sparse rows."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cvxstructreg.building.builder import Builder
from cvxstructreg.building.vocabulary import vocabulary_names
from cvxstructreg.core.checks import Names, plural
from cvxstructreg.graphs.graph import Graph

MAX_FLOAT = float(np.finfo(float).max)


class GraphBuilder(Builder, TransformerMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """``fit(X)`` builds ``graph_``; in a pipeline, X passes through unchanged."""

    graph_: Graph

    def transform(self, X: Any) -> Any:
        """Return X unchanged, after checking that it has as many columns as in the fit."""
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse=True, reset=False, dtype=None)

    def _validated(self, X: Any) -> Any:
        """Return X as a CSR matrix or a dense array of finite float64 values."""
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
        return sparse.csr_array(X) if sparse.issparse(X) else X

    def _column_names(self, vocabulary: Any, n_features: int) -> Names:
        """Return the names of the columns from the vocabulary or the data frame; None if there are none."""
        if vocabulary is None:
            columns = getattr(self, "feature_names_in_", None)
            return None if columns is None else tuple(map(str, columns))
        names = vocabulary_names(vocabulary)
        if len(names) != n_features:
            raise ValueError(
                f"the vocabulary has {plural(len(names), 'name')} but X has {plural(n_features, 'column')}; "
                "use the vectorizer that made X"
            )
        return names

    def _summary(self) -> str:
        return repr(self.graph_) if hasattr(self, "graph_") else ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def checked_neighbors(n_neighbors: Any, n_points: int, count: str) -> int:
    """Return the number of neighbours, at least one and at most all other points."""
    if not isinstance(n_neighbors, Integral) or isinstance(n_neighbors, bool):
        raise TypeError(f"n_neighbors must be an integer, not {n_neighbors!r}")
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be at least 1, not {n_neighbors}")
    if n_points < 2:
        raise ValueError(f"X has {count}={n_points}; at least 2 are needed to form an edge")
    return min(int(n_neighbors), n_points - 1)


def checked_number(value: Any, low: float, high: float, argument: str) -> float:
    """Return the number, which must be in [low, high]."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{argument} must be a number, not {value!r}")
    if not low <= float(value) <= high:
        raise ValueError(f"{argument} must be from {low} to {high}, not {value}")
    return float(value)


def largest_of_rows(row: NDArray[Any], column: NDArray[Any], value: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return the positions of the k largest values of each row; ties go to the first column.

    The entries of each row must be contiguous.
    """
    starts, lengths = _runs(row)
    keep = np.ones(len(row), dtype=bool)
    for low, length in zip(starts[lengths > 2 * k], lengths[lengths > 2 * k], strict=True):
        part = value[low : low + length]
        keep[low : low + length] = part >= np.partition(part, length - k)[length - k]
    kept = np.flatnonzero(keep)
    order = kept[np.lexsort((column[kept], -value[kept], row[kept]))]
    starts, lengths = _runs(row[order])
    rank = np.arange(len(order)) - np.repeat(starts, lengths)
    return order[rank < k]


def _runs(row: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and the length of each run of equal entries."""
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(row)), dtype=bool), row[1:] != row[:-1]]))
    return starts, np.diff(np.concatenate([starts, [len(row)]]))
