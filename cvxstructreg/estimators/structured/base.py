"""What the generic classifier and regressor share: the penalty, its groups, and which of its terms a path scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.estimators.alignment import Columns
from cvxstructreg.estimators.group_rows import KeepsGroups
from cvxstructreg.estimators.structured.penalty import penalty_terms, structure_of
from cvxstructreg.groups import Groups
from cvxstructreg.paths.strength import sparsifying_terms, weight_terms
from cvxstructreg.runtime.notices import UngroupedWarning
from cvxstructreg.runtime.quiet import warn


class GenericPenalty(KeepsGroups):
    """A linear model with any penalty on the weights; paths scale its sparsifying terms, or all if there are none."""

    penalty: Any
    _structure_name = "penalty"

    def _penalties(self, structure: Any, columns: Columns) -> list[Any]:
        terms = penalty_terms(structure, columns)
        self.groups_, self.graph_ = structure_of(terms)
        return terms

    def _structure(self, given: Any, carried: Any, columns: Columns) -> Any:
        columns.structure = carried  # for functions of the column names and the structure of X
        return given

    def _path_terms(self, problem: Problem) -> tuple[int, ...]:
        return sparsifying_terms(problem) or weight_terms(problem)

    def _keep_names(self, columns: Columns, problem: Problem) -> None:
        super()._keep_names(columns, problem)
        if self.groups_ is not None:
            warn_of_ungrouped(self.groups_, problem)

    def _keep_results(self, solutions: Sequence[Solution]) -> None:
        super()._keep_results(solutions)
        groups = self.groups_
        if groups is None:
            return
        self._group_numbers = np.arange(groups.n_groups)
        nonzero = np.count_nonzero(np.atleast_2d(self.coef_), axis=0) > 0
        counts = np.bincount(groups.owner, weights=nonzero[groups.indices], minlength=groups.n_groups)
        owners = [t.atom for t in solutions[0].problem.terms if getattr(t.atom, "groups", None) is groups]
        whole = any(atom.can("latent_groups") for atom in owners)
        sizes = np.diff(groups.indptr)
        self._groups_kept = (counts == sizes) & (sizes > 0) if whole else counts > 0


def warn_of_ungrouped(groups: Groups, problem: Problem) -> None:
    """Warn if features are in no group, and no other term on the weights sees them."""
    parts = problem.normal_form
    alone = ~groups.covered & (parts.coverage_diagonal == 0)
    if parts.separable is not None:
        alone &= ~(np.broadcast_to(parts.separable.weights, parts.shape) > 0).any(axis=1)
    count = int(np.count_nonzero(alone))
    if count:
        warn(
            f"{count} of {groups.n_features} features are in no group, and nothing penalises their weights. Add a term "
            "such as csr.L1() or csr.Ridge() to the penalty, or one group for each of them; "
            "warnings.simplefilter('ignore', csr.UngroupedWarning) leaves them free without this warning",
            UngroupedWarning,
            stacklevel=6,
        )
