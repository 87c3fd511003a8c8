"""Choose strengths by cross-validation: warm-started paths in every fold, for one or more ratios of two strengths."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring

from cvxstructreg.certificates.certificate import Certificate
from cvxstructreg.core.checks import real_array
from cvxstructreg.core.problem import Problem
from cvxstructreg.estimators.base import ADD_PENALTY, NoMinimiserConvergenceWarning
from cvxstructreg.estimators.folds import Fold, Task, error_of, run_tasks
from cvxstructreg.estimators.linear import Matrix, TrainingData
from cvxstructreg.estimators.splits import Folded
from cvxstructreg.paths.strength import weight_terms, with_strength
from cvxstructreg.paths.warm_path import Path, common_strengths
from cvxstructreg.runtime.notices import GridEdgeWarning
from cvxstructreg.solvers.driver import no_minimiser_in_words

#: Mean scores that differ by less than this fraction are ties: the order of summation can cause such a difference.
TIE = 1e-12
#: A grid with fewer points has no inside, so that no choice at its edge is reported.
SMALLEST_GRID = 3


class CrossValidated(Folded):
    """A linear estimator; cross-validation chooses a factor for the strengths listed in ``_tuned``.

    With ``ratios``, it also chooses the ratio of the two strengths in ``_ratio``, first over second.
    """

    strengths: Any
    n_strengths: int
    smallest: Any
    ratios: Any
    scoring: Any
    rule: str
    n_jobs: int | None
    _tuned: ClassVar[tuple[str, ...]]
    _ratio: ClassVar[tuple[str, str]]

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        feature_names: Any,
        structure: Any,
        known: Mapping[str, Any] | None = None,
    ) -> Self:
        rule = self._choice("rule", ("best", "one_standard_error"))
        scorer = check_scoring(self, scoring=self.scoring)
        data, problems = self._prepare(X, y, sample_weight, feature_names, structure, known)
        if self._recalls:
            return self._recall(data, problems)
        if self.scoring is not None and set(data.known) - {"strata"}:
            raise ValueError(f"scoring={self.scoring!r} does not know the {min(data.known)}; use scoring=None with it")
        self._require_tuned()
        ratios = self._checked_ratios()
        models = [self if ratio is None else self._with_ratio(ratio) for ratio in ratios]
        every = [
            data if ratio is None else replace(data, penalties=model._penalties(*data.source))
            for ratio, model in zip(ratios, models, strict=True)
        ]
        strengths = [model._checked_strengths(model._problems(some)) for model, some in zip(models, every, strict=True)]
        splits = self._splits(data, None if sample_weight is None else data.weights)
        tasks = [
            Task(model._without_names(), some, rows, points)
            for model, some, points in zip(models, every, strengths, strict=True)
            for rows in splits
        ]
        folds = run_tasks(tasks, scorer, sample_weight is not None, self.n_jobs, bool(self.verbose))
        best = self._keep_scores(folds, strengths, ratios, len(splits), rule)
        self.best_params_ = models[best]._params_at(self.best_strength_)
        paths = models[best]._paths(
            problems if ratios[best] is None else models[best]._problems(every[best]),
            self.strengths_[: self.best_index_ + 1],
            verbose=bool(self.verbose),
        )
        self._keep_paths(paths, folds)
        self._warn_of_edges(ratios, best)
        return self

    def _recall(self, data: TrainingData, problems: Sequence[Problem]) -> Self:
        """Take the results of a pickle for the problems of the chosen strength and ratio."""
        model = self if self.ratios is None else self._with_ratio(self.best_ratio_)
        if self.ratios is not None:
            problems = model._problems(replace(data, penalties=model._penalties(*data.source)))
        terms = model._path_terms(problems[0])
        self._keep_results([self._solve(with_strength(problem, self.best_strength_, terms)) for problem in problems])
        return self

    def _keep_paths(self, paths: Sequence[Path], folds: Sequence[Fold]) -> None:
        self.path_: Path | tuple[Path, ...] = paths[0] if len(paths) == 1 else tuple(paths)
        solutions = [path[-1] for path in paths]
        last = Fold(np.empty(0), np.empty(0, dtype=np.int64), *self._unfinished([s for p in paths for s in p]))
        self._warn_unfinished([*folds, last])
        self._keep_weights(solutions)
        self._keep_results(solutions)

    def _require_tuned(self) -> None:
        if not any(self._strength(name) > 0 for name in self._tuned):
            names = " and ".join(f"{name}=0" for name in self._tuned)
            raise ValueError(f"got {names}, which the strengths multiply; at least one must be positive, such as 1")

    def _checked_ratios(self) -> list[float | None]:
        """Return the ratios to try, increasing; [None] if the ratio is fixed."""
        if self.ratios is None:
            return [None]
        ratios = np.unique(real_array(self.ratios, "ratios"))
        if ratios.ndim != 1 or not ratios.size or not np.isfinite(ratios).all() or (ratios < 0).any():
            raise ValueError(f"ratios must be a nonempty list of finite numbers of at least 0, got {self.ratios!r}")
        return [float(ratio) for ratio in ratios]

    def _with_ratio(self, ratio: float) -> Self:
        """Return a copy with another ratio of the two strengths."""
        first, second = self._ratio
        if not self._strength(second) > 0:
            raise ValueError(f"ratios are {first} / {second}, but {second} is 0; give it a positive value such as 1")
        model = copy(self)
        setattr(model, first, ratio * self._strength(second))
        return model

    def _params_at(self, strength: float) -> dict[str, Any]:
        """Return the parameters of the plain estimator for the same model."""
        names = self._tuned if self.ratios is None else self._ratio[::-1]
        return {name: strength * self._strength(name) for name in names}

    def _path_terms(self, problem: Problem) -> tuple[int, ...]:
        return super()._path_terms(problem) if self.ratios is None else weight_terms(problem)

    def _checked_strengths(self, problems: Sequence[Problem]) -> Matrix:
        count = self.n_strengths
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ValueError(f"n_strengths must be an integer of at least 1, got {count!r}")
        terms = self._path_terms(problems[0])
        # if the targets do not depend on X, every strength gives the same constant model, and all of them tie
        return common_strengths(problems, self.strengths, int(count), self.smallest, terms, fallback=1.0)

    def _keep_scores(
        self, folds: Sequence[Fold], strengths: Sequence[Matrix], ratios: Sequence[Any], n_splits: int, rule: str
    ) -> int:
        """Set the scores and the choice; return the index of the chosen ratio."""
        shape = (len(ratios), n_splits, -1)
        scores = np.stack([fold.scores for fold in folds]).reshape(shape)
        sizes = np.stack([fold.n_selected for fold in folds]).reshape(shape)
        if not np.isfinite(scores).all():
            number = int(np.argwhere(~np.isfinite(scores))[0][1])
            raise ValueError(
                f"the score of fold {number} is not finite; the fold may have too few rows for scoring="
                f"{self.scoring!r} (r2 needs two rows): use fewer folds or another score"
            )
        means = scores.mean(axis=1)
        flat = chosen_index(means.ravel(), np.zeros(means.size), sizes.mean(axis=1).ravel(), "best")
        best = flat // means.shape[1]
        self.strengths_, self.scores_, self.n_selected_ = strengths[best], scores[best], sizes[best]
        self.mean_score_ = means[best]
        spread = self.scores_.std(axis=0, ddof=1) if n_splits > 1 else np.zeros(len(self.strengths_))
        self.std_error_ = spread / np.sqrt(n_splits)
        self.best_index_ = chosen_index(self.mean_score_, self.std_error_, self.n_selected_.mean(axis=0), rule)
        self.best_strength_ = float(self.strengths_[self.best_index_])
        if self.ratios is not None:
            self.ratios_, self.best_ratio_ = np.array(ratios), float(ratios[best])
            self.ratio_strengths_, self.ratio_scores_ = np.stack(strengths), scores
        return best

    def _warn_of_edges(self, ratios: Sequence[Any], best: int) -> None:
        """Warn if the chosen strength or ratio is the first or last of those tried."""
        told = []
        count = len(self.strengths_)
        if count >= SMALLEST_GRID and self.best_index_ == count - 1:
            told.append(f"the weakest strength, {self.best_strength_:.4g}: lower smallest, or give weaker strengths")
        if count >= SMALLEST_GRID and self.best_index_ == 0 and self.rule == "best":
            remedy = "give stronger strengths" if self.strengths is not None else "the features may not help to predict"
            told.append(f"the strongest strength, {self.best_strength_:.4g}: {remedy}")
        inside = ratios[best] in (None, 0.0) or len(ratios) < SMALLEST_GRID or 0 < best < len(ratios) - 1
        if not inside:
            side = "larger" if best else "smaller"
            told.append(f"the {'largest' if best else 'smallest'} ratio, {ratios[best]:.4g}: give {side} ratios")
        for text in told:
            warnings.warn(f"{type(self).__name__} chose {text}", GridEdgeWarning, stacklevel=4)

    def _unfinished(self, solutions: Sequence[Any]) -> tuple[int, Certificate | None, tuple[str, ...]]:
        """The number of points beyond the tolerance, the worst certificate, and in words those without a minimiser."""
        some = [solution for solution in solutions if self._is_unfinished(solution)]
        certificates = [solution.certificate for solution in some if solution.status != "no_minimiser"]
        endless = tuple(no_minimiser_in_words(solution) for solution in some if solution.status == "no_minimiser")
        return len(certificates), max(certificates, key=error_of, default=None), endless

    def _warn_unfinished(self, folds: Sequence[Fold]) -> None:
        """Issue one warning for all points of all paths without minimiser, and one with the worst certificate."""
        endless = [text for fold in folds for text in fold.endless]
        if endless:
            text = f"{type(self).__name__}: {len(endless)} points of the paths have {endless[-1]}. {ADD_PENALTY}"
            warnings.warn(NoMinimiserConvergenceWarning(text), stacklevel=5)
        count = sum(fold.n_unfinished for fold in folds)
        worst = max((fold.worst for fold in folds if fold.worst is not None), key=error_of, default=None)
        if worst is None:
            return
        warning = ConvergenceWarning(
            f"{type(self).__name__}: {count} points of the paths did not reach the tolerance {self.tol:g}; the worst "
            f"has {worst}. Raise max_iter, tol or smallest, or scale the columns of X"
        )
        warning.certificate = worst
        warnings.warn(warning, stacklevel=5)


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
