"""Points that solvers found, in the coordinates of each solver and of the problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from cvxstructreg.core.model import Kernel
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.reductions.centring import centring
from cvxstructreg.solvers.iterate import Iterate


@dataclass(frozen=True, eq=False)
class Found:
    """An iterate and the solver whose coordinates it is in."""

    iterate: Iterate
    module: ModuleType

    @property
    def is_finite(self) -> bool:
        """Whether the point consists of numbers."""
        return bool(np.isfinite(self.iterate.theta).all() and np.isfinite(self.iterate.b).all())


def as_taken(problem: Problem, module: ModuleType) -> Problem:
    """The problem as the solver takes it: with a Linear model, unless it works on kernels as they are; centred."""
    if isinstance(problem.model, Kernel):
        return problem if getattr(module, "ON_KERNELS", False) else problem.linear()
    centred = centring(problem)
    return problem if centred is None else centred.problem


def is_factored(problem: Problem, module: ModuleType) -> bool:
    """Whether the solver's weights are coordinates in a factor of gram."""
    return problem.has_factor_coordinates and as_taken(problem, module) is not problem


def lifted(problem: Problem, found: Found) -> tuple[Array, Array]:
    """The weights and intercepts in the coordinates of the problem."""
    theta, b = found.iterate.theta, found.iterate.b
    if isinstance(problem.model, Kernel) and is_factored(problem, found.module):
        return problem.model.lift(theta), b
    centred = centring(problem)
    return (theta, b) if centred is None else centred.lift(theta, b)


def start_at(problem: Problem, module: ModuleType, theta: Array, b: Array, dual: Mapping[int, Array]) -> Iterate:
    """A point in the coordinates of the problem as the start of a solver."""
    if isinstance(problem.model, Kernel) and is_factored(problem, module):
        theta = problem.model.lower(theta)
    centred = centring(problem)
    if centred is not None:
        theta, b = centred.lower(theta, b)
    numbers = {piece.number for piece in problem.normal_form.pieces}
    return Iterate(theta, b, {number: u for number, u in dual.items() if number in numbers})


def handed_over(problem: Problem, found: Found, dual: Mapping[int, Array], module: ModuleType) -> Iterate:
    """The point of one solver as the start of another."""
    if as_taken(problem, found.module) is as_taken(problem, module):
        return Iterate(found.iterate.theta, found.iterate.b, dict(dual))
    return start_at(problem, module, *lifted(problem, found), dual)
