"""The features that a model selects in the folds of a cross-validation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from cvxstructreg.selection.selected import fitted_on


@dataclass(frozen=True, eq=False)
class FoldSelection:
    """In how many folds each feature is selected.

    Attributes
    ----------
    counts : dict from name to int
        The number of folds, largest first; features never selected are left out.
    n_folds : int

    Examples
    --------
    >>> FoldSelection({"x0": 5, "x3": 2}, n_folds=5).in_all
    ['x0']
    """

    counts: dict[str, int]
    n_folds: int

    @property
    def in_all(self) -> list[str]:
        """The features selected in every fold."""
        return [name for name, count in self.counts.items() if count == self.n_folds]

    def __repr__(self) -> str:
        return f"FoldSelection({len(self.in_all)} features in all {self.n_folds} folds, {len(self.counts)} in some)"


def across_folds(
    estimator: Any, X: Any, y: Any, cv: Any = 5, n_jobs: int | None = None, **options: Any
) -> FoldSelection:
    """Fit an estimator on the training rows of each fold, and count the folds in which it selects each feature.

    Parameters
    ----------
    estimator : estimator or pipeline
        A linear model that selects features; one whose name ends in CV tunes its strengths in each fold.
    X, y : data
        As for ``fit`` of the estimator: also data frames, or documents for a pipeline. Features are counted by name.
    cv : int, splitter, or list of (train, test) rows
        As in scikit-learn.
    n_jobs : int, optional
        Number of fits in parallel, with joblib.
    **options
        More arguments of ``fit``, such as ``feature_names``. Those with an entry for each row, such as
        ``sample_weight``, ``offset`` and ``strata``, are cut like X and y.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 8))
    >>> y = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=60)
    >>> csr.selection.across_folds(csr.LaplacianElasticNetRegressor(lam1=15.0), X, y).in_all
    ['x0', 'x1']
    """
    splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y))
    jobs = (delayed(fitted_on)(estimator, X, y, train, options) for train, _ in splits)
    counts = Counter(name for names, _ in Parallel(n_jobs=n_jobs)(jobs) for name in names)
    return FoldSelection({name: counts[name] for name in sorted(counts, key=lambda n: (-counts[n], n))}, len(splits))
