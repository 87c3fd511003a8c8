"""Laplacian elastic net classifier, tuned by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvxstructreg.estimators.cross_validation import CrossValidated
from cvxstructreg.estimators.laplacian_elastic_net.classifier import LaplacianElasticNetClassifier


class LaplacianElasticNetClassifierCV(CrossValidated, LaplacianElasticNetClassifier):
    """sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + t lam1 ||w||_1 + lam2/2 w'Lw, with t chosen by cross-validation.

    :class:`LaplacianElasticNetClassifier` with a path of strengths t in every fold, each point warm-started from the
    previous one and certified. The model is refitted on all rows at the chosen strength. With more than two classes,
    all of them have the same strength.

    Parameters
    ----------
    graph : Graph or square matrix, optional
        As in :class:`LaplacianElasticNetClassifier`.
    lam1 : float
        The strengths multiply this value; with 1 they are the values of lam1.
    lam2 : float
        Strength of the graph, which is fixed.
    strengths : list of numbers, optional
        The multiples of ``lam1`` to try, the same in every fold. By default there are ``n_strengths``, from the
        smallest strength at which all weights are zero down to ``smallest`` times it, evenly spaced on a logarithmic
        scale.
    n_strengths, smallest : int, float
        Number of strengths, and the smallest one as a fraction of the largest.
    ratios : list of numbers, optional
        The values of lam2 / lam1 to try, each with a path of its own, along which the strengths
        multiply both. By default lam2 stays as given.
    cv : int, splitter, or list of (train, test) rows; optional
        As in scikit-learn: 5 stratified folds by default.
    scoring : str or function, optional
        As in scikit-learn, higher is better; accuracy by default. It is called with the rows as an array, and with
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
        As in :class:`LaplacianElasticNetClassifier`.

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
        The parameters of :class:`LaplacianElasticNetClassifier` for the same model.
    best_ratio_, ratios_, ratio_strengths_, ratio_scores_ : float, arrays of shape (r,), (r, m), (r, folds, m)
        With ``ratios``: the chosen one, all of them, and their strengths and scores. The attributes above belong to
        the chosen ratio.
    path_ : Path, or tuple of k Paths
        The path on all rows, down to the chosen strength.
    others
        As in :class:`LaplacianElasticNetClassifier`: the model on all rows at the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxstructreg import Graph
    >>> from cvxstructreg.estimators import LaplacianElasticNetClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 6))
    >>> y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=80) > 0, "up", "down")
    >>> graph = Graph.from_edges([(0, 1), (2, 3), (4, 5)], n_nodes=6)
    >>> model = LaplacianElasticNetClassifierCV(graph, lam2=5.0, n_strengths=10, rule="one_standard_error").fit(X, y)
    >>> sorted(feature.name for feature in model.selected_features())
    ['x0', 'x1']
    >>> model.scores_.shape, sorted(model.best_params_)
    ((5, 10), ['lam1'])
    """

    _tuned = ("lam1",)
    _ratio = ("lam2", "lam1")

    def __init__(
        self,
        graph: Any = None,
        *,
        lam1: float = 1.0,
        lam2: float = 1.0,
        normalized: bool = True,
        multi_class: str = "one_vs_rest",
        strengths: Any = None,
        n_strengths: int = 50,
        smallest: float = 0.01,
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
            graph,
            lam1=lam1,
            lam2=lam2,
            normalized=normalized,
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
