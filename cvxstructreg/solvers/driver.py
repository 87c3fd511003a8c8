"""The entry point to all solvers: check limits and options, set the starting point, warn if the solve fell short."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Record, Solution
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.reductions.reduction import Point
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.quiet import warn
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.checkpoint import Checkpoint
from cvxstructreg.solvers.found import start_at
from cvxstructreg.solvers.graph_strength import warn_of_strong_graphs
from cvxstructreg.solvers.iterate import InaccurateWarning, Iterate
from cvxstructreg.solvers.passes import Passes
from cvxstructreg.solvers.polish import polished
from cvxstructreg.solvers.row_blocks import in_memory
from cvxstructreg.solvers.run import Run
from cvxstructreg.solvers.solver import Solver

#: What gives a problem without minimiser one.
ADD_PENALTY = "Add bounds, or a penalty such as 0.01 * Ridge()"


class NoMinimiserWarning(InaccurateWarning):
    """The objective has an infimum but no minimiser; the message names a direction of endless decrease."""


def solve(
    problem: Problem,
    solver: str = "auto",
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    warm_start: Any = None,
    verbose: bool = False,
    callback: Callable[[Record], Any] | None = None,
    max_passes: int | None = None,
    checkpoint: Any = None,
    polish: bool = False,
    **options: Any,
) -> Solution:
    """Solve a problem; see :meth:`cvxstructreg.Problem.solve`.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0]], intercept=False), csr.Squared([2.0, 3.0]) + 3.0 * csr.L1())
    >>> csr.solvers.solve(problem, "fista").status
    'optimal'
    """
    _check_limits(tol, max_iter, time_limit)
    passes = Passes(problem, max_passes, verbose)
    saved = None if checkpoint is None else Checkpoint(checkpoint, problem)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a Record, got {type(callback).__name__}")
    choice = registry.choice(problem, solver)
    chosen = choice.solver
    _check_options(chosen, options)
    if polish and chosen is not registry.REFERENCE:
        raise ValueError(f"polish=True is for solver='cvxpy'; {chosen.name!r} returns exact zeros without it")
    if chosen is in_memory.SOLVER and saved is None:
        return _in_memory(problem, passes, tol, max_iter, time_limit, warm_start, verbose, callback)
    warn_of_strong_graphs(problem)
    with deadline.within(math.inf if time_limit is None else float(time_limit)):
        run = Run(problem, choice, solver == "auto", tol, max_iter, verbose, callback, passes, saved)
        if warm_start is None and saved is not None:
            warm_start = saved.load()
        solution = run.solve(_start(problem, chosen, warm_start), options)
        if polish:
            solution = polished(solution, tol, options.get("cvxpy_solver", "CLARABEL"))
    if solution.status == "no_minimiser":
        warn(f"the problem has {no_minimiser_in_words(solution)}. {ADD_PENALTY}", NoMinimiserWarning, stacklevel=3)
    elif solution.status not in ("optimal", "stationary"):
        warn(
            f"{solution.solver} ended with status {solution.status!r} after {solution.n_iter} iterations: "
            f"{solution.certificate}, tolerance {tol:g}{_reasons(solution)}",
            InaccurateWarning,
            stacklevel=3,
        )
    return solution


def _in_memory(problem: Problem, passes: Passes, *how: Any) -> Solution:
    """The solution of the same problem with all blocks in memory: one pass, and nothing is certified twice."""
    tol, max_iter, time_limit, warm_start, verbose, callback = how
    limit = math.inf if time_limit is None else float(time_limit)
    with deadline.within(limit), problem.model.row_blocks.held():
        found = solve(in_memory.collected(problem), "auto", tol, max_iter, None, warm_start, verbose, callback)
    certificate = replace(found.certificate, data=problem.model.data_record)
    return replace(found, problem=problem, certificate=certificate, n_passes=passes.count)


def no_minimiser_in_words(solution: Solution) -> str:
    """What a solution without minimiser is: along which direction what decreases, in the words of the loss."""
    losses = [term.atom for term in solution.problem.terms if isinstance(term.atom, Loss)]
    along = f"the direction of {solution.reason}"
    if all(hasattr(loss, "classes") for loss in losses):
        what = f"{along} separates the classes"
    elif all(loss.couples_rows for loss in losses):
        what = f"{along} ranks every event first among the rows at risk"
    else:
        what = f"the loss falls forever along {along}"
    return (
        f"no minimiser: {what}, and no penalty grows along it. The weights diverge; those returned are one point on "
        f"the way ({solution.certificate})"
    )


def _reasons(solution: Solution) -> str:
    """Why no solver reached the tolerance."""
    reasons = [record.switch for record in solution.switches] + [solution.reason]
    return f" ({'; '.join(reason for reason in reasons if reason)})"


def _start(problem: Problem, solver: Solver, warm_start: Any) -> Iterate:
    """The null point, or the warm start if that is better.

    Solutions of the same model are taken as they are: strengths change little along a path, and a comparison costs a
    product with the data. So are starts for data in blocks of rows.
    """
    if warm_start is None:
        return _null_start(problem, solver)
    dual: Mapping[int, Array] = {}
    if isinstance(warm_start, Solution):
        coef, intercept, dual = warm_start.coef, warm_start.intercept, warm_start.dual
    elif isinstance(warm_start, tuple) and len(warm_start) == 2:
        coef, intercept = warm_start
    else:
        raise TypeError(f"warm_start must be a Solution or (coef, intercept), got {type(warm_start).__name__}")
    start = start_at(problem, solver, Point(*problem.shaped(coef, intercept), dual))
    if (
        _is_of_same_model(warm_start, problem)
        or problem.model.row_blocks is not None
        or not _is_worse_than_null(problem, solver, start)
    ):
        return start
    return _null_start(problem, solver)


def _is_of_same_model(warm_start: Any, problem: Problem) -> bool:
    """Whether the start is a solution of this model, or one without problem, of a plain problem solved again."""
    if not isinstance(warm_start, Solution):
        return False
    known: Problem | None = warm_start.problem
    return known is None or known.given is problem.given


def _null_start(problem: Problem, solver: Solver) -> Iterate:
    null = null_point(solver.reduced(problem).problem)
    return Iterate(null.theta if solver.ignores_start else null.theta.copy(), null.b.copy())


def _is_worse_than_null(problem: Problem, solver: Solver, start: Iterate) -> bool:
    """Whether the objective at the start is finite and above that of the null point; bounds make it infinite."""
    own = solver.reduced(problem).problem
    with np.errstate(all="ignore"):
        value = own.value_at(start.theta, start.b)
    return bool(null_point(own).objective < value < math.inf)


def _check_limits(tol: float, max_iter: int | None, time_limit: float | None) -> None:
    if not (isinstance(tol, Real) and 0 < tol < math.inf):
        raise ValueError(f"tol must be positive, got {tol!r}")
    if max_iter is not None and not (isinstance(max_iter, Integral) and max_iter >= 1):
        raise ValueError(f"max_iter must be a positive integer, got {max_iter!r}")
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise ValueError(f"time_limit must be positive, got {time_limit!r}")


def _check_options(solver: Solver, options: dict[str, Any]) -> None:
    if not options:
        return
    known = list(inspect.signature(solver.run).parameters)[3:]
    unknown = sorted(set(options) - set(known))
    if unknown:
        general = [name for name in inspect.signature(solve).parameters if name not in ("problem", "options")]
        names = [*known, *general]
        longer = [name for name in names if unknown[0].startswith(name) or name.startswith(unknown[0])]
        close = longer or difflib.get_close_matches(unknown[0], names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise TypeError(
            f"solver {solver.name!r} has no option {unknown[0]!r}{hint or ';'} it has {', '.join(known) or 'none'}"
        )
