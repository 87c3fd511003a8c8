"""Generic classifier, tuned by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvxstructreg.estimators.structured.classifier import StructuredClassifier
from cvxstructreg.estimators.structured.tuning import GenericTuning


class StructuredClassifierCV(GenericTuning, StructuredClassifier):
    """sum_i s_i loss(y_i, x_i'w + b + o_i) + t penalty(w), b free, t cross-validated.

    :class:`StructuredClassifier` with a path of strengths t in every fold, each point warm-started from the previous
    one and certified. The model is refitted on all rows at the chosen strength.

    Parameters
    ----------
    penalty, loss
        As in :class:`StructuredClassifier`.
    strengths : list of numbers, optional
        The factors t to try, the same in every fold. By default there are ``n_strengths``, from a strength at which all
        weights, or all penalised differences, are zero or small (see :func:`cvxstructreg.path`) down to ``smallest``
        times it, evenly spaced on a logarithmic scale.
    n_strengths, smallest : int, float
        Number of strengths, and the smallest one as a fraction of the largest: by default 0.01, or 1e-4 if no term can
        make weights zero.
    ratios : list of numbers, optional
        Factors of all terms of the penalty but the first (so there must be others), each with a path of its own, along
        which t multiplies all terms. By default the terms stay as given, and t multiplies those that can make weights
        zero (all terms, if none can).
    cv : int, splitter, or list of (train, test) rows; optional
        As in scikit-learn: 5 folds by default (stratified).
    scoring : str or function, optional
        As in scikit-learn, higher is better; ``score`` by default. It is called with the rows as an array, and with
        ``sample_weight`` if ``fit`` is.
    rule : {"best", "one_standard_error"}
        The best mean score, with ties going to the model with the fewest features; or the strongest penalty whose mean
        score is within one standard error of the best.
    n_jobs : int, optional
        Number of paths (one for each fold and ratio) to run in parallel, with joblib. Short paths run in this process,
        because starting others would take longer.
    others
        As in :class:`StructuredClassifier`.

    Attributes
    ----------
    strengths_ : array of shape (m,), largest first
    scores_, n_selected_ : arrays of shape (folds, m)
        Scores on the left-out rows, and numbers of features with a nonzero weight.
    mean_score_, std_error_ : arrays of shape (m,)
        Means over the folds, and their standard errors.
    best_index_, best_strength_ : int, float
        The index of the chosen strength, and the strength.
    best_params_ : dict
        The penalty of :class:`StructuredClassifier` for the same model.
    best_ratio_, ratios_, ratio_strengths_, ratio_scores_ : float, arrays of shape (r,), (r, m), (r, folds, m)
        With ``ratios``: the chosen one, all of them, and their strengths and scores.
    path_ : Path
        The path on all rows, down to the chosen strength.
    others
        As in :class:`StructuredClassifier`: the model on all rows at the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 6))
    >>> y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=80) > 0, "up", "down")
    >>> penalty = csr.GroupLasso([[0, 1], [2, 3], [4, 5]]) + csr.L1()
    >>> model = csr.StructuredClassifierCV(penalty, n_strengths=10, rule="one_standard_error").fit(X, y)
    >>> sorted(feature.name for feature in model.selected_features())
    ['x0', 'x1']
    """

    def __init__(
        self,
        penalty: Any = None,
        *,
        loss: str = "logistic",
        multi_class: str = "auto",
        strengths: Any = None,
        n_strengths: int = 50,
        smallest: float | None = None,
        ratios: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        missing: str = "error",
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            penalty,
            loss=loss,
            multi_class=multi_class,
            missing=missing,
            fit_intercept=fit_intercept,
            class_weight=class_weight,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            verbose=verbose,
            solver_options=solver_options,
        )
        self.strengths = strengths
        self.n_strengths = n_strengths
        self.smallest = smallest
        self.ratios = ratios
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs
