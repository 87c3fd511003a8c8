"""Classifier with any loss of labels and any penalty on the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if

from cvxstructreg.core.loss import Loss
from cvxstructreg.estimators.linear import LinearClassifier, TrainingData, one_vs_rest_probabilities
from cvxstructreg.estimators.sample_weights import checked_column, times_class_weight
from cvxstructreg.estimators.structured.base import GenericPenalty
from cvxstructreg.estimators.structured.loss_table import CLASSIFICATION, REGRESSION, ClassLoss, named_loss


def _has_probabilities(estimator: Any) -> bool:
    """Whether the scores of the loss are log-odds."""
    return bool(estimator._loss.has_probabilities)


class StructuredClassifier(GenericPenalty, LinearClassifier):
    """sum_i s_i loss(y_i, x_i'w + b + o_i) + penalty(w), b free: any loss of labels with any sum of penalties.

    Parameters
    ----------
    penalty : atom, term, sum of them, or function; optional
        The penalty on the weights, such as ``2.0 * csr.GroupLasso(groups) + 0.5 * csr.L1()``. Graphs and groups with
        names are matched to the columns of X. A function of the weights is a convex CVXPY expression, such as
        ``lambda w: cp.norm_inf(w)``. A function of the column names returns atoms, for penalties that need the columns:
        ``lambda names: csr.GroupLasso(groups_of(names))``; after :class:`cvxstructreg.TextStructure` also one of names
        and structure, ``lambda names, groups: csr.GroupLasso(groups)``. None is ``csr.Ridge()``.
    loss : {"logistic", "multinomial", "hinge", "squared_hinge"}
        The loss, a sum over rows. "multinomial" has one score for each class, also for two classes.
    multi_class : {"auto", "joint", "one_vs_rest"}
        More than two classes: one problem with the multinomial loss (for "hinge" the multiclass hinge loss of Lee, Lin
        and Wahba), or one problem for each class against the rest. "auto" is joint for "logistic" and "multinomial".
    missing : {"error", "ignore"}
        What to do with names in graphs and groups that are not columns of X.
    fit_intercept : bool
        Whether to fit an intercept b, which is not penalised.
    class_weight : dict or "balanced", optional
        Factors of the sample weights by class; "balanced" gives every class the same total weight.
    solver, tol, max_iter, verbose, solver_options
        As in :meth:`cvxstructreg.Problem.solve`: ``tol`` is the certified relative gap to reach, and ``solver_options``
        is a dict of further options such as ``{"time_limit": 10}``.

    Attributes
    ----------
    coef_ : array of shape (1, d), or (k, d) for k scores
    intercept_ : array of shape (1,) or (k,)
    classes_ : array of the class labels
    groups_, graph_ : Groups or None, Graph or None
        The first groups and the first graph of the penalty, over the columns of X.
    objective_, certificate_, solution_, n_iter_
        The objective above at the fitted point, a bound on how far it is above the optimum, the full solution (with the
        exact problem in ``solution_.problem``; a tuple with one problem for each class) and the number of iterations.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 6))
    >>> y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=80) > 0, "up", "down")
    >>> penalty = 8.0 * csr.GroupLasso([[0, 1], [2, 3], [4, 5]]) + 4.0 * csr.L1()
    >>> model = csr.StructuredClassifier(penalty, loss="squared_hinge").fit(X, y)
    >>> [feature.name for feature in model.selected_features()]
    ['x1', 'x0']
    >>> bool(model.certificate_.relative_gap <= 1e-6)
    True
    """

    _known_columns = ("offset",)

    def __init__(
        self,
        penalty: Any = None,
        *,
        loss: str = "logistic",
        multi_class: str = "auto",
        missing: str = "error",
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.multi_class = multi_class
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        penalty: Any = None,
        offset: Any = None,
        feature_names: Any = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of n labels
        sample_weight : array of n numbers, optional
            The s_i.
        penalty : sum of atoms or function, optional
            Used instead of the parameter ``penalty``.
        offset : array of n numbers, or of shape (n, k) for k scores; optional
            The o_i: scores that are known in advance. Predictions take an offset of their own.
        feature_names : sequence of d str, optional
            The names of the columns if X has none, such as ``vectorizer.get_feature_names_out()``.
        """
        structure = self.penalty if penalty is None else penalty
        return self._fit(X, y, sample_weight, feature_names, structure, {"offset": offset})

    @property
    def _loss(self) -> ClassLoss:
        entry: ClassLoss = named_loss(self.loss, CLASSIFICATION, REGRESSION, "StructuredRegressor")
        return entry

    @property
    def _one_vs_rest(self) -> bool:  # type: ignore[override]
        """Whether more than two classes are separate problems."""
        choice = self._choice("multi_class", ("auto", "joint", "one_vs_rest"))
        if choice == "joint" and self._loss.joint is None:
            raise ValueError(f"loss={self.loss!r} has no joint form for several classes; use multi_class='one_vs_rest'")
        if choice == "one_vs_rest" and self._loss.two is None:
            raise ValueError("loss='multinomial' is joint; for one class against the rest use loss='logistic'")
        return choice == "one_vs_rest" or (choice == "auto" and not self._loss.has_probabilities)

    def _losses(self, data: TrainingData) -> list[Loss]:
        k, codes, entry = len(self.classes_), data.target, self._loss
        separate = self._one_vs_rest
        weights = times_class_weight(data.weights, self.class_weight, codes, self.classes_)
        offset = data.known.get("offset")
        if entry.two is not None and k == 2:
            return [self._two_classes(codes, weights, offset)]
        if not separate:
            assert entry.joint is not None
            options: Any = {"sample_weight": weights, "offset": offset, "classes": range(k)}
            return [entry.joint(codes, **options)]
        if offset is not None and offset.shape != (len(codes), k):
            raise ValueError(f"offset must have shape {(len(codes), k)}, one number for each class, got {offset.shape}")
        return [
            self._two_classes((codes == j).astype(int), weights, None if offset is None else offset[:, j])
            for j in range(k)
        ]

    def _two_classes(self, codes: Any, weights: Any, offset: Any) -> Loss:
        two: Any = self._loss.two
        loss: Loss = two(codes, sample_weight=weights, offset=offset, classes=(0, 1))
        return loss

    def decision_function(self, X: Any, offset: Any = None) -> Any:
        """Return the scores: one for each row (positive for ``classes_[1]``), or one for each row and class."""
        scores = self._scores(X)
        known = checked_column(offset, scores, "offset")
        if known is not None:
            scores = scores + known.reshape(len(scores), -1)
        if len(self.classes_) > 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, X: Any, offset: Any = None) -> Any:
        """Return the class with the highest score."""
        scores = self.decision_function(X, offset)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        """Return the probabilities of the classes, in the order of ``classes_``; not for hinge losses."""
        scores = self.decision_function(X, offset)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return one_vs_rest_probabilities(scores) if self._one_vs_rest else softmax(scores, axis=1)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any, offset: Any = None) -> Any:
        """Return the logarithms of the probabilities; not for hinge losses."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the accuracy."""
        return float(accuracy_score(y, self.predict(X, offset), sample_weight=sample_weight))
