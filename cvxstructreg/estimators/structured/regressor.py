"""Regressor with any loss of numbers or survival times and any penalty on the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.solution import Solution
from cvxstructreg.estimators.linear import LinearRegressor, TrainingData
from cvxstructreg.estimators.row_blocks import as_row_blocks
from cvxstructreg.estimators.sample_weights import checked_column
from cvxstructreg.estimators.structured.base import GenericPenalty
from cvxstructreg.estimators.structured.loss_table import CLASSIFICATION, REGRESSION, RegressionLoss, named_loss
from cvxstructreg.estimators.structured.survival import time_and_event
from cvxstructreg.losses import MultiTask


class StructuredRegressor(GenericPenalty, LinearRegressor):
    """sum_i s_i loss(y_i, x_i'w + b + o_i) + penalty(w), b free: any loss of numbers with any sum of penalties.

    Parameters
    ----------
    penalty : atom, term, sum of them, or function; optional
        The penalty on the weights, such as ``2.0 * csr.GroupLasso(groups) + 0.5 * csr.L1()``. Graphs and groups with
        names are matched to the columns of X. A function of the weights is a convex CVXPY expression, such as
        ``lambda w: cp.norm_inf(w)``. A function of the column names returns atoms, for penalties that need the columns:
        ``lambda names: csr.GroupLasso(groups_of(names))``; after :class:`cvxstructreg.TextStructure` also one of names
        and structure, ``lambda names, groups: csr.GroupLasso(groups)``. None is ``csr.Ridge()``.
    loss : {"squared", "absolute", "quantile", "huber", "poisson", "gamma", "tweedie", "multi_task", "cox"}
        The loss, a sum over rows; see the class of that name, such as :class:`cvxstructreg.Poisson`. "poisson", "gamma"
        and "tweedie" predict means exp(x'w + b). "cox" is the proportional hazards model: it predicts logarithms of
        relative risks and has no intercept. "multi_task" is the squared loss of several outputs, with a column of y for
        each. Group norms are over all outputs: ``csr.GroupLasso(csr.Groups.singletons(d))`` selects features for all.
    quantile, delta, power : float
        Parameters of the losses "quantile" (in (0, 1)), "huber" (in the units of y) and "tweedie" (in (1, 2)).
    ties : {"breslow", "efron"}
        How "cox" treats events at the same time.
    task_weight : array of k positive numbers, optional
        Factors of the outputs of "multi_task", such as 1 / variance; ones by default.
    missing : {"error", "ignore"}
        What to do with names in graphs and groups that are not columns of X.
    fit_intercept : bool
        Whether to fit an intercept b, which is not penalised; "cox" has none.
    solver, tol, max_iter, verbose, solver_options
        As in :meth:`cvxstructreg.Problem.solve`: ``tol`` is the certified relative gap to reach, and ``solver_options``
        is a dict of further options such as ``{"time_limit": 10}``.

    Attributes
    ----------
    coef_ : array of shape (d,), or (k, d) for k outputs
    intercept_ : float, or array of k numbers
    groups_, graph_ : Groups or None, Graph or None
        The first groups and the first graph of the penalty, over the columns of X.
    objective_, certificate_, solution_, n_iter_
        The objective above at the fitted point, a bound on how far it is above the optimum, the full solution (with the
        exact problem in ``solution_.problem``) and the number of iterations.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    Counts with overlapping groups of features:

    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> y = rng.poisson(np.exp(X[:, 0] - X[:, 1]))
    >>> groups = [[0, 1], [1, 2], [3, 4, 5]]
    >>> model = csr.StructuredRegressor(30.0 * csr.GroupLasso(groups), loss="poisson").fit(X, y)
    >>> sorted(feature.name for feature in model.selected_features())
    ['x0', 'x1', 'x2']

    Survival times with a sparse penalty:

    >>> time = rng.exponential(np.exp(-X[:, 0]))
    >>> y = np.column_stack([np.minimum(time, 2.0), time < 2.0])  # (time, event)
    >>> model = csr.StructuredRegressor(20.0 * csr.L1(), loss="cox").fit(X, y)
    >>> [feature.name for feature in model.selected_features()]
    ['x0']
    >>> bool(model.score(X, y) > 0.7)  # the concordance index
    True
    """

    _known_columns = ("offset", "exposure", "strata")

    def __init__(
        self,
        penalty: Any = None,
        *,
        loss: str = "squared",
        quantile: float = 0.5,
        delta: float = 1.345,
        power: float = 1.5,
        ties: str = "breslow",
        task_weight: Any = None,
        missing: str = "error",
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.quantile = quantile
        self.delta = delta
        self.power = power
        self.ties = ties
        self.task_weight = task_weight
        self.missing = missing
        self.fit_intercept = fit_intercept
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
        exposure: Any = None,
        strata: Any = None,
        feature_names: Any = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of n numbers, or of shape (n, k) for ``loss="multi_task"``
            For ``loss="cox"`` a structured array of (event, time), an array of two columns (time, event), or a data
            frame with these columns.
        sample_weight : array of n numbers, optional
            The s_i.
        penalty : sum of atoms or function, optional
            Used instead of the parameter ``penalty``.
        offset : array of n numbers, or of shape (n, k) for k outputs; optional
            The o_i: scores that are known in advance. Predictions take an offset of their own.
        exposure : array of n positive numbers, optional
            For ``loss="poisson"``: the time or population in which each count was observed.
        strata : array of n labels, optional
            For ``loss="cox"``: rows of different strata have different baseline hazards.
        feature_names : sequence of d str, optional
            The names of the columns if X has none, such as ``vectorizer.get_feature_names_out()``.
        """
        structure = self.penalty if penalty is None else penalty
        known = {"offset": offset, "exposure": exposure, "strata": numbered(strata)}
        return self._fit(X, y, sample_weight, feature_names, structure, known)

    @property
    def _loss(self) -> RegressionLoss:
        entry: RegressionLoss = named_loss(self.loss, REGRESSION, CLASSIFICATION, "StructuredClassifier")
        return entry

    def _has_intercept(self) -> bool:
        return super()._has_intercept() and not self._loss.make.ignores_constants

    @property
    def _several(self) -> bool:
        """Whether the loss is of several outputs."""
        return self._loss.make is MultiTask

    def __sklearn_tags__(self) -> Any:
        """Declare that "multi_task" needs a column of targets for each output."""
        tags = super().__sklearn_tags__()
        if self.loss in REGRESSION and self._several:
            tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        return tags

    def _checked_rows(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        if not self._loss.make.ignores_constants and not self._several:
            shape = np.asarray(y).shape
            if len(shape) == 2 and shape[1] > 1:
                raise ValueError(f"y must be a 1d array, got shape {shape}; loss='multi_task' is for several outputs")
            return super()._checked_rows(X, y)
        if as_row_blocks(X) is not None:
            raise TypeError(f"loss={self.loss!r} does not support data in blocks of rows; use a matrix in memory")
        if self._several:
            checked: tuple[Any, NDArray[Any]] = validate_data(
                self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True, multi_output=True
            )
            return checked
        if y is None:
            raise ValueError("y is missing: loss='cox' needs times and events")
        target = time_and_event(y)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        check_consistent_length(X, target)
        return X, target

    def _keep_weights(self, solutions: Sequence[Solution]) -> None:
        if not self._several:
            return super()._keep_weights(solutions)
        (solution,) = solutions
        self.coef_ = np.ascontiguousarray(solution.coef.reshape(solution.coef.shape[0], -1).T)
        self.intercept_ = np.atleast_1d(solution.intercept)

    def _losses(self, data: TrainingData) -> list[Loss]:
        entry = self._loss
        options: dict[str, Any] = {name: getattr(self, name) for name in entry.options}
        options |= {"sample_weight": data.weights, "offset": data.known.get("offset")}
        for name, wanted in (("exposure", "poisson"), ("strata", "cox")):
            if name in data.known:
                self._require_loss(name, wanted)
                options[name] = data.known[name]
        target = data.target
        if entry.make.ignores_constants:
            target, options["event"] = target[:, 0], target[:, 1] > 0
        make: Any = entry.make
        return [make(target, **options)]

    def _require_loss(self, name: str, wanted: str) -> None:
        if self.loss != wanted:
            remedy = "; pass its logarithm as offset=" if name == "exposure" else ""
            raise ValueError(f"{name} is for loss={wanted!r}, but the loss is {self.loss!r}{remedy}")

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        """Return x'w + b + o, its exponential for "poisson" (times the exposure), "gamma" and "tweedie"."""
        scores = self._scores(X) if self._several else self._scores(X)[:, 0]
        known = checked_column(offset, scores, "offset")
        means = self._loss.link(scores if known is None else scores + known.reshape(scores.shape))
        if exposure is None:
            return means
        self._require_loss("exposure", "poisson")
        return means * checked_column(exposure, scores, "exposure")

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> float:
        """Return R^2 ("squared", "huber"), the part of the deviance explained (D^2), or the concordance index ("cox").

        D^2 is 1 minus the loss relative to that of the best constant: of the deviance for "poisson", "gamma" and
        "tweedie", of the pinball loss for "quantile", of the absolute error for "absolute".
        """
        target = time_and_event(y) if self._loss.make.ignores_constants else check_array(y, ensure_2d=False)
        means = self.predict(X, offset)
        weights = checked_column(sample_weight, means, "sample_weight")
        if exposure is not None:  # half the deviance of a count is its exposure times that of its rate
            self._require_loss("exposure", "poisson")
            times = checked_column(exposure, means, "exposure")
            target, weights = target / times, times if weights is None else weights * times
        return self._loss.score(self, target, means, weights)


def numbered(strata: Any) -> Any:
    """Return a number for each label; None for None."""
    if strata is None:
        return None
    labels = np.asarray(strata)
    if labels.ndim != 1:
        raise ValueError(f"strata must have one label for each row, got shape {labels.shape}")
    return np.unique(labels, return_inverse=True)[1]
