"""Kernel models as linear models.

    lam theta'gram theta + loss(gram theta + 1b')  =  lam ||v||^2 + loss(G v + 1b')     with  gram = G G',  v = G'theta

if the norm is the only term on the weights. Otherwise gram itself is the design matrix, the weights do not change, and
the norm is a quadratic term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from cvxstructreg.core.model import Kernel, Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.forms.quadratic_penalty import MatrixPenalty
from cvxstructreg.reductions.reduction import Point, Reduction

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem


@dataclass(frozen=True, eq=False)
class KernelToLinear(Reduction):
    """A kernel problem as a linear model on a factor of gram, or on gram itself (``factored`` is None)."""

    problem: Problem
    factored: Kernel | None

    @classmethod
    def make(cls, problem: Problem) -> Self | None:
        """None for Linear models."""
        if problem.given.kernel is None:
            return None
        kernel = problem.model.kernel
        assert kernel is not None
        if problem.normal_form.function_norm is not None:
            factor = kernel.factor()
            # a term of strength zero may have the old number of weights, so it is replaced
            none = Term(MatrixPenalty(np.eye(factor.shape[1])), 0.0, "weights")
            terms = [none if term.target == "weights" and term.scale == 0 else term for term in problem.terms]
            return cls(_with_linear_model(problem, factor, terms), kernel)
        norm = MatrixPenalty(kernel.design)
        terms = [Term(norm, term.scale, "weights") if term.target == "function" else term for term in problem.terms]
        return cls(_with_linear_model(problem, kernel.design, terms), None)

    def lift(self, point: Point) -> Point:
        """Theta with gram theta = G v."""
        if self.factored is None:
            return point
        return Point(self.factored.lift(point.theta), point.b, point.dual)

    def lower(self, point: Point) -> Point:
        """V = G'theta."""
        if self.factored is None:
            return point
        return Point(self.factored.lower(point.theta), point.b, point.dual)


def _with_linear_model(problem: Problem, design: np.ndarray, terms: list[Term]) -> Problem:
    return type(problem)(Linear(design, problem.given.intercept), Objective(tuple(terms)))


def as_linear(problem: Problem) -> Problem:
    """The problem itself if its model is Linear, else the equivalent one with a Linear model."""
    reduction = KernelToLinear.apply(problem)
    return problem if reduction is None else reduction.problem
