"""Choose a strength by cross-validation: one warm-started path in every fold, scored on the left-out rows."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from cvxstructreg.certificates.certificate import Certificate
from cvxstructreg.core.problem import Problem
from cvxstructreg.estimators.linear import LinearEstimator, Matrix, TrainingData
from cvxstructreg.estimators.row_blocks import block_folds
from cvxstructreg.paths.warm_path import Path, common_strengths, follow
from cvxstructreg.row_blocks.design import RowBlocks

#: Mean scores that differ by less than this fraction are ties: the order of summation can cause such a difference.
TIE = 1e-12


class Fold(NamedTuple):
    """Scores and numbers of features along the path of a fold, and the worst certificate that exceeds ``tol``."""

    scores: Matrix
    n_selected: NDArray[np.int64]
    n_unfinished: int
    worst: Certificate | None


class CrossValidated(LinearEstimator):
    """A linear estimator; cross-validation chooses a factor for the strengths listed in ``_tuned``."""

    strengths: Any
    n_strengths: int
    smallest: float
    cv: Any
    scoring: Any
    rule: str
    n_jobs: int | None
    _tuned: ClassVar[tuple[str, ...]]

    def _fit(self, X: Any, y: Any, sample_weight: Any, feature_names: Any, structure: Any) -> Self:
        rule = self._choice("rule", ("best", "one_standard_error"))
        scorer = check_scoring(self, scoring=self.scoring)
        data, problems = self._prepare(X, y, sample_weight, feature_names, structure)
        self.strengths_ = self._checked_strengths(problems)
        splits = self._splits(data, None if sample_weight is None else data.weights)
        folds = self._folds(data, splits, scorer, sample_weight is not None)
        self._keep_scores(folds)
        self.best_index_ = chosen_index(self.mean_score_, self.std_error_, self.n_selected_.mean(axis=0), rule)
        self.best_strength_ = float(self.strengths_[self.best_index_])
        self.best_params_ = {name: self.best_strength_ * self._strength(name) for name in self._tuned}
        paths = self._paths(problems, self.strengths_[: self.best_index_ + 1], verbose=bool(self.verbose))
        self.path_: Path | tuple[Path, ...] = paths[0] if len(paths) == 1 else paths
        solutions = [path[-1] for path in paths]
        last = Fold(np.empty(0), np.empty(0, dtype=np.int64), *self._unfinished([s for p in paths for s in p]))
        self._warn_unfinished([*folds, last])
        self._keep_weights(solutions)
        self._keep_results(solutions)
        return self

    def _checked_strengths(self, problems: Sequence[Problem]) -> Matrix:
        if not any(self._strength(name) > 0 for name in self._tuned):
            names = " and ".join(f"{name}=0" for name in self._tuned)
            raise ValueError(f"got {names}, which the strengths multiply; at least one must be positive, such as 1")
        count = self.n_strengths
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ValueError(f"n_strengths must be an integer of at least 1, got {count!r}")
        terms = self._path_terms(problems[0])
        # if the targets do not depend on X, every strength gives the same constant model, and all of them tie
        return common_strengths(problems, self.strengths, int(count), self.smallest, terms, fallback=1.0)

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

    def _folds(self, data: TrainingData, splits: Sequence[Any], scorer: Any, weighted: bool) -> list[Fold]:
        worker = self._without_names()
        tasks = (
            delayed(_fold)(worker, data.rows(train), data.rows(test), self.strengths_, scorer, weighted)
            for train, test in splits
        )
        folds = []
        for fold in Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks):
            folds.append(fold)
            if self.verbose:
                end = "\n" if len(folds) == len(splits) else ""
                print(f"\r{len(folds)}/{len(splits)} folds ", end=end, file=sys.stderr, flush=True)
        return folds

    def _without_names(self) -> Self:
        """Return a copy without column names, for arrays."""
        bare = copy(self)
        bare.__dict__.pop("feature_names_in_", None)
        return bare

    def _keep_scores(self, folds: Sequence[Fold]) -> None:
        self.scores_ = np.stack([fold.scores for fold in folds])
        self.n_selected_ = np.stack([fold.n_selected for fold in folds])
        if not np.isfinite(self.scores_).all():
            number = int(np.flatnonzero(~np.isfinite(self.scores_).all(axis=1))[0])
            raise ValueError(
                f"the score of fold {number} is not finite; the fold may have too few rows for scoring="
                f"{self.scoring!r} (r2 needs two rows): use fewer folds or another score"
            )
        self.mean_score_ = self.scores_.mean(axis=0)
        count = len(folds)
        spread = self.scores_.std(axis=0, ddof=1) if count > 1 else np.zeros(len(self.strengths_))
        self.std_error_ = spread / np.sqrt(count)

    def _unfinished(self, solutions: Sequence[Any]) -> tuple[int, Certificate | None]:
        certificates = [solution.certificate for solution in solutions if self._is_unfinished(solution)]
        return len(certificates), max(certificates, key=_error, default=None)

    def _warn_unfinished(self, folds: Sequence[Fold]) -> None:
        """Issue one warning for all points of all paths, with the worst certificate."""
        count = sum(fold.n_unfinished for fold in folds)
        worst = max((fold.worst for fold in folds if fold.worst is not None), key=_error, default=None)
        if worst is None:
            return
        warning = ConvergenceWarning(
            f"{type(self).__name__}: {count} points of the paths did not reach the tolerance {self.tol:g}; the worst "
            f"has {worst}. Raise max_iter, tol or smallest, or scale the columns of X"
        )
        warning.certificate = worst
        warnings.warn(warning, stacklevel=4)


def chosen_index(mean: Matrix, error: Matrix, n_selected: Matrix, rule: str) -> int:
    """Return the index of the best mean, or of the strength chosen by the one-standard-error rule.

    Strengths decrease. Ties go to the fewest features, then to the strongest penalty. The one-standard-error rule takes
    the strongest penalty whose mean is at most one standard error (of the best) below the best (Breiman, Friedman,
    Olshen and Stone 1984).

    Examples
    --------
    >>> mean, error = np.array([0.5, 0.8, 0.9, 0.9]), np.full(4, 0.1)
    >>> chosen_index(mean, error, np.array([0, 2, 9, 5]), "best")
    3
    >>> chosen_index(mean, error, np.zeros(4), "one_standard_error")
    1
    """
    tie = TIE * max(1.0, float(np.abs(mean).max()))
    best = np.flatnonzero(mean >= mean.max() - tie)
    first = int(best[np.argmin(n_selected[best])])
    if rule == "best":
        return first
    return int(np.flatnonzero(mean >= mean.max() - error[first] - tie)[0])


def _error(certificate: Certificate) -> float:
    return float(certificate.error)


def _fold(
    estimator: CrossValidated, train: TrainingData, test: TrainingData, factors: Matrix, scorer: Any, weighted: bool
) -> Fold:
    """Compute the path on the training rows of a fold and the scores of its points on the test rows."""
    labels = estimator._labels(test.target)
    how = {"sample_weight": test.weights} if weighted else {}
    scores, sizes, count = [], [], 0
    worst: Certificate | None = None
    for solutions in _points(estimator, train, factors):
        estimator._keep_weights(solutions)
        scores.append(float(scorer(estimator, test.X, labels, **how)))
        sizes.append(np.count_nonzero(np.atleast_2d(estimator.coef_).any(axis=0)))
        more, certificate = estimator._unfinished(solutions)
        count += more
        worst = max((c for c in (worst, certificate) if c is not None), key=_error, default=None)
    return Fold(np.array(scores), np.array(sizes), count, worst)


def _points(estimator: CrossValidated, train: TrainingData, factors: Matrix) -> Iterator[tuple[Any, ...]]:
    """Return an iterator over the strengths; each item has one solution for each problem."""
    problems = estimator._problems(train)
    terms = estimator._path_terms(problems[0])
    return zip(*(follow(problem, factors, terms, estimator._attempt) for problem in problems), strict=True)
