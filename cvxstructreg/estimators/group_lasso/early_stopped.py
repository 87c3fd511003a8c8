"""The algorithm of the sentence regularizer with a stop that cross-validation chooses."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from cvxstructreg.core.checks import real_array
from cvxstructreg.core.solution import Solution
from cvxstructreg.estimators.cross_validation import SMALLEST_GRID, chosen_index
from cvxstructreg.estimators.group_lasso.classifier import GroupLassoClassifier
from cvxstructreg.estimators.group_lasso.published_admm import NAME, certified, points_at, weights_of
from cvxstructreg.estimators.linear import Matrix, TrainingData
from cvxstructreg.estimators.splits import Folded
from cvxstructreg.runtime.notices import GridEdgeWarning


class EarlyStopped(Folded, GroupLassoClassifier):
    """k iterations of ADMM with penalty rho on the objective of GroupLassoClassifier; rho and k are cross-validated.

    The algorithm of Yogatama and Smith (2014), from zero, on

        sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + lam_group sum_g c_g ||w_g||_2 + lam_l1 ||w||_1

    stopped before it converges. This is a model of its own: the first iteration is an elastic net with the squares
    weighted by the number of groups of each feature (see :class:`FrequencyRidgeClassifier`), and only later ones
    approach the optimum (:class:`GroupLassoClassifier`). The certificate at every stop says how far the optimum is.

    Parameters
    ----------
    groups, lam_group, lam_l1, group_weights, ungrouped, missing, fit_intercept, class_weight
        As in :class:`GroupLassoClassifier`.
    rhos : list of positive numbers
        The values of rho to try.
    stops : list of positive integers
        The numbers of iterations to try. All stops of one rho cost as much as the largest.
    cv : int, splitter, or list of (train, test) rows; optional
        As in scikit-learn: 5 stratified folds by default.
    scoring : str or function, optional
        As in scikit-learn, higher is better; accuracy by default. Ties go to the fewest features, then to the smaller
        rho and the earlier stop.
    n_jobs : int, optional
        Number of runs (one for each fold and rho) in parallel, with joblib.
    tol : float
        A stop whose certified relative gap is at most ``tol`` has the status "optimal" in ``solution_``.
    verbose : bool
        Whether joblib reports the runs.
    solver_options : dict, optional
        ``w_tol``, the accuracy of the step in w, and ``change``, the relative change of w that ends the iterations.

    Attributes
    ----------
    best_rho_, best_stop_ : float, int
        The chosen values.
    rhos_, stops_ : arrays of shape (r,) and (m,), increasing
    scores_, n_selected_ : arrays of shape (r, folds, m)
        Scores on the left-out rows, and numbers of features with a nonzero weight.
    mean_score_ : array of shape (r, m)
    gaps_ : array of shape (m,)
        The certified relative gap at each stop, on all rows with ``best_rho_``.
    others
        As in :class:`GroupLassoClassifier`: the model on all rows at the chosen stop, with ``certificate_``.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxstructreg.estimators import EarlyStopped
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 6))
    >>> y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=80) > 0, "up", "down")
    >>> groups = {"signal": [0, 1], "noise": [2, 3], "more noise": [4, 5]}
    >>> model = EarlyStopped(groups, lam_group=8.0, rhos=[1.0, 10.0], stops=[1, 50], cv=3).fit(X, y)
    >>> model.n_iter_ == model.best_stop_, bool(model.gaps_[0] > model.gaps_[-1])
    (True, True)
    """

    solver = NAME

    def __init__(
        self,
        groups: Any = None,
        *,
        lam_group: float = 1.0,
        lam_l1: float = 0.0,
        group_weights: Any = None,
        ungrouped: str = "warn",
        rhos: Any = (0.1, 1.0, 10.0, 100.0),
        stops: Any = (1, 2, 5, 10, 20, 50, 100),
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        missing: str = "error",
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.groups = groups
        self.lam_group = lam_group
        self.lam_l1 = lam_l1
        self.group_weights = group_weights
        self.ungrouped = ungrouped
        self.rhos = rhos
        self.stops = stops
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.verbose = verbose
        self.solver_options = solver_options

    @property
    def rho(self) -> float:  # type: ignore[override]
        """The chosen rho."""
        check_is_fitted(self)
        return self.best_rho_

    @property
    def max_iter(self) -> int:  # type: ignore[override]
        """The chosen number of iterations."""
        check_is_fitted(self)
        return self.best_stop_

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        feature_names: Any,
        structure: Any,
        known: Mapping[str, Any] | None = None,
    ) -> Self:
        scorer = check_scoring(self, scoring=self.scoring)
        self.rhos_, self.stops_ = _checked_rhos(self.rhos), _checked_stops(self.stops)
        data, problems = self._prepare(X, y, sample_weight, feature_names, structure, known)
        if self._recalls:  # from a pickle
            self._keep_results([self._solve(problems[0])])
            return self
        splits = self._splits(data, None if sample_weight is None else data.weights)
        runs = [_Run(self._without_names(), data, rows, float(rho)) for rho in self.rhos_ for rows in splits]
        jobs = Parallel(n_jobs=self.n_jobs, verbose=5 * bool(self.verbose))
        found = jobs(delayed(_scored)(run, scorer, sample_weight is not None) for run in runs)
        self._choose(found, len(splits))
        self._keep(self._at_every_stop(problems[0]))
        return self

    def _choose(self, found: Sequence[tuple[Matrix, NDArray[np.int64]]], n_splits: int) -> None:
        """Set the scores and the choice."""
        shape = (len(self.rhos_), n_splits, len(self.stops_))
        self.scores_ = np.stack([scores for scores, _ in found]).reshape(shape)
        self.n_selected_ = np.stack([sizes for _, sizes in found]).reshape(shape)
        if not np.isfinite(self.scores_).all():
            raise ValueError(f"a score of scoring={self.scoring!r} is not finite; use fewer folds or another score")
        self.mean_score_ = self.scores_.mean(axis=1)
        sizes = self.n_selected_.mean(axis=1).ravel()
        best = chosen_index(self.mean_score_.ravel(), np.zeros(sizes.size), sizes, "best")
        rho, stop = divmod(best, len(self.stops_))
        self.best_rho_, self.best_stop_ = float(self.rhos_[rho]), int(self.stops_[stop])
        self._warn_of_edges(rho, stop)

    def _warn_of_edges(self, rho: int, stop: int) -> None:
        """Warn if the smallest or largest rho is chosen, or the last stop."""
        told = []
        if len(self.rhos_) >= SMALLEST_GRID and rho in (0, len(self.rhos_) - 1):
            told.append(f"the {'largest' if rho else 'smallest'} rho, {self.best_rho_:g}")
        if len(self.stops_) >= SMALLEST_GRID and stop == len(self.stops_) - 1:
            told.append(f"the last stop, {self.best_stop_} iterations")
        for text in told:
            warnings.warn(f"EarlyStopped chose {text}: give values beyond it", GridEdgeWarning, stacklevel=5)

    def _at_every_stop(self, problem: Any) -> list[Solution]:
        """Return the points of all stops on all rows, certified."""
        began = time.perf_counter()
        points = points_at(problem, self.tol, self.stops_.tolist(), self.best_rho_, **(self.solver_options or {}))
        return [certified(problem, self.tol, count, iterate, time.perf_counter() - began) for count, iterate in points]

    def _keep(self, solutions: Sequence[Solution]) -> None:
        """Set the gaps of all stops, and the model of the chosen one."""
        self.gaps_ = np.array([solution.certificate.relative_gap for solution in solutions])
        chosen = solutions[int(np.flatnonzero(self.stops_ == self.best_stop_)[0])]
        self._keep_weights([chosen])
        self._keep_results([chosen])


class _Run(NamedTuple):
    """The algorithm with one rho on the training rows of one fold."""

    estimator: EarlyStopped
    data: TrainingData
    rows: tuple[NDArray[Any], NDArray[Any]]
    rho: float


def _scored(run: _Run, scorer: Any, weighted: bool) -> tuple[Matrix, NDArray[np.int64]]:
    """Return the scores on the test rows at each stop, and the numbers of features."""
    model, train, test = run.estimator, run.data.rows(run.rows[0]), run.data.rows(run.rows[1])
    labels = model._labels(test.target)
    how: dict[str, Any] = {"sample_weight": test.weights} if weighted else {}
    scores, sizes = [], []
    options = model.solver_options or {}
    for _, iterate in points_at(model._problems(train)[0], model.tol, model.stops_.tolist(), run.rho, **options):
        model._keep_weights([weights_of(iterate)])  # type: ignore[list-item]
        scores.append(float(scorer(model, test.X, labels, **how)))
        sizes.append(np.count_nonzero(iterate.theta.any(axis=1)))
    return np.array(scores), np.array(sizes)


def _checked_rhos(rhos: Any) -> Matrix:
    values = np.unique(real_array(rhos, "rhos"))
    if values.ndim != 1 or not values.size or not np.isfinite(values).all() or not (values > 0).all():
        raise ValueError(f"rhos must be a nonempty list of finite positive numbers, got {rhos!r}")
    return values


def _checked_stops(stops: Any) -> NDArray[np.int64]:
    given = list(stops) if np.iterable(stops) and not isinstance(stops, str) else []
    whole = all(isinstance(stop, Integral) and not isinstance(stop, bool) for stop in given)
    if not given or not whole or min(given) < 1:
        raise ValueError(f"stops must be a nonempty list of positive integers, got {stops!r}")
    return np.unique(np.array(given, dtype=np.int64))
