"""Base class of the group builders: pass-through in pipelines, merging of equal groups, and a summary of the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cvxstructreg.building.builder import Builder
from cvxstructreg.core.checks import plural
from cvxstructreg.groups.groups import Groups, Weights


class GroupBuilder(Builder, TransformerMixin, BaseEstimator):  # type: ignore[misc, unused-ignore]
    """``fit(documents)`` builds ``groups_``; in a pipeline, the documents pass through unchanged.

    Attributes
    ----------
    groups_ : Groups
        Groups of columns of X.
    n_merged_ : int
        Number of groups merged into an identical one. Their weights are added, so the penalty is the same.
    """

    groups_: Groups
    n_merged_: int

    def transform(self, X: Any) -> Any:
        """Return X unchanged; a matrix must have as many columns as in the fit."""
        check_is_fitted(self, "groups_")
        shape: tuple[int, ...] = getattr(X, "shape", ())
        expected = getattr(self, "n_features_in_", None)
        if expected is not None and len(shape) == 2 and shape[1] != expected:
            name = type(self).__name__
            raise ValueError(f"X has {shape[1]} features, but {name} is expecting {expected} features as input")
        return X

    def _set_groups(
        self,
        members: Sequence[NDArray[np.int64]],
        n_features: int,
        weights: Weights,
        names: Iterable[str] | None = None,
        feature_names: Iterable[str] | None = None,
        merge: bool = True,
    ) -> NDArray[np.int64]:
        """Set ``groups_``, with equal groups merged if ``merge``; return the indices of the members that were kept."""
        indptr = np.concatenate([[0], np.cumsum([len(group) for group in members], dtype=np.int64)])
        indices = np.concatenate([*members, np.zeros(0, dtype=np.int64)]).astype(np.int64)
        groups = Groups.from_csr(indptr, indices, n_features, weights, names, feature_names)
        self.groups_ = groups.merged() if merge else groups
        self.n_merged_ = groups.n_groups - self.groups_.n_groups
        if not merge:
            return np.arange(groups.n_groups)
        return np.flatnonzero(groups.first_identical() == np.arange(groups.n_groups))

    def _summary(self) -> str:
        if not hasattr(self, "groups_"):
            return ""
        merged = f", {plural(self.n_merged_, 'duplicate')} merged" if self.n_merged_ else ""
        return f"{self.groups_!r}{merged}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.no_validation = True
        return tags


def checked_integer(value: Any, low: int, argument: str) -> int:
    """Return the integer, which must be at least `low`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{argument} must be an integer, not {value!r}")
    if value < low:
        raise ValueError(f"{argument} must be at least {low}, not {value}")
    return int(value)
