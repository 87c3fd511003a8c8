"""Collect all blocks in memory if they fit, then solve as usual: one pass over the data.

The driver calls :func:`collected` and solves that problem in place of the given one. :func:`run` does the same as an
ordinary solver, for callers that need one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cvxstructreg.core.model import Linear
from cvxstructreg.core.objective import Objective
from cvxstructreg.core.problem import Problem
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers.iterate import InaccurateWarning, Iterate
from cvxstructreg.solvers.needs import Need, RowBlockModel
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: Tolerances of the fit in memory, as parts of the tolerance asked for.
INNER = (0.5, 1e-2, 1e-4)
#: Facts about the columns that models keep (see ``NormalForm``); the certificate need not compute them again.
SHARED = ("_column_norms", "_column_means")


@dataclass(frozen=True)
class FitsInMemory(Need):
    """All blocks, with the copies that solvers make, fit into the memory limit of the blocks."""

    def __str__(self) -> str:
        return "data that fit into the memory limit"

    def missing(self, problem: Problem) -> str | None:
        """Refuse data that are too large, or on other machines."""
        blocks = problem.given.row_blocks
        if blocks.engine.remote:
            return "the data are on other machines"
        if blocks.fits():
            return None
        size, limit = blocks.bytes_of() / 1e9, blocks.memory_limit / 1e9
        return f"the data take {size:.2g} GB, too much for the memory limit of {limit:.2g} GB"


def collected(problem: Problem) -> Problem:
    """The same problem with all data in memory; the blocks keep them while they are held."""
    design = problem.model.row_blocks.gather(keep=False)
    return Problem(Linear(design, problem.model.intercept), Objective(problem.terms))


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Solve the problem with all data in memory, with smaller and smaller tolerances."""
    inner = collected(problem)
    point: object = (start.theta, start.b)
    for part in INNER:
        with muted(InaccurateWarning):
            found = inner.solve(tol=part * tol, warm_start=point)
        point = found
        for name in SHARED:
            if name in inner.model.__dict__:
                problem.model.__dict__.setdefault(name, inner.model.__dict__[name])
        yield Iterate(*inner.shaped(found.coef, found.intercept), dict(found.dual), promising=True)


SOLVER = Solver("in_memory", run, (RowBlockModel(), FitsInMemory()), coordinates=AS_GIVEN, by_passes=True)
