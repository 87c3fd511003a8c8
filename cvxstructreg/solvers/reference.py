"""The reference: CVXPY. It accepts every problem and is slow; it is the oracle of all others."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.certificates.null_point import PERFECT, null_point
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.reductions.cvxpy_program import cvxpy_program
from cvxstructreg.reductions.kernel_to_linear import KernelToLinear
from cvxstructreg.reductions.reduction import Point, Reduction, reduced
from cvxstructreg.reductions.sum_to_zero_program import row_coordinates
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.quiet import QuietProblem
from cvxstructreg.solvers.iterate import Iterate, SolverFailedError
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

NAME = "cvxpy"

#: Factors of the accuracies: looser ones are tried when the solver fails, tighter ones when the certificate asks.
LOOSER = (10.0, 100.0)
TIGHTER = (1e-2, 1e-3)
#: Objectives are near 1 within this factor.
NEAR_ONE = 2.0**12

#: Accuracies asked for at first, in the names of each solver.
ACCURACIES: dict[str, tuple[str, ...]] = {
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "ECOS": ("abstol", "reltol", "feastol"),
    "SCS": ("eps_abs", "eps_rel"),
    "OSQP": ("eps_abs", "eps_rel"),
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "CLARABEL": {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9},
    "ECOS": {"abstol": 1e-9, "reltol": 1e-9, "feastol": 1e-9},
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 100_000},
    "OSQP": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 200_000, "polishing": True},
}
#: The option of each solver that limits its seconds. ECOS has none: its at most 100 iterations go on to the end.
TIME_LIMITS = {"CLARABEL": "time_limit", "SCS": "time_limit_secs", "OSQP": "time_limit"}


@cache
def installed() -> frozenset[str]:
    """The solvers that CVXPY has, asked once: it tries to import each one, and a fork during an import is fatal."""
    return frozenset(cp.installed_solvers())


def run(
    problem: Problem,
    start: Iterate,
    tol: float,
    cvxpy_solver: str = "CLARABEL",
    cvxpy_options: dict[str, Any] | None = None,
) -> Iterator[Iterate]:
    """Solve with ``cvxpy_solver``; ``cvxpy_options`` go to it as they are, and are then not tightened.

    A time limit reaches CLARABEL, SCS and OSQP, less the time of compiling, which cannot be interrupted.
    """
    if cvxpy_options is not None and not isinstance(cvxpy_options, dict):
        raise TypeError(f"cvxpy_options must be a dictionary, got {type(cvxpy_options).__name__}")
    name = str(cvxpy_solver).upper()
    if name not in installed():
        known = ", ".join(sorted(installed()))
        raise ValueError(f"CVXPY has no solver {cvxpy_solver!r} installed; there are {known}")
    # CVXPY takes few coordinates of its own where a problem has them, else a linear model
    reduction = reduced(problem, () if row_coordinates(problem) is not None else (KernelToLinear,))
    base = DEFAULTS.get(name, {}) | (cvxpy_options or {})
    adjustable = () if cvxpy_options else ACCURACIES.get(name, ())
    units = _units(problem) if adjustable else _units(problem)[:1]
    reason = ""
    for unit in units:
        program = _Program(problem, reduction, unit, name)
        try:
            yield from program.points(base, adjustable, last=unit == units[-1])
        except SolverFailedError as failure:
            reason = str(failure)
    if reason:
        raise SolverFailedError(reason)


class _Program:
    """A problem as CVXPY takes it, with its objective divided by a unit."""

    def __init__(self, problem: Problem, reduction: Reduction, unit: float, name: str) -> None:
        self.problem, self.reduction, self.unit, self.name = problem, reduction, unit, name
        self.form = form = cvxpy_program(reduction.problem, copies=True)
        objective = cp.Minimize(form.program.objective.args[0] / unit)
        self.program = QuietProblem(objective, form.program.constraints)  # of inaccuracy the certificate says more
        if deadline.remaining() < math.inf:  # the limit of the solver itself is known after compiling only
            with contextlib.suppress(cp.SolverError):  # whatever is wrong is said when it is solved
                self.program.get_problem_data(name)

    def points(self, base: dict[str, Any], adjustable: tuple[str, ...], last: bool) -> Iterator[Iterate]:
        """Points of the accuracy that was asked for, or of a looser one that works; then of tighter ones."""

        def found(factor: float) -> bool:
            options = base | {key: base[key] * factor for key in adjustable}
            return _solved(self.program, self.name, options | _limit(self.name, base))

        worked = found(1.0)
        tighter: tuple[float, ...] = TIGHTER if worked and adjustable else ()
        if not worked and not any(found(factor) for factor in LOOSER if adjustable):
            raise SolverFailedError(
                f"{self.name} found no solution (status {self.program.status!r}); "
                "is there a direction of the weights without penalty on separable data?"
            )
        yield self._point(exhausted=last and not tighter)
        for factor in tighter:
            if not found(factor):
                return
            yield self._point(exhausted=last and factor == tighter[-1])

    def _point(self, exhausted: bool) -> Iterate:
        taken, parts, form = self.reduction.problem, self.reduction.problem.normal_form, self.form
        weights = np.array(form.theta.value, dtype=float)
        if parts.separable is not None:  # a conic solution misses bounds by its tolerance
            weights = np.clip(weights, parts.separable.lower, parts.separable.upper)
        for piece in parts.weight_pieces:
            weights = _into_domain(taken, piece.number, weights)
        intercept = np.zeros(taken.n_outputs) if form.b is None else np.array(form.b.value, dtype=float).ravel()
        dual = {}
        for piece in parts.pieces:
            link = form.links.get(piece.number)
            if link is not None and link.dual_value is not None:
                u = self.unit * np.array(link.dual_value, dtype=float).reshape(link.shape)
                # multipliers of zero sums, where the problem has them, are no part of the term
                dual[piece.number] = centred(u) if u.shape[1] > 1 and piece.atom.can("centred_hinges") else u
        point = self.reduction.lift(Point(weights, intercept, dual))
        return Iterate(point.theta, point.b, dict(point.dual), exhausted=exhausted)


def _units(problem: Problem) -> tuple[float, ...]:
    """What the objective is divided by, at first and if that does not work.

    Accuracies of conic solvers are absolute numbers too, which should mean the same at every scale of the objective: a
    power of two near the middle between the loss of a row and the strengths of the penalties. Where that is near 1
    the objective stays as it is at first.
    """
    parts = problem.normal_form
    strengths = [piece.scale for piece in parts.weight_pieces] + [form.scale for form in parts.weight_forms]
    strengths += [] if parts.separable is None else [float(np.max(parts.separable.weights))]
    strengths = [strength for strength in (*strengths, parts.rkhs) if 0 < strength < np.inf]
    null = null_point(problem)
    row = max(null.with_intercept, PERFECT * null.with_zero_scores) / problem.model.n_rows
    row = row if 1e-300 < row < np.inf else float(np.median(strengths or [1.0]))
    middle = 0.5 * (math.log2(row) + math.log2(float(np.median(strengths or [row]))))
    unit = 2.0 ** round(middle)
    first = 1.0 if 1.0 / NEAR_ONE <= unit <= NEAR_ONE else unit
    second = unit if unit != first else 2.0 ** round(math.log2(row))
    return (first, second) if second != first else (first,)


def _limit(name: str, base: dict[str, Any]) -> dict[str, float]:
    """The option with which the solver keeps the time limit, where it has one and the user has not set it."""
    option, seconds = TIME_LIMITS.get(name), deadline.remaining()
    return {} if option is None or option in base or seconds == math.inf else {option: max(seconds, 1e-3)}


def _solved(program: cp.Problem, name: str, options: dict[str, Any]) -> bool:
    deadline.check()
    try:
        program.solve(solver=name, **options)
    except cp.SolverError as error:
        if "failed" in str(error):
            return False
        raise ValueError(
            f"{name} does not take this problem; CLARABEL, SCS and ECOS take every one. CVXPY says: {error}"
        ) from error
    return all(variable.value is not None for variable in program.variables())


def _into_domain(problem: Problem, number: int, weights: np.ndarray) -> np.ndarray:
    """Weights where the term is finite: a tiny prox step if it is not."""
    term = problem.terms[number]
    if term.target == "weights" and not np.isfinite(term.atom.value(weights)):
        return term.atom.prox(weights, 1e-12)
    return weights


SOLVER = Solver(NAME, run, coordinates=AS_GIVEN, rough_zeros=True)
