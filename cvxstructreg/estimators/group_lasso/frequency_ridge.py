"""A ridge penalty that weights each feature by its number of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from cvxstructreg.estimators.alignment import Columns, aligned_groups
from cvxstructreg.estimators.group_lasso.base import OnGroupsOfFeatures
from cvxstructreg.estimators.linear import LinearClassifier
from cvxstructreg.penalties import Ridge


class FrequencyRidgeClassifier(OnGroupsOfFeatures, LinearClassifier):
    """sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + lam sum_j N_j w_j^2, N_j = the number of groups of feature j.

    With one group for each sentence, N_j says in how many sentences the word j occurs. The first iteration of the
    algorithm of Yogatama and Smith (2014) with penalty rho is this model with ``lam = rho / 2``, plus their L1 term. It
    is the simple model to compare :class:`EarlyStopped` with.

    Parameters
    ----------
    groups : Groups, list or dict of lists, data frame (group, feature), path of a .gmt file, or builder; optional
        As in :class:`GroupLassoClassifier`. A group of weight c counts c times, as merged sentences do, and a member of
        weight m counts m^2 times. A feature in no group counts as in one; None is plain ridge.
    lam : float
        The strength.
    missing, fit_intercept, class_weight, solver, tol, max_iter, verbose, solver_options
        As in :class:`GroupLassoClassifier`.

    Attributes
    ----------
    counts_ : array of shape (d,)
        The N_j.
    others
        As in :class:`GroupLassoClassifier`.

    Examples
    --------
    >>> from cvxstructreg.estimators import FrequencyRidgeClassifier
    >>> X, y = [[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 0.0, 0.0], [0.0, 2.0, 1.0]], [0, 1, 0, 1]
    >>> model = FrequencyRidgeClassifier([[0, 1], [1, 2], [1]]).fit(X, y)
    >>> model.counts_
    array([1., 3., 1.])
    """

    def __init__(
        self,
        groups: Any = None,
        *,
        lam: float = 1.0,
        missing: str = "error",
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.groups = groups
        self.lam = lam
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, feature_names: Any = None) -> Self:
        """Fit the weights; the arguments are those of :meth:`GroupLassoClassifier.fit`."""
        return self._fit(X, y, sample_weight, feature_names, self._chosen_groups(groups))

    def _penalties(self, structure: Any, columns: Columns) -> list[Any]:
        lam = self._strength("lam")
        self.groups_, _ = aligned_groups(structure, columns, None)
        groups = self.groups_
        each = np.repeat(groups.weights, groups.sizes)
        if groups.member_weights is not None:
            each = each * groups.member_weights**2
        counts = np.bincount(groups.indices, each, minlength=groups.n_features)
        self.counts_ = np.where(groups.covered, counts, 1.0)
        return [lam * Ridge(self.counts_)]
