"""When ``solver="auto"`` gives a problem to another solver, and to which one.

All is decided by counts of iterations and certified gaps, never by the clock, so that runs can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import cvxpy as cp
import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.iterate import SolverFailedError
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: A problem is small up to this many entries (rows x weights x outputs): the reference solves it in seconds.
SMALL = 50_000
#: A solver stalls if its gap, falling as in the last doubling of its iterations, would not reach the tolerance within
#: so many more doublings. It is judged from so many iterations on, and sooner if it took over from another solver.
DOUBLINGS, PATIENCE, PATIENCE_NEXT = 2, 1000, 200
#: What a solver may raise where numbers run out of digits or of range.
NUMERICAL = (np.linalg.LinAlgError, ArithmeticError, SolverFailedError, cp.SolverError)


def is_small(problem: Problem) -> bool:
    """Whether the reference is fast enough to end what other solvers could not."""
    model = problem.model
    return model.n_rows * model.n_weights * problem.n_outputs <= SMALL


def successors(problem: Problem, first: Solver) -> Iterator[Solver]:
    """The solvers that ``auto`` asks after the first, one after the other; each is asked whether it accepts only then.

    The reference comes after the fast solvers and before the baselines of papers; large problems have neither.
    """
    others = [solver for solver in registry.solvers() if solver is not first]
    fast = [solver for solver in others if not solver.baseline and solver is not registry.REFERENCE]
    if is_small(problem):
        last = [registry.REFERENCE, *(solver for solver in others if solver.baseline)]
        later = [*fast, *(solver for solver in last if solver is not first)]
    else:  # a large Gram matrix is not factorised for a solver that only takes over
        kernel = problem.given.kernel is not None
        later = [solver for solver in fast if not kernel or solver.coordinates == AS_GIVEN]
    return (solver for solver in later if solver.accepts(problem))


class Stall:
    """Whether the certified gaps of one solver no longer fall fast enough to reach the tolerance.

    Examples
    --------
    >>> stall = Stall(tol=1e-6, patience=100)
    >>> [stall.seen(count, gap) for count, gap in ((50, 1e-1), (100, 1e-3), (200, 1e-5), (400, 9e-6))]
    [False, False, False, True]
    """

    def __init__(self, tol: float, patience: int) -> None:
        self.tol, self.patience = tol, patience
        self.marks: list[tuple[int, float]] = []  # iterations and the smallest gap up to there

    def seen(self, count: int, error: float) -> bool:
        """Take a certified gap after so many iterations of the solver; whether it stalls."""
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
    """Whether an exception means that a solver's numbers failed, and not that its input is wrong."""
    # SciPy refuses NaN and infinite entries by a ValueError
    return isinstance(error, NUMERICAL) or (isinstance(error, ValueError) and "infs or NaNs" in str(error))
