"""Cross-validation of the generic estimators: the strengths multiply the penalty, ratios its terms after the first."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

from cvxstructreg.core.objective import Objective
from cvxstructreg.core.problem import Problem
from cvxstructreg.estimators.alignment import Columns
from cvxstructreg.estimators.cross_validation import CrossValidated
from cvxstructreg.estimators.linear import Matrix
from cvxstructreg.estimators.structured.base import GenericPenalty
from cvxstructreg.paths.strength import sparsifying_terms, with_strength

#: The weakest strength of a path relative to the strongest, with and without terms that make weights zero.
SMALLEST, SMALLEST_SMOOTH = 0.01, 1e-4


class GenericTuning(CrossValidated, GenericPenalty):
    """Choose a factor of the penalty, and with ``ratios`` a factor of its terms after the first."""

    _tuned: ClassVar[tuple[str, ...]] = ("penalty",)
    _rest = 1.0

    def _penalties(self, structure: Any, columns: Columns) -> list[Any]:
        first, *others = super()._penalties(structure, columns)
        if self.ratios is not None and all(term.is_constraint for term in others):
            raise ValueError(
                f"ratios multiply the terms of the penalty after the first, but {first!r} is the only one that can be "
                "multiplied; leave out ratios, or write the penalty as a sum, such as csr.L1() + csr.Ridge()"
            )
        return [first, *(replace(term, scale=self._rest * term.scale) for term in others)]

    def _require_tuned(self) -> None:
        """The problem itself says which terms can be scaled."""

    def _with_ratio(self, ratio: float) -> Self:
        model = copy(self)
        model._rest = ratio
        return model

    def _checked_strengths(self, problems: Sequence[Problem]) -> Matrix:
        self._unit = problems[0]
        if self.smallest is not None:
            return super()._checked_strengths(problems)
        model = copy(self)
        model.smallest = SMALLEST if sparsifying_terms(self._unit) else SMALLEST_SMOOTH
        return model._checked_strengths(problems)

    def _params_at(self, strength: float) -> dict[str, Any]:
        unit = self.__dict__.pop("_unit")
        scaled = with_strength(unit, strength, self._path_terms(unit))
        return {"penalty": Objective(scaled.terms[1:])}
