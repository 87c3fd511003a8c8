"""From the sorted parts of a plain problem to a problem of this library."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.cvx.bounds import Bounds
from cvxstructreg.cvx.left_over import LeftOver
from cvxstructreg.cvx.losses import fitted, merged, rows_of
from cvxstructreg.cvx.matrix_form import NotOneMatrixError, matrix_form
from cvxstructreg.cvx.penalties import penalty_terms
from cvxstructreg.cvx.plain_problem import PlainProblem
from cvxstructreg.cvx.reading.layout import Layout
from cvxstructreg.cvx.reading.maps import Picks, matrix
from cvxstructreg.cvx.reading.pieces import Piece, Pieces
from cvxstructreg.cvx.reading.refusal import UnrecognisedError, shown
from cvxstructreg.penalties import Box
from cvxstructreg.runtime.lazy_cvxpy import cp


class Parts:
    """All parts of a problem, on the way to the problem."""

    def __init__(
        self,
        prob: cp.Problem,
        sign: float,
        layout: Layout,
        bounds: Bounds,
        pieces: Pieces,
        losses: list[Piece],
        left: LeftOver,
    ) -> None:
        self.prob, self.sign, self.layout, self.bounds, self.pieces = prob, sign, layout, bounds, pieces
        self.losses, self.left = losses, left
        self.penalties = [piece for piece in pieces.known if piece not in losses]

    def problem(self) -> PlainProblem:
        """The problem in one matrix of weights if it has that form, else in one vector of weights."""
        needed = [p for p in self.losses if p.kind == "log_sum_exp" or (p.kind == "atom" and p.data.n_outputs > 1)]
        if needed or any(variable.ndim == 2 and variable.shape[1] > 1 for variable in self.layout.variables):
            try:
                return self._in_one_matrix()
            except NotOneMatrixError as reason:
                if needed:
                    raise UnrecognisedError(f"{shown(needed[0].source)} has no known form: {reason}") from reason
        return self._in_one_vector()

    def _in_one_matrix(self) -> PlainProblem:
        form = matrix_form(self.losses, self.penalties, self.layout, self.bounds, self.left)
        first, size = self.layout.first[form.W.id], form.W.size
        places, raised = np.arange(first, first + size), 0.0
        terms = form.terms
        if not self.left.is_empty:
            terms, raised = self._with_left_term(terms, places, form.shape)
        intercepts = np.delete(np.arange(self.layout.size), places)
        return self._made(form.design, terms, places, intercepts, 1.0, raised)

    def _in_one_vector(self) -> PlainProblem:
        groups = merged([rows for piece in self.losses for rows in rows_of(piece, self.layout)])
        if not groups:
            raise UnrecognisedError("all weights of the loss are zero")
        model = fitted(groups, self.layout, ~self._touched())
        columns = np.arange(self.layout.size)
        if model.at is not None:
            columns = np.delete(columns, model.at)
        terms: list[Term] = [*model.terms, *penalty_terms(self.penalties, self.layout, columns)]
        lower, upper = self.bounds.lower[columns], self.bounds.upper[columns]
        if np.any(np.isfinite(lower) | np.isfinite(upper)):
            terms.append(1.0 * Box(lower, upper))
        raised = 0.0
        if not self.left.is_empty:
            terms, raised = self._with_left_term(terms, columns)
        at = np.zeros(0, dtype=int) if model.at is None else np.array([model.at])
        return self._made(model.design, terms, columns, at, model.unit, raised)

    def _made(
        self, design: Any, terms: list[Term], places: Any, intercepts: Any, unit: float, raised: float
    ) -> PlainProblem:
        try:
            made = PlainProblem(Linear(design, intercept=bool(intercepts.size)), Objective(tuple(terms)))
        except (ValueError, ArithmeticError, cp.SolverError, cp.DCPError) as error:
            raise UnrecognisedError(f"{error}") from error
        made.cvxpy_problem, made.sign, made.constant = self.prob, self.sign, self.pieces.constant - raised
        made.bounds, made.layout, made.unit = self.bounds, self.layout, unit
        made.weights_places, made.intercept_places = places, intercepts
        return made

    def _with_left_term(
        self, terms: list[Term], columns: Any, shape: tuple[int, int] | None = None
    ) -> tuple[list[Term], float]:
        """The terms with what is left; the penalties that are not quadratic may become part of it."""
        joins = self.left.joins(columns.size)
        smooth = [t for t in terms if not joins or isinstance(t.atom, Loss) or t.can("quadratic")]
        others = [term for term in terms if term not in smooth]
        try:
            term, raised = self.left.term(self.layout, columns, shape, others)
        except (ValueError, TypeError, ArithmeticError, cp.SolverError) as error:
            raise UnrecognisedError(f"{self.left.first} has no known form: {error}") from error
        return [*smooth, term], raised

    def _touched(self) -> Any:
        """Entries with a penalty or a bound, or in a term that is left."""
        found = self.bounds.given | self.left.touched(self.layout)
        for piece in self.penalties:
            for variable in self.layout.variables:
                part = piece.affine.parts.get(variable.id)
                if part is not None and np.any(piece.weights):
                    found[self.layout.first[variable.id] + _used(part)] = True
        return found


def _used(part: Any) -> Any:
    """The entries of a variable that a map uses."""
    if isinstance(part, Picks):
        return part.at
    return np.unique(matrix(part).nonzero()[1])
