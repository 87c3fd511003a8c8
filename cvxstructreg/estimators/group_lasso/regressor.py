"""Group lasso regressor: the features of a group are selected together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from cvxstructreg.estimators.group_lasso.base import GroupSelection
from cvxstructreg.estimators.linear import LinearRegressor


class GroupLassoRegressor(GroupSelection, LinearRegressor):
    """1/2 sum_i s_i (x_i'w + b - y_i)^2 + lam_group sum_g c_g ||w_g||_2 + lam_l1 ||w||_1, b free.

    Yuan and Lin, "Model selection and estimation in regression with grouped variables", JRSS B 2006, with overlapping
    groups as in Yogatama and Smith, ICML 2014: a group at zero sets all its features to zero. The loss is half a sum
    over rows, not a mean.

    Parameters
    ----------
    groups : Groups, list or dict of lists, data frame (group, feature), path of a .gmt file, or builder; optional
        The groups g, which may overlap: lists of column numbers, or of names that are matched to the columns of a data
        frame (or to the ``feature_names`` given to ``fit``); the keys of a dict name the groups. A builder that learns
        from X, such as :class:`cvxstructreg.groups.LSIGroups`, is fitted on the rows given to ``fit``. None makes every
        feature a separate group.
    lam_group, lam_l1 : float
        Strengths of the group norms and of the L1 term (lam_sen and lam_las of the paper).
    group_weights : "sqrt", number, one number per group, or function of the group sizes; optional
        The c_g: by default the weights of ``groups``, or 1; "sqrt" is the square root of the group size.
    ungrouped : {"warn", "single", "free"}
        Features in no group: each becomes a group of weight 1 ("single"), or their weights have no group penalty
        ("free"); "warn" is "free" with a warning if the L1 term does not penalise them either.
    missing : {"error", "ignore"}
        What to do with names in groups that are not columns of X. Groups that become empty are dropped.
    fit_intercept : bool
        Whether to fit an intercept b, which is not penalised.
    solver : str
        "auto" (certified optimum), "sentence_admm" (the algorithm of the paper), or a solver of the library.
    rho : float
        Penalty parameter of ``solver="sentence_admm"``; not used by other solvers.
    max_iter : int, optional
        Most iterations. With ``solver="sentence_admm"`` this is the truncation of the paper, which is part of the
        method. There is no warning then, and ``certificate_`` bounds how far the result is from the optimum.
    tol, verbose, solver_options
        As in :meth:`cvxstructreg.Problem.solve`: ``tol`` is the certified relative gap to reach, and ``solver_options``
        is a dict of further options such as ``{"time_limit": 10}``.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    objective_, certificate_, solution_, n_iter_
        The objective above at the fitted point, a bound on how far it is above the optimum, the full solution (with the
        exact problem in ``solution_.problem``) and the number of iterations.
    groups_ : Groups
        The groups of columns of X.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxstructreg.estimators import GroupLassoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 6))
    >>> y = 2 * X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=60)
    >>> groups = {"signal": [0, 1], "noise": [2, 3], "more noise": [4, 5]}
    >>> model = GroupLassoRegressor(groups, lam_group=5.0).fit(X, y)
    >>> [group.name for group in model.selected_groups()]
    ['signal']
    """

    def __init__(
        self,
        groups: Any = None,
        *,
        lam_group: float = 1.0,
        lam_l1: float = 0.0,
        group_weights: Any = None,
        ungrouped: str = "warn",
        missing: str = "error",
        fit_intercept: bool = True,
        solver: str = "auto",
        rho: float = 1.0,
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.groups = groups
        self.lam_group = lam_group
        self.lam_l1 = lam_l1
        self.group_weights = group_weights
        self.ungrouped = ungrouped
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.rho = rho
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, feature_names: Any = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of n numbers
        sample_weight : array of n numbers, optional
            The s_i.
        groups : Groups, optional
            Used instead of the parameter ``groups``. Must be a Groups object, because cross-validation would split a
            list like rows.
        feature_names : sequence of d str, optional
            The names of the columns if X has none, such as ``vectorizer.get_feature_names_out()``.
        """
        return self._fit(X, y, sample_weight, feature_names, self._chosen_groups(groups))
