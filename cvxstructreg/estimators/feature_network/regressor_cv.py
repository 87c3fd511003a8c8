"""Feature network regressor, tuned by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvxstructreg.estimators.cross_validation import CrossValidated
from cvxstructreg.estimators.feature_network.regressor import FeatureNetworkRegressor


class FeatureNetworkRegressorCV(CrossValidated, FeatureNetworkRegressor):
    """1/2 sum_i s_i (x_i'w + b - y_i)^2 + t (alpha ||(I - P) w||^2 + beta ||w||^2), t cross-validated.

    :class:`FeatureNetworkRegressor` with a path of strengths t in every fold, each point warm-started from the
    previous one and certified. The model is refitted on all rows at the chosen strength. No strength makes weights zero
    here: paths start where the terms have 100 times the curvature of the loss. Ties go to the strongest penalty.

    Parameters
    ----------
    graph : Graph or square matrix, optional
        As in :class:`FeatureNetworkRegressor`.
    alpha, beta : float
        The strengths multiply both; their ratio is fixed.
    strengths : list of numbers, optional
        The multiples of ``alpha`` and ``beta`` to try, the same in every fold. By default there are ``n_strengths``,
        from the strength of a nearly constant model down to ``smallest`` times it, evenly spaced on a logarithmic
        scale.
    n_strengths, smallest : int, float
        Number of strengths, and the smallest one as a fraction of the largest.
    ratios : list of numbers, optional
        The values of alpha / beta to try, each with a path of its own; by default the ratio is fixed.
    cv : int, splitter, or list of (train, test) rows; optional
        As in scikit-learn: 5 contiguous folds by default.
    scoring : str or function, optional
        As in scikit-learn, higher is better; R^2 by default. It is called with the rows as an array, and with
        ``sample_weight`` if ``fit`` is.
    rule : {"best", "one_standard_error"}
        The best mean score, with ties going to the model with the fewest features; or the strongest penalty whose mean
        score is within one standard error of the best.
    n_jobs : int, optional
        Number of paths (one for each fold and ratio) to run in parallel, with joblib. Short paths run in this process,
        because starting others would take longer.
    verbose : bool
        Whether to show the number of finished folds and the progress of the last path.
    others
        As in :class:`FeatureNetworkRegressor`.

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
        The parameters of :class:`FeatureNetworkRegressor` for the same model.
    best_ratio_, ratios_, ratio_strengths_, ratio_scores_ : float, arrays of shape (r,), (r, m), (r, folds, m)
        With ``ratios``: the chosen one, all of them, and their strengths and scores. The attributes above belong to
        the chosen ratio.
    path_ : Path
        The path on all rows, down to the chosen strength.
    others
        As in :class:`FeatureNetworkRegressor`: the model on all rows at the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxstructreg import Graph
    >>> from cvxstructreg.estimators import FeatureNetworkRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 6))
    >>> y = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=80)
    >>> graph = Graph.from_edges([(0, 1), (2, 3), (4, 5)], n_nodes=6)
    >>> model = FeatureNetworkRegressorCV(graph, n_strengths=10).fit(X, y)
    >>> float(model.score(X, y)) > 0.85
    True
    >>> round(model.best_params_["alpha"] / model.best_params_["beta"], 6)
    10.0
    """

    _tuned = ("alpha", "beta")
    _ratio = ("alpha", "beta")

    def __init__(
        self,
        graph: Any = None,
        *,
        alpha: float = 10.0,
        beta: float = 1.0,
        signed: str = "separate",
        strengths: Any = None,
        n_strengths: int = 50,
        smallest: float = 1e-4,
        ratios: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        n_jobs: int | None = None,
        missing: str = "error",
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            graph,
            alpha=alpha,
            beta=beta,
            signed=signed,
            missing=missing,
            fit_intercept=fit_intercept,
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
