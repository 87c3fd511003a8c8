"""When ``solver="auto"`` switches to another solver, and to which one.

The decisions depend on iteration counts and certified gaps only, never on the clock, so that runs are reproducible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.general import interior_point, semismooth_newton
from cvxstructreg.solvers.iterate import SolverFailedError
from cvxstructreg.solvers.sizes import is_small
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: On larger problems, a stalled solver hands over if one of these accepts: they take few steps of known cost.
RESCUERS = (interior_point.SOLVER, semismooth_newton.SOLVER)
#: A solver stalls if its gap, extrapolated at the rate of the last doubling of iterations, would not reach the
#: tolerance within this many more doublings.
DOUBLINGS = 2
#: Iterations at most before a solver that took over from another can count as stalled.
PATIENCE_NEXT = 200
#: Exceptions that signal a numerical breakdown in a solver, besides those of CVXPY.
NUMERICAL = (np.linalg.LinAlgError, ArithmeticError, SolverFailedError)


@dataclass(frozen=True)
class End:
    """How a solver ended.

    One of "optimal", "time_limit", "max_iter", "max_passes", "interrupted", "inaccurate", "stalled" and "failed".
    """

    kind: str
    reason: str

    @property
    def status(self) -> str:
        """The status of the solution."""
        return "inaccurate" if self.kind in ("stalled", "failed") else self.kind


def has_rescuer(problem: Problem, solver: Solver) -> bool:
    """Whether a large problem that this solver does not solve has another solver with steps of known cost."""
    if problem.given.kernel is not None:  # see successors
        return False
    return any(other is not solver and other.accepts(problem) for other in RESCUERS)


def successors(problem: Problem, first: Solver) -> Iterator[Solver]:
    """The solvers that ``auto`` tries after the first, in order. Acceptance is checked lazily, one solver at a time.

    On small problems, the fast solvers are followed by the reference and then by the published baselines. On large
    problems, only fast solvers are tried, first those with steps of known cost.
    """
    others = [solver for solver in registry.solvers() if solver is not first]
    fast = [solver for solver in others if not solver.baseline and solver is not registry.REFERENCE]
    if is_small(problem):
        last = [registry.REFERENCE, *(solver for solver in others if solver.baseline)]
        later = [*fast, *(solver for solver in last if solver is not first)]
    else:  # factorising a large Gram matrix only to continue with another solver would be too expensive
        kernel = problem.given.kernel is not None
        fast.sort(key=lambda solver: solver not in RESCUERS)
        later = [solver for solver in fast if not kernel or solver.coordinates == AS_GIVEN]
    yield from (solver for solver in later if solver.accepts(problem))


class Stall:
    """Detects that the certified gaps of a solver no longer decrease fast enough to reach the tolerance.

    Examples
    --------
    >>> stall = Stall(tol=1e-6, patience=100)
    >>> [stall.seen(count, gap) for count, gap in ((50, 1e-1), (100, 1e-3), (200, 1e-5), (400, 9e-6))]
    [False, False, False, True]
    """

    def __init__(self, tol: float, patience: int) -> None:
        self.tol, self.patience = tol, patience
        self.marks: list[tuple[int, float]] = []  # (iteration, smallest gap so far)

    def seen(self, count: int, error: float) -> bool:
        """Record the certified gap after ``count`` iterations; return whether the solver has stalled."""
        error = math.inf if math.isnan(error) else error
        lowest = min(error, self.marks[-1][1]) if self.marks else error
        self.marks.append((count, lowest))
        earlier = [gap for at, gap in self.marks if 2 * at <= count]
        if count < self.patience or not earlier:
            return False
        if math.isinf(lowest):
            return True
        return lowest > self.tol * (earlier[-1] / lowest) ** DOUBLINGS

    def __str__(self) -> str:
        count, gap = self.marks[-1] if self.marks else (0, math.inf)
        return f"stalled at a relative gap of {gap:.1e} after {count} iterations"


def is_numerical(error: BaseException) -> bool:
    """Whether an exception signals a numerical breakdown of the solver rather than invalid input."""
    # SciPy raises a ValueError for NaN and infinite entries
    infinite = isinstance(error, ValueError) and "infs or NaNs" in str(error)
    return infinite or isinstance(error, (*NUMERICAL, cp.SolverError))
