"""Base class of the group lasso estimators: the penalty, the algorithm of the paper, and the selected groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.estimators.alignment import Columns, aligned_groups
from cvxstructreg.estimators.group_lasso.published_admm import NAME as PUBLISHED
from cvxstructreg.estimators.group_lasso.published_admm import copies_kept, truncated_admm
from cvxstructreg.estimators.group_rows import KeepsGroups
from cvxstructreg.estimators.linear import LinearEstimator
from cvxstructreg.estimators.user_structure import with_singles
from cvxstructreg.groups import Groups
from cvxstructreg.penalties import L1, GroupLasso
from cvxstructreg.runtime.notices import UngroupedWarning
from cvxstructreg.runtime.quiet import warn

FORMER_SPELLING = (
    'the published algorithm is now solver="sentence_admm"; solver="admm" with rho or max_iter still means it, but '
    "will be the general ADMM of problem.solve"
)


class OnGroupsOfFeatures(LinearEstimator):
    """A linear estimator whose penalty is made of groups of features."""

    groups: Any
    _structure_name = "groups"

    def _chosen_groups(self, groups: Any) -> Any:
        """Return the groups given to ``fit``, or the parameter."""
        if groups is not None and not isinstance(groups, Groups):
            raise TypeError(
                f"groups given to fit must be a Groups, got {type(groups).__name__}; pass lists, dicts, and "
                "Groups with as many groups as rows to the constructor: cross-validation would split them like rows"
            )
        return self.groups if groups is None else groups


class GroupSelection(OnGroupsOfFeatures, KeepsGroups):
    """lam_group sum_g c_g ||w_g||_2 + lam_l1 ||w||_1."""

    group_weights: Any
    ungrouped: str
    rho: float
    max_iter: Any
    groups_: Groups

    def _penalties(self, structure: Any, columns: Columns) -> list[Any]:
        lam_group, lam_l1 = self._strength("lam_group"), self._strength("lam_l1")
        groups, numbers = aligned_groups(structure, columns, self.group_weights)
        self.groups_, self._group_numbers = self._with_ungrouped(groups, numbers, lam_l1 == 0)
        return [lam_group * GroupLasso(self.groups_), lam_l1 * L1()]

    def _with_ungrouped(self, groups: Groups, numbers: Any, unpenalised: bool) -> tuple[Groups, Any]:
        """Return the groups and their numbers; features in no group become groups or stay free, with a warning."""
        choice = self._choice("ungrouped", ("warn", "single", "free"))
        count = groups.n_features - int(groups.covered.sum())
        if choice == "single" and count:
            first = int(numbers.max(initial=-1)) + 1
            return with_singles(groups), np.concatenate([numbers, first + np.arange(count)])
        if choice == "warn" and count and unpenalised:
            warn(
                f"{count} of {groups.n_features} features are in no group, and nothing penalises their weights. "
                "ungrouped='single' makes each of them a group, ungrouped='free' leaves them free without this warning",
                UngroupedWarning,
                stacklevel=6,
            )
        return groups, numbers

    @property
    def _is_truncated(self) -> bool:
        """Whether ADMM is truncated as in the paper, where the truncation is part of the method."""
        return self._algorithm == PUBLISHED and self.max_iter is not None

    @property
    def _algorithm(self) -> str:
        """The current name of the solver: "admm" with options of the published algorithm is a former spelling."""
        former = self.solver == "admm" and (self.max_iter is not None or self.rho != 1.0)
        return PUBLISHED if former else self.solver

    def _attempt(self, problem: Problem, start: Solution | None = None, verbose: bool = False) -> Solution:
        if self._algorithm != self.solver:
            warn(FORMER_SPELLING, FutureWarning, stacklevel=3)
        if self._is_truncated:  # always from zero: another start would give another model
            return truncated_admm(problem, self.tol, self.max_iter, self.rho, **(self.solver_options or {}))
        if self._algorithm == PUBLISHED:
            return self._run_solver(problem, PUBLISHED, {"rho": self.rho, "warm_start": start, "verbose": verbose})
        return super()._attempt(problem, start, verbose)

    def _is_unfinished(self, solution: Solution) -> bool:
        return not self._is_truncated and super()._is_unfinished(solution)

    def _keep_results(self, solutions: Sequence[Solution]) -> None:
        super()._keep_results(solutions)
        (solution,) = solutions
        self._groups_kept = self._norms(solution.coef) > 0
        if self._algorithm == PUBLISHED:
            strengths = [term.scale for term in solution.problem.terms if isinstance(term.atom, GroupLasso)]
            self._groups_kept = copies_kept(solution, self.groups_, sum(strengths))
