"""What the generic classifier and regressor share: the penalty, and which of its terms a path scales."""

from __future__ import annotations

from typing import Any

from cvxstructreg.core.problem import Problem
from cvxstructreg.estimators.alignment import Columns
from cvxstructreg.estimators.linear import LinearEstimator
from cvxstructreg.estimators.structured.penalty import penalty_terms
from cvxstructreg.paths.strength import sparsifying_terms, weight_terms


class GenericPenalty(LinearEstimator):
    """A linear model with any penalty on the weights; paths scale its sparsifying terms, or all if there are none."""

    penalty: Any
    _structure_name = "penalty"

    def _penalties(self, structure: Any, columns: Columns) -> list[Any]:
        return penalty_terms(structure, columns)

    def _structure(self, given: Any, carried: Any, columns: Columns) -> Any:
        columns.structure = carried  # for functions of the column names and the structure of X
        return given

    def _path_terms(self, problem: Problem) -> tuple[int, ...]:
        return sparsifying_terms(problem) or weight_terms(problem)
