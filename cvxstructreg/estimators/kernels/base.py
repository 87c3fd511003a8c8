"""Base class of kernel classifiers on labelled and unlabelled rows: problem setup and prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted, validate_data

from cvxstructreg.core.model import Kernel, Linear, Model
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.estimators.base import StructuredEstimator
from cvxstructreg.estimators.kernels.labels import labelled_rows
from cvxstructreg.estimators.kernels.row_structure import Rows
from cvxstructreg.estimators.sample_weights import checked_sample_weight, times_class_weight


class Labelled:
    """The labelled rows: their indices, class codes 0..k-1 and weights."""

    def __init__(self, rows: NDArray[np.int64], codes: NDArray[Any], n_classes: int, weights: NDArray[Any]) -> None:
        self.rows, self.codes, self.n_classes, self.weights = rows, codes, n_classes, weights


class KernelClassifier(ClassifierMixin, StructuredEstimator):
    """Scores f(x) = sum_i theta_i k(x_i, x) + b over all rows given to ``fit``.

    A subclass defines the objective in :meth:`_problems`.
    """

    kernel: Any
    gamma: float | None
    degree: float
    coef0: float
    fit_intercept: bool
    class_weight: Any
    unlabeled: Any
    missing: str
    classes_: NDArray[Any]
    intercept_: NDArray[np.float64]

    def __sklearn_tags__(self) -> Any:
        """Declare that a precomputed kernel is a pairwise matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _problems(self, model: Model, labelled: Labelled, structure: Any) -> list[Problem]:
        """Return one problem, or one for each class against the rest."""
        raise NotImplementedError

    def _structure(self, X: Any, rows: Rows, graph: Any, pairs: Any) -> Any:
        """Prepare the structure of the rows that the penalty needs."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, sample_weight: Any, graph: Any, pairs: Any, sample_ids: Any) -> Self:
        # a Gram matrix keeps its dtype, which determines the allowed round-off
        dtype = [np.float64, np.float32] if self.kernel == "precomputed" else np.float64
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=dtype)
        rows = labelled_rows(y, self.unlabeled)
        self.classes_, codes = np.unique(y[rows], return_inverse=True)
        weights = checked_sample_weight(sample_weight, X)[rows]
        if not weights.any():
            raise ValueError("sample_weight is zero for every labelled row; at least one must be positive")
        weights = times_class_weight(weights, self.class_weight, codes, self.classes_)
        structure = self._structure(X, Rows(X.shape[0], sample_ids, self.missing), graph, pairs)
        model = self._model(X)
        solutions = [
            self._solve(problem)
            for problem in self._problems(model, Labelled(rows, codes, len(self.classes_), weights), structure)
        ]
        self._keep_function(X, model, solutions)
        self._keep_results(solutions)
        return self

    def _model(self, X: Any) -> Model:
        """Return a Linear model for a linear kernel with more rows than columns, and otherwise a Kernel model."""
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise TypeError(f"fit_intercept must be True or False, got {self.fit_intercept!r}")
        if self.kernel == "linear" and X.shape[0] > X.shape[1]:
            return Linear(X, intercept=self.fit_intercept)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix between all rows, got shape {X.shape}")
        gram = self._gram(X, X)
        return Kernel((gram + gram.T) / 2, intercept=self.fit_intercept, psd=self._is_psd_by_construction())

    def _is_psd_by_construction(self) -> bool:
        """Return whether the kernel is always positive semidefinite; sigmoid, functions and matrices need a proof."""
        if self.kernel in ("linear", "cosine"):
            return True
        if self.kernel == "poly":
            whole = float(self.degree).is_integer() and self.degree >= 0
            return whole and self.coef0 >= 0 and (self.gamma is None or self.gamma >= 0)
        return self.kernel in ("rbf", "laplacian") and (self.gamma is None or self.gamma >= 0)

    def _gram(self, X: Any, Y: Any) -> Any:
        if self.kernel == "precomputed":
            return X.toarray() if hasattr(X, "toarray") else X
        if callable(self.kernel):
            gram = np.asarray(self.kernel(X, Y))
            gram = gram if gram.dtype == np.float32 else gram.astype(np.float64, copy=False)
            if gram.shape != (X.shape[0], Y.shape[0]):
                raise ValueError(f"kernel(X, Y) must be a matrix of shape {(X.shape[0], Y.shape[0])}, got {gram.shape}")
            return gram
        if self.kernel not in KERNELS:
            raise ValueError(
                f"kernel must be one of {', '.join(map(repr, KERNELS))}, or a function, got {self.kernel!r}"
            )
        options: dict[str, Any] = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return np.asarray(pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **options))

    def _keep_function(self, X: Any, model: Model, solutions: Sequence[Solution]) -> None:
        theta = np.concatenate([solution.coef.reshape(model.n_weights, -1) for solution in solutions], axis=1)
        self.intercept_ = np.concatenate([np.atleast_1d(solution.intercept) for solution in solutions])
        self._center(theta)
        if self.kernel == "linear":
            self.coef_ = np.ascontiguousarray((theta if isinstance(model, Linear) else X.T @ theta).T)
        else:
            self.dual_coef_ = theta
            self.X_fit_ = None if self.kernel == "precomputed" else X

    def _center(self, theta: NDArray[np.float64]) -> None:
        """Return the scores unchanged; subclasses may centre them."""

    def _scores(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if self.kernel == "linear":
            return np.asarray(X @ self.coef_.T) + self.intercept_
        return self._gram(X, self.X_fit_) @ self.dual_coef_ + self.intercept_

    def decision_function(self, X: Any) -> Any:
        """Return the scores of rows: one for each row (positive for ``classes_[1]``), or one for each row and class."""
        scores = self._scores(X)
        return scores[:, -1] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """Return the class with the highest score."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]


#: Kernels by name, as in ``sklearn.metrics.pairwise``; parameters that a kernel does not have are ignored.
KERNELS: Mapping[str, None] = dict.fromkeys(("linear", "rbf", "poly", "sigmoid", "laplacian", "cosine", "precomputed"))
