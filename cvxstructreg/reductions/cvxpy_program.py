"""The CVXPY form of a problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Term
from cvxstructreg.forms import joint_quadratic
from cvxstructreg.reductions import sum_to_zero_program
from cvxstructreg.runtime.lazy_cvxpy import cp

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem


@dataclass(frozen=True, eq=False)
class CvxpyProgram:
    """A CVXPY problem, its weights and intercept, and by term the constraint whose multiplier is the dual point."""

    program: cp.Problem
    theta: cp.Expression
    b: cp.Variable | None
    links: dict[int, Any]


def cvxpy_program(problem: Problem, copies: bool = False) -> CvxpyProgram:
    """The CVXPY form of a problem; ``copies`` gives every piece its own variable ``Z == K x``.

    Hinges of centred scores always have such a variable.
    """
    rows = sum_to_zero_program.row_coordinates(problem)
    if rows is not None:
        program, v, b, links = sum_to_zero_program.program(problem, rows)
        return CvxpyProgram(program, rows.T @ v, b, links)
    return _Builder(problem, copies).built()


def weights_of(problem: Problem, program: cp.Problem) -> tuple[Any, Any]:
    """Weights (d, k) and intercepts (k,) of a solved CVXPY problem; (None, None) if it is not solved."""
    values = {variable.name(): variable.value for variable in program.variables()}
    rows = sum_to_zero_program.row_coordinates(problem)
    found = values.get("theta" if rows is None else "v")
    if found is None:
        return None, None
    b = np.ravel(values["b"]) if problem.given.intercept else np.zeros(problem.n_outputs)
    return (found if rows is None else rows.T @ found), b


class _Builder:
    """Builds the terms of a problem as CVXPY expressions of its weights and intercepts."""

    def __init__(self, problem: Problem, copies: bool) -> None:
        self.problem, self.model, k = problem, problem.model, problem.n_outputs
        self.theta = cp.Variable((self.model.n_weights, k), name="theta")
        self.b = cp.Variable((1, k), name="b") if self.model.intercept else None
        self.zero_sums = sum_to_zero_program.sums_to_zero(problem)
        pieces = problem.normal_form.pieces if copies or self.zero_sums else ()
        self.copied = {piece.number: piece for piece in pieces}
        self.links: dict[int, Any] = {}

    def built(self) -> CvxpyProgram:
        """The CVXPY problem."""
        joint = joint_quadratic.numbers(self.problem)
        expressions = joint_quadratic.joint_form(self.problem, self.theta, self.b)
        # the parts of a sum have their own dual points
        terms = self.problem.normal_form.simple_terms if self.copied else enumerate(self.problem.terms)
        for number, term in terms:
            if number in self.copied:
                expressions += self._of_copy(number, term)
            elif number not in joint and (term.scale > 0 or term.is_constraint):
                expressions.append(self._of_term(term))
        constraints = list(self.links.values())
        if self.zero_sums:
            constraints += sum_to_zero_program.zero_sums(self.theta, self.b)
        program = cp.Problem(cp.Minimize(cp.sum(expressions)), constraints)
        return CvxpyProgram(program, self.theta, self.b, self.links)

    def _of_copy(self, number: int, term: Term) -> list[cp.Expression]:
        """The term as a function of a new variable, linked by a constraint; empty if its argument is empty."""
        piece = self.copied[number]
        z = self._argument(term, piece.K)
        if not z.size:
            return []
        copy = cp.Variable(z.shape)
        self.links[number] = z == copy
        if self.zero_sums:
            return [term.scale * piece.atom.centred_hinges(self.problem.n_outputs).expr_of_zero_sums(copy)]
        return [term.scale * piece.atom.expr(copy)]

    def _of_term(self, term: Term) -> cp.Expression:
        picked = term.atom.rows if isinstance(term.atom, Loss) else None
        K = None if picked is None else sp.eye_array(self.model.n_rows, format="csr")[picked]
        expression = term.atom.expr(self._argument(term, K))
        return expression if term.is_constraint else term.scale * expression

    def _argument(self, term: Term, K: Any) -> cp.Expression:
        """K times the argument of the term, as one matrix times theta, so that rows outside K are not compiled."""
        if term.target not in ("rows", "scores", "values"):
            return self.theta if K is None else K @ self.theta
        values = (self.model.design if K is None else K @ self.model.design) @ self.theta
        if self.b is None or term.target == "values":
            return values
        ones = np.ones((self.model.n_rows, 1))
        return values + (ones if K is None else K @ ones) @ self.b
