"""Stability selection by complementary pairs of halves of the rows, with bounds on the number of wrong features."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from cvxstructreg.runtime.cards import card, table
from cvxstructreg.selection.selected import fitted_on


@dataclass(frozen=True, eq=False)
class Stability:
    """How often each feature is selected on random halves of the rows, and how many selected ones may be noise.

    Attributes
    ----------
    frequencies : dict from name to number
        The part of the 2 B halves on which a feature is selected, largest first; features never selected are left out.
    threshold : float
        Features of at least this frequency are selected.
    n_features, n_pairs : int
        Number of features, and B.
    mean_selected : float
        q, the mean number of features selected on a half.
    error_bound : float
        A bound on the expected number of selected features that a random half selects with probability at most q / p:
        q^2 / ((2 threshold - 1) p) (Meinshausen and Buhlmann 2010; Shah and Samworth 2013, theorem 1).
    unimodal_bound : float
        The smaller bound of Shah and Samworth (theorem 2), which assumes that the frequencies of such features have
        unimodal distributions; infinite where the theorem does not apply.

    Examples
    --------
    >>> found = Stability({"x0": 1.0, "x1": 0.6}, 0.9, 30, 10, 2.0, *error_bounds(0.9, 2.0, 30, 10))
    >>> found.selected, found.at(0.6).selected
    (['x0'], ['x0', 'x1'])
    """

    frequencies: dict[str, float]
    threshold: float
    n_features: int
    n_pairs: int
    mean_selected: float
    error_bound: float
    unimodal_bound: float

    @property
    def selected(self) -> list[str]:
        """The names of the features of at least the threshold frequency, most frequent first."""
        return [name for name, frequency in self.frequencies.items() if frequency >= self.threshold - 1e-12]

    def at(self, threshold: float) -> Stability:
        """Return the same frequencies with another threshold, and its bounds."""
        bounds = error_bounds(threshold, self.mean_selected, self.n_features, self.n_pairs)
        return Stability(self.frequencies, float(threshold), self.n_features, self.n_pairs, self.mean_selected, *bounds)

    def __repr__(self) -> str:
        return (
            f"Stability({len(self.selected)} of {self.n_features} features selected in {self.threshold:.0%} of "
            f"{2 * self.n_pairs} halves; at most {self.error_bound:.3g} expected by chance)"
        )

    def _repr_html_(self) -> str:
        rows = [(name, f"{self.frequencies[name]:.2f}") for name in self.selected[:20]]
        return card(repr(self), (), table(("feature", "frequency"), rows, left=1))


def stability(
    estimator: Any,
    X: Any,
    y: Any,
    n_resamples: int = 50,
    threshold: float = 0.9,
    random_state: Any = None,
    n_jobs: int | None = None,
    **fit_options: Any,
) -> Stability:
    """Select the features that an estimator selects on most halves of the rows.

    The rows are split into two halves B = ``n_resamples`` times (complementary pairs, Shah and Samworth, JRSS B 2013);
    for a classifier, each class is split. The estimator is fitted on each half. Its strengths act on half of the rows:
    the losses are sums, so that a strength for all rows is about twice that for a half.

    Parameters
    ----------
    estimator : estimator or pipeline
        A linear model that selects features, with fixed strengths.
    X, y : data
        As for ``fit`` of the estimator: also data frames, or documents for a pipeline. Features are counted by name.
    n_resamples : int
        B, the number of pairs of halves.
    threshold : float
        The frequency from which a feature counts as stable, above 1/2.
    random_state : int or RandomState, optional
    n_jobs : int, optional
        Number of fits in parallel, with joblib.
    **fit_options
        More arguments of ``fit``, such as ``feature_names``. Those with an entry for each row, such as
        ``sample_weight``, ``offset`` and ``strata``, are cut like X and y.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 30))
    >>> y = X[:, 0] - X[:, 1] + rng.normal(size=100)
    >>> result = csr.selection.stability(csr.LaplacianElasticNetRegressor(lam1=20.0), X, y, 10, random_state=0)
    >>> sorted(result.selected)
    ['x0', 'x1']
    >>> result.error_bound < 1.0
    True
    """
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 1:
        raise ValueError(f"n_resamples must be an integer of at least 1, got {n_resamples!r}")
    checked_threshold(threshold)
    rng = check_random_state(random_state)
    labels = np.asarray(y) if is_classifier(estimator) else np.zeros(_num_samples(X), dtype=int)
    halves = [half for _ in range(n_resamples) for half in complementary_halves(labels, rng)]
    jobs = (delayed(fitted_on)(estimator, X, y, half, fit_options) for half in halves)
    found = list(Parallel(n_jobs=n_jobs)(jobs))
    counts = Counter(name for names, _ in found for name in names)
    order = sorted(counts, key=lambda name: (-counts[name], name))
    p = max(count for _, count in found)
    q = float(np.mean([len(names) for names, _ in found]))
    bounds = error_bounds(threshold, q, p, int(n_resamples))
    frequencies = {name: counts[name] / len(halves) for name in order}
    return Stability(frequencies, float(threshold), p, int(n_resamples), q, *bounds)


def complementary_halves(labels: NDArray[Any], rng: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two disjoint halves of the rows, with equal numbers of rows of each label; an odd row is left out."""
    first, second = [], []
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        size = len(rows) // 2
        if size == 0:
            raise ValueError(f"class {label!r} has one row only; both halves need rows of every class")
        first.append(rows[:size])
        second.append(rows[size : 2 * size])
    return np.sort(np.concatenate(first)), np.sort(np.concatenate(second))


def checked_threshold(threshold: Any) -> None:
    """Raise unless the threshold is in (1/2, 1]."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0.5 < threshold <= 1.0:
        raise ValueError(f"threshold must be above 0.5 and at most 1, got {threshold!r}")


def error_bounds(threshold: float, q: float, p: int, n_pairs: int) -> tuple[float, float]:
    """Return the bounds of theorems 1 and 2 of Shah and Samworth, for features of probability at most theta = q / p.

    Theorem 2 multiplies theta q by  1 / (2 (2 threshold - 1 - 1 / (2B)))  for thresholds up to 3/4, and by
    4 (1 - threshold + 1 / (2B)) / (1 + 1 / B)  above, if theta <= 1 / sqrt(3).

    Examples
    --------
    >>> worst, unimodal = error_bounds(0.9, 10.0, 1000, 50)
    >>> round(worst, 4), round(unimodal, 4)
    (0.125, 0.0431)
    """
    checked_threshold(threshold)
    theta = q / p
    worst = theta * q / (2.0 * threshold - 1.0)
    half = 1.0 / (2.0 * n_pairs)
    least = min(0.5 + theta**2, 0.5 + half + 0.75 * theta**2)
    if theta > 1.0 / np.sqrt(3.0) or threshold <= least:
        return worst, float("inf")
    if threshold <= 0.75:
        room = 2.0 * threshold - 1.0 - half
        factor = 1.0 / (2.0 * room) if room > 0 else float("inf")
    else:
        factor = 4.0 * (1.0 - threshold + half) / (1.0 + 1.0 / n_pairs)
    return worst, factor * theta * q
