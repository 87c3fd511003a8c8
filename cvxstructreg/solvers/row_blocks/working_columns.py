"""Working sets of columns: the problem over a few columns is solved in memory, and a pass tells which ones are missing.

    1. Read the columns in the working set (one pass), and solve the problem over them with any other solver.
    2. Compute X'u for its dual point u (one pass). The weights outside the set whose entries no penalty can absorb
       should not be zero: the largest ones join the set.

If no column is missing, the solution over the set is optimal for the whole problem. A preliminary fit on a sample of
the rows gives the first set. Columns that do not fit into memory are left where they are: then every step is a pass
(:mod:`~cvxstructreg.solvers.row_blocks.gram_columns`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cvxstructreg.certificates.row_sums.kept_dual import kept_rows
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks.block import MemoryLimitWarning
from cvxstructreg.row_blocks.restriction import restricted
from cvxstructreg.runtime.quiet import muted, warn
from cvxstructreg.solvers.iterate import InaccurateWarning, Iterate
from cvxstructreg.solvers.needs import RowBlockModel
from cvxstructreg.solvers.row_blocks import gram_columns, kept_fista
from cvxstructreg.solvers.row_blocks.column_search import Search, Sparsifies
from cvxstructreg.solvers.row_blocks.judging import balanced, judge
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: Rows of the preliminary fit.
SAMPLE = 20_000
#: The first tolerance over a set; each round divides it by ten, down to a part of the tolerance asked for.
FIRST_TOL, OF_TOL = 1e-3, 0.2
#: The smallest tolerance over a set, when the certificate of the whole problem asks for more.
LEAST_TOL = 1e-13


def run(problem: Problem, start: Iterate, tol: float, sample: int = SAMPLE) -> Iterator[Iterate]:
    """``sample`` is the number of rows of a preliminary fit that gives the first working set; 0 for none."""
    search = Search(problem, tol)
    chosen, point = search.first_set(start, sample)
    if kept_rows(search.parts) is not None:  # columns would have all rows; row_multipliers is for losses with kinks
        if gram_columns.SOLVER.accepts(problem):
            yield from gram_columns.steps(search, chosen, *point)
            return
        if kept_fista.SOLVER.accepts(problem):
            yield from kept_fista.run(problem, Iterate(*point), tol)
            return
    inner = max(FIRST_TOL, OF_TOL * tol)
    expected = _expected(search, start, chosen)
    if expected is not None:  # the previous solution of a path: the pass that certified it tells the next columns
        chosen, inner = search.next_set(chosen, expected, start.theta), OF_TOL * tol
    warned = False
    while True:
        if not search.design.fits(chosen):
            if not warned:
                _warn_of_memory(search, chosen)
            warned = True
            if gram_columns.SOLVER.accepts(problem) and chosen.size <= gram_columns.MOST:
                yield from gram_columns.steps(search, chosen, *point)
                return
        theta, b, dual = _solve(search, chosen, point, inner)
        point = theta, b
        excess, dual = judge(search, theta, b, dual, chosen)
        new = search.missing(excess, theta, chosen)
        fine = inner <= OF_TOL * tol
        yield Iterate(theta, b, dual, promising=bool(fine and not new.size))
        if not new.size and inner <= LEAST_TOL:
            yield Iterate(theta, b, dual, exhausted=True)
            return
        if not fine:  # without new columns, only the accuracy is missing
            inner = max(0.1 * inner, OF_TOL * tol) if new.size else OF_TOL * tol
        elif not new.size:  # the certificate of the whole problem was not satisfied
            inner = max(0.1 * inner, LEAST_TOL)
        chosen = search.next_set(chosen, new, theta)


def _solve(
    search: Search, chosen: Any, point: tuple[Array, Array], tol: float
) -> tuple[Array, Array, dict[int, Array]]:
    """The solution over the chosen columns: in memory, or by passes if they do not fit."""
    if not chosen.size:  # a problem needs at least one weight
        chosen = np.zeros(1, dtype=np.int64)
    design = search.design
    columns = design.read_columns(chosen, search.reserve(chosen)) if design.fits(chosen) else design.select(chosen)
    small = restricted(search.problem, chosen, columns)
    with muted(InaccurateWarning):
        found = small.problem.solve(tol=tol, warm_start=(point[0][chosen], point[1]))
    theta, b = small.lift(found.coef, found.intercept)
    return theta, b, small.lift_dual(found.dual)


def _warn_of_memory(search: Search, chosen: Any) -> None:
    design = search.design
    warn(
        f"{len(chosen):,} columns in use take {design.bytes_of(chosen) / 1e9:.2g} GB, too much for the memory limit of "
        f"{design.memory_limit / 1e9:.2g} GB with the copies that solvers make; every step now needs passes over the "
        "data. Raise memory_limit of RowBlocks, or the strength of the penalty",
        MemoryLimitWarning,
        stacklevel=8,
    )


def _expected(search: Search, start: Iterate, chosen: Any) -> Any:
    """The columns that a start with known products suggests, without a pass; None if its products are not known."""
    if not start.theta.any() or not start.dual or not search.design.fits(chosen):
        return None
    if not np.isin(np.flatnonzero(start.theta.any(axis=1)), search.design.kept_columns).all():
        return None  # its scores would need a pass
    _, total, _ = balanced(search, start.theta, start.b, start.dual)
    pull = search.design.known_pull(total)
    if pull is None:
        return None
    excess, _ = search.excess(
        -pull - search.parts.quadratic_grad(start.theta), start.dual, np.flatnonzero(start.theta.any(axis=1))
    )
    return search.missing(excess, start.theta, chosen)


SOLVER = Solver("working_columns", run, (RowBlockModel(), Sparsifies()), coordinates=AS_GIVEN, by_passes=True)
