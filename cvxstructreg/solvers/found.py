"""Points found by solvers, and their conversion between the coordinates of a solver and of the problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.chains.chain_dual import ChainDual
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.reductions.reduction import Point
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.solver import Solver


@dataclass(frozen=True, eq=False)
class Found:
    """An iterate, and the solver that found it. The iterate is in the coordinates of that solver."""

    iterate: Iterate
    solver: Solver

    @property
    def is_finite(self) -> bool:
        """Whether all weights and intercepts are finite numbers."""
        return bool(np.isfinite(self.iterate.theta).all() and np.isfinite(self.iterate.b).all())


def lifted(problem: Problem, found: Found) -> Point:
    """The point in the coordinates of the problem."""
    return found.solver.reduced(problem).lift(Point(found.iterate.theta, found.iterate.b, found.iterate.dual))


def dual_points(problem: Problem, found: Found) -> Mapping[int, Array]:
    """Its dual points in the coordinates of the problem, as a copy unless they are computed when first read."""
    dual = lifted(problem, found).dual
    return dual if isinstance(dual, ChainDual) else dict(dual)


def start_at(problem: Problem, solver: Solver, point: Point) -> Iterate:
    """Convert a point from the coordinates of the problem to a starting point of a solver."""
    lowered = solver.reduced(problem).lower(point)
    numbers = {piece.number for piece in problem.normal_form.pieces}
    return Iterate(lowered.theta, lowered.b, {number: u for number, u in lowered.dual.items() if number in numbers})


def handed_over(problem: Problem, found: Found, prover: Found, solver: Solver) -> Iterate:
    """Convert the weights found by one solver, and the dual point of the prover, to a starting point of another."""
    own = solver.reduced(problem).problem
    if all(each.solver.reduced(problem).problem is own for each in (found, prover)):
        return Iterate(found.iterate.theta, found.iterate.b, dict(prover.iterate.dual))
    point = lifted(problem, found)
    return start_at(problem, solver, Point(point.theta, point.b, lifted(problem, prover).dual))
