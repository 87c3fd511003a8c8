"""Group lasso regressor, tuned by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvxstructreg.estimators.cross_validation import CrossValidated
from cvxstructreg.estimators.group_lasso.regressor import GroupLassoRegressor


class GroupLassoRegressorCV(CrossValidated, GroupLassoRegressor):
    """1/2 sum_i s_i (x_i'w + b - y_i)^2 + t (lam_group sum_g c_g ||w_g||_2 + lam_l1 ||w||_1), t cross-validated.

    :class:`GroupLassoRegressor` with a path of strengths t in every fold, each point warm-started from the previous one
    and certified. The model is refitted on all rows at the chosen strength. With ``solver="sentence_admm"`` and
    ``max_iter`` (the truncated algorithm of the paper), every point starts from zero.

    Parameters
    ----------
    groups : Groups, list of lists, or dict of lists; optional
        As in :class:`GroupLassoRegressor`.
    lam_group, lam_l1 : float
        The strengths multiply both; their ratio is fixed.
    strengths : list of numbers, optional
        The multiples of ``lam_group`` and ``lam_l1`` to try, the same in every fold. By default there are
        ``n_strengths``, from the smallest strength at which all weights are zero down to ``smallest`` times it, evenly
        spaced on a logarithmic scale.
    n_strengths, smallest : int, float
        Number of strengths, and the smallest one as a fraction of the largest.
    ratios : list of numbers, optional
        The values of lam_l1 / lam_group to try, each with a path of its own; by default the ratio is fixed.
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
        As in :class:`GroupLassoRegressor`.

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
        The parameters of :class:`GroupLassoRegressor` for the same model.
    best_ratio_, ratios_, ratio_strengths_, ratio_scores_ : float, arrays of shape (r,), (r, m), (r, folds, m)
        With ``ratios``: the chosen one, all of them, and their strengths and scores. The attributes above belong to
        the chosen ratio.
    path_ : Path
        The path on all rows, down to the chosen strength.
    others
        As in :class:`GroupLassoRegressor`: the model on all rows at the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxstructreg.estimators import GroupLassoRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 6))
    >>> y = 2 * X[:, 0] - X[:, 1] + rng.normal(size=60)
    >>> groups = {"signal": [0, 1], "noise": [2, 3], "more noise": [4, 5]}
    >>> model = GroupLassoRegressorCV(groups, n_strengths=10, rule="one_standard_error").fit(X, y)
    >>> [group.name for group in model.selected_groups()]
    ['signal']
    """

    _tuned = ("lam_group", "lam_l1")
    _ratio = ("lam_l1", "lam_group")

    def __init__(
        self,
        groups: Any = None,
        *,
        lam_group: float = 1.0,
        lam_l1: float = 0.0,
        group_weights: Any = None,
        ungrouped: str = "warn",
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
        solver: str = "auto",
        rho: float = 1.0,
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            groups,
            lam_group=lam_group,
            lam_l1=lam_l1,
            group_weights=group_weights,
            ungrouped=ungrouped,
            missing=missing,
            fit_intercept=fit_intercept,
            solver=solver,
            rho=rho,
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
