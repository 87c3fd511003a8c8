"""Base classes of linear classifiers and regressors: problem setup, solve and prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Linear
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.estimators.alignment import Columns, Names, column_names
from cvxstructreg.estimators.base import StructuredEstimator, sum_of_terms
from cvxstructreg.estimators.building import fit_column_builder
from cvxstructreg.estimators.row_blocks import checked_data, checked_rows, rows_of
from cvxstructreg.estimators.sample_weights import checked_column, checked_sample_weight, times_class_weight
from cvxstructreg.estimators.selection import (
    ClassMean,
    CoefRow,
    SelectedFeature,
    favoured,
    related_names,
    selected_features,
    virtual_means,
)
from cvxstructreg.estimators.zero_weights import warn_of_zero_weights
from cvxstructreg.graphs import Graph
from cvxstructreg.groups import Groups
from cvxstructreg.losses import Logistic, Multinomial, Squared
from cvxstructreg.paths.strength import checked_terms
from cvxstructreg.paths.warm_path import Path, common_strengths

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked training data: X, targets (class codes for a classifier), sample weights, and penalty terms.

    ``known`` has more columns of numbers for the loss, such as offsets and exposures; ``source`` is what the penalty
    terms were made of, the structure and the columns.
    """

    X: Any
    target: NDArray[Any]
    weights: Matrix
    penalties: Sequence[Any]
    known: Mapping[str, Matrix] = field(default_factory=dict)
    source: tuple[Any, Any] = (None, None)

    def rows(self, chosen: NDArray[Any]) -> TrainingData:
        """Return the data of some of the rows."""
        known = {name: column[chosen] for name, column in self.known.items()}
        X, target, weights = rows_of(self.X, chosen), self.target[chosen], self.weights[chosen]
        return replace(self, X=X, target=target, weights=weights, known=known)


class LinearEstimator(StructuredEstimator):
    """A model with scores x'w + b. A subclass defines its penalty terms in :meth:`_penalties`."""

    fit_intercept: bool
    missing: str
    coef_: Matrix
    intercept_: Any
    _structure_name = "graph"
    _known_columns: tuple[str, ...] = ()
    _needs_undirected = False

    def _penalties(self, structure: Any, columns: Columns) -> list[Any]:
        """Return the penalty terms, for a structure (graph, groups) as the user gave it."""
        raise NotImplementedError

    def _checked_rows(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Return X and the targets, checked."""
        raise NotImplementedError

    def _losses(self, data: TrainingData) -> list[Loss]:
        """Return the loss, or one loss for each class."""
        raise NotImplementedError

    def _keep_weights(self, solutions: Sequence[Solution]) -> None:
        """Set ``coef_`` and ``intercept_``."""
        raise NotImplementedError

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        feature_names: Any,
        structure: Any,
        known: Mapping[str, Any] | None = None,
    ) -> Self:
        _, problems = self._prepare(X, y, sample_weight, feature_names, structure, known)
        solutions = [self._solve(problem) for problem in problems]
        self._keep_weights(solutions)
        self._keep_results(solutions)
        if not np.any(self.coef_):
            finished = not any(self._is_unfinished(solution) for solution in solutions)
            warn_of_zero_weights(type(self).__name__, problems, finished)
        return self

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        feature_names: Any,
        structure: Any,
        known: Mapping[str, Any] | None = None,
    ) -> tuple[TrainingData, list[Problem]]:
        """Check the arguments of ``fit`` and return the training data and the problems."""
        carried, words = getattr(X, "structure", None), getattr(X, "column_names", None)
        X, target = self._checked_rows(X, y)
        weights = checked_sample_weight(sample_weight, X)
        names = column_names(self, words if feature_names is None else feature_names)
        columns = Columns(self.n_features_in_, names, self.missing)
        structure = self._structure(structure, carried, columns)
        structure = fit_column_builder(structure, X, self._needs_undirected)
        columns_of_loss = {name: checked_column(values, X, name) for name, values in (known or {}).items()}
        given = {name: values for name, values in columns_of_loss.items() if values is not None}
        data = TrainingData(X, target, weights, self._penalties(structure, columns), given, (structure, columns))
        problems = self._problems(data)
        self._keep_names(columns, problems[0])
        return data, problems

    def _structure(self, given: Any, carried: Any, columns: Columns) -> Any:
        """Return the structure given to the estimator, or else the one that X carries (see ``TextStructure``).

        A carried graph is symmetrised if the estimator needs an undirected one: it was learned in a pipeline, where
        the user cannot do so.
        """
        if given is not None or carried is None:
            return given
        wanted = Groups if self._structure_name == "groups" else Graph
        if isinstance(carried, Graph | Groups) and not isinstance(carried, wanted):
            name, other = type(self).__name__, "graph" if wanted is Graph else "groups"
            raise TypeError(
                f"X comes with a {type(carried).__name__}, but {name} needs a {other}: TextStructure({other}=)"
            )
        return carried.symmetrized() if self._needs_undirected and isinstance(carried, Graph) else carried

    def _problems(self, data: TrainingData) -> list[Problem]:
        model = Linear(data.X, intercept=self._has_intercept())
        return [Problem(model, sum_of_terms([loss, *data.penalties])) for loss in self._losses(data)]

    def _has_intercept(self) -> bool:
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {self.fit_intercept!r}")
        return bool(self.fit_intercept)

    def path(
        self,
        X: Any,
        y: Any,
        strengths: Any = None,
        n_points: int = 50,
        smallest: float = 0.01,
        *,
        sample_weight: Any = None,
        structure: Any = None,
        feature_names: Any = None,
        **known: Any,
    ) -> Path | tuple[Path, ...]:
        """Solve for decreasing multiples of the sparsifying strengths, each warm-started from the previous solution.

        The estimator is not fitted. Its strengths are multiplied by ``strengths``; by default by ``n_points`` numbers
        from the largest one, as in :func:`cvxstructreg.path`, down to ``smallest`` times it. With one problem for each
        class, there is one path for each class. ``structure`` is a graph, groups or penalty to use instead of the
        parameter. Other columns that ``fit`` takes, such as ``offset``, are passed by name.

        Examples
        --------
        >>> from cvxstructreg.estimators import LaplacianElasticNetRegressor
        >>> X, y = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 2.0, 3.0]
        >>> LaplacianElasticNetRegressor(fit_intercept=False).path(X, y, n_points=3).n_selected.tolist()
        [0, 2, 2]
        """
        scratch = copy(self)
        given = getattr(self, self._structure_name) if structure is None else structure
        unknown = sorted(set(known) - set(self._known_columns))
        if unknown:
            raise TypeError(f"path of {type(self).__name__} has no argument {unknown[0]!r}")
        _, problems = scratch._prepare(X, y, sample_weight, feature_names, given, known)
        terms = scratch._path_terms(problems[0])
        factors = common_strengths(problems, strengths, n_points, smallest, terms)
        paths = scratch._paths(problems, factors, verbose=bool(self.verbose))
        return paths[0] if len(paths) == 1 else paths

    def _path_terms(self, problem: Problem) -> tuple[int, ...]:
        """Return the indices of the terms that a path scales."""
        return checked_terms(problem, None)

    def _paths(self, problems: Sequence[Problem], factors: Matrix, verbose: bool) -> tuple[Path, ...]:
        return tuple(
            Path.along(problem, factors, self._path_terms(problem), self._attempt, verbose) for problem in problems
        )

    def _scores(self, X: Any) -> Any:
        check_is_fitted(self)
        X = checked_rows(self, X)
        return X @ np.atleast_2d(self.coef_).T + self.intercept_

    def _keep_names(self, columns: Columns, problem: Problem) -> None:
        """The names of the features in tables: those of X, or of the graph or groups, or x0, x1, ..."""
        names: Names = columns.names or problem.feature_names
        self._feature_labels = names or columns.labels

    def selected_features(self) -> list[SelectedFeature]:
        """Return the features with a nonzero weight, largest first, as rows ``(number, name, weight)``."""
        check_is_fitted(self)
        return selected_features(np.atleast_2d(self.coef_), self._feature_labels)

    def _keep_results(self, solutions: Sequence[Solution]) -> None:
        super()._keep_results(solutions)
        self._class_means = virtual_means(solutions)

    def class_means(self) -> list[ClassMean]:
        """Return the virtual nodes of the graph as rows ``(name, mean)``: the weights that their classes are pulled to.

        A graph of :func:`cvxstructreg.graphs.class_graph` has one virtual node for each class of features. Its value is
        the minimum over it in the penalty: for classes without common features, the mean of the weights of the class.

        Examples
        --------
        >>> from cvxstructreg.estimators import FeatureNetworkRegressor
        >>> from cvxstructreg.graphs import class_graph
        >>> graph = class_graph({"both": ["a", "b"]}, ["a", "b"])
        >>> model = FeatureNetworkRegressor(graph, beta=0.01).fit([[1, 0], [0, 1], [1, 1]], [2, 4, 6])
        >>> [(row.name, round(row.mean)) for row in model.class_means()]
        [('mean of both', 3)]
        """
        check_is_fitted(self)
        return list(self._class_means)

    def coef_table(self) -> list[CoefRow]:
        """Return the features with a nonzero weight, largest first, as rows ``(name, weight, favours, related)``.

        ``favours`` is the class that a larger value speaks for (of several classes the one with the largest weight), or
        "higher" and "lower" for regressors. ``related`` has the groups of the feature, or its neighbours in the graph.
        ``pandas.DataFrame(model.coef_table())`` makes a table.

        Examples
        --------
        >>> from cvxstructreg.estimators import LaplacianElasticNetRegressor
        >>> X, y = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1, 2, 3]
        >>> model = LaplacianElasticNetRegressor([(0, 1)], lam1=0.1).fit(X, y)
        >>> [(row.name, row.favours, row.related) for row in model.coef_table()]
        [('x0', 'higher', ('x1',)), ('x1', 'higher', ('x0',))]
        """
        classes, graph, groups = (getattr(self, name, None) for name in ("classes_", "graph_", "groups_"))
        return [
            CoefRow(
                row.name,
                row.weight,
                favoured(row.weight, classes),
                related_names(row.number, graph, groups, self._feature_labels),
            )
            for row in self.selected_features()
        ]


class LinearClassifier(ClassifierMixin, LinearEstimator):
    """Classifier with logistic loss: multinomial for several classes, or (``_one_vs_rest``) one problem per class."""

    class_weight: Any
    classes_: NDArray[Any]
    _one_vs_rest = False

    def _checked_rows(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        X, y = checked_data(self, X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}: a classifier needs at least two classes")
        return X, codes

    def _losses(self, data: TrainingData) -> list[Loss]:
        k, codes = len(self.classes_), data.target
        weights = times_class_weight(data.weights, self.class_weight, codes, self.classes_)
        if k == 2:
            return [Logistic(codes, sample_weight=weights, classes=(0, 1))]
        if self._one_vs_rest:
            return [Logistic((codes == j).astype(int), sample_weight=weights, classes=(0, 1)) for j in range(k)]
        return [Multinomial(codes, sample_weight=weights, classes=range(k))]

    def _keep_weights(self, solutions: Sequence[Solution]) -> None:
        columns = [solution.coef.reshape(solution.coef.shape[0], -1) for solution in solutions]
        self.coef_ = np.ascontiguousarray(np.concatenate(columns, axis=1).T)
        self.intercept_ = np.concatenate([np.atleast_1d(solution.intercept) for solution in solutions])
        if len(solutions) == 1 and len(self.classes_) > 2:
            self.intercept_ -= self.intercept_.mean()  # a common shift changes neither probabilities nor terms

    def decision_function(self, X: Any) -> Any:
        """Return the scores: one for each row (positive for ``classes_[1]``), or one for each row and class."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """Return the class with the highest score."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, in the order of ``classes_``."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        if not self._one_vs_rest:
            return softmax(scores, axis=1)
        return one_vs_rest_probabilities(scores)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class LinearRegressor(RegressorMixin, LinearEstimator):
    """Regressor with squared loss."""

    def _checked_rows(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        return checked_data(self, X, y, y_numeric=True)

    def _losses(self, data: TrainingData) -> list[Loss]:
        return [Squared(data.target, sample_weight=data.weights)]

    def _keep_weights(self, solutions: Sequence[Solution]) -> None:
        (solution,) = solutions
        self.coef_, self.intercept_ = solution.coef, float(solution.intercept)

    def predict(self, X: Any) -> Any:
        """Return x'w + b."""
        return self._scores(X)[:, 0]


def one_vs_rest_probabilities(scores: Matrix) -> Matrix:
    """Return the logistic function of each score, normalized to sum to one over the classes."""
    each = expit(scores)
    sums = each.sum(axis=1, keepdims=True)
    return np.where(sums > 0, each / np.where(sums > 0, sums, 1.0), softmax(scores, axis=1))
