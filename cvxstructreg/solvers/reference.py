"""The reference solver: CVXPY. It accepts every problem but is slow; the other solvers are tested against it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from cvxstructreg.certificates.null_point import PERFECT, null_point
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.reductions.cvxpy_program import cvxpy_program
from cvxstructreg.reductions.kernel_to_linear import KernelToLinear
from cvxstructreg.reductions.reduction import Point, Reduction, reduced
from cvxstructreg.reductions.sum_to_zero_program import row_coordinates
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.solvers.iterate import Iterate, SolverFailedError
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

NAME = "cvxpy"

#: Factors applied to the accuracies: looser if the solver fails, tighter if the certified gap is not small enough.
LOOSER = (10.0, 100.0)
TIGHTER = (1e-2, 1e-3)
#: A unit of the objective within this factor of 1 counts as near 1.
NEAR_ONE = 2.0**12

#: The options of each solver that set its accuracy, and the first settings.
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
#: The option of each solver that limits its time in seconds. ECOS has none, and always runs its (at most 100)
#: iterations.
TIME_LIMITS = {"CLARABEL": "time_limit", "SCS": "time_limit_secs", "OSQP": "time_limit"}


@cache
def installed() -> frozenset[str]:
    """The solvers installed with CVXPY, cached: the query imports each solver, and a fork during an import is fatal."""
    return frozenset(cp.installed_solvers())


def run(
    problem: Problem,
    start: Iterate,
    tol: float,
    cvxpy_solver: str = "CLARABEL",
    cvxpy_options: dict[str, Any] | None = None,
) -> Iterator[Iterate]:
    """Solve with ``cvxpy_solver``; ``cvxpy_options`` are passed on unchanged, and are then not tightened.

    CLARABEL, SCS and OSQP observe a time limit, reduced by the time of compilation, which cannot be interrupted.
    """
    if cvxpy_options is not None and not isinstance(cvxpy_options, dict):
        raise TypeError(f"cvxpy_options must be a dictionary, got {type(cvxpy_options).__name__}")
    name = str(cvxpy_solver).upper()
    if name not in installed():
        known = ", ".join(sorted(installed()))
        raise ValueError(f"CVXPY solver {cvxpy_solver!r} is not installed; installed solvers are {known}")
    # use the row coordinates of sum-to-zero machines if there are any, else a linear model
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
    """The CVXPY form of a problem, with its objective divided by a unit."""

    def __init__(self, problem: Problem, reduction: Reduction, unit: float, name: str) -> None:
        from cvxstructreg.runtime.quiet_problem import QuietProblem  # imports CVXPY

        self.problem, self.reduction, self.unit, self.name = problem, reduction, unit, name
        self.form = form = cvxpy_program(reduction.problem, copies=True)
        objective = cp.Minimize(form.program.objective.args[0] / unit)
        # quiet: the certificate reports inaccuracy more precisely than the warnings of CVXPY
        self.program = QuietProblem(objective, form.program.constraints)
        if deadline.remaining() < math.inf:  # compile now, so that the solver gets only the time that remains
            with contextlib.suppress(cp.SolverError):  # the error is raised again when the program is solved
                self.program.get_problem_data(name)

    def points(self, base: dict[str, Any], adjustable: tuple[str, ...], last: bool) -> Iterator[Iterate]:
        """Solve to the default accuracy, or to a looser one if that fails; then to tighter ones."""

        def found(factor: float) -> bool:
            options = base | {key: base[key] * factor for key in adjustable}
            return _solved(self.program, self.name, options | limit_option(self.name, base))

        worked = found(1.0)
        tighter: tuple[float, ...] = TIGHTER if worked and adjustable else ()
        if not worked and not any(found(factor) for factor in LOOSER if adjustable):
            raise SolverFailedError(
                f"{self.name} found no solution (status {self.program.status!r}); "
                "the data may be separable along a direction of the weights without penalty"
            )
        yield self._point(exhausted=last and not tighter)
        for factor in tighter:
            if not found(factor):
                return
            yield self._point(exhausted=last and factor == tighter[-1])

    def _point(self, exhausted: bool) -> Iterate:
        taken, parts, form = self.reduction.problem, self.reduction.problem.normal_form, self.form
        weights = np.array(form.theta.value, dtype=float)
        if parts.separable is not None:  # a conic solution violates bounds by up to its tolerance
            weights = np.clip(weights, parts.separable.lower, parts.separable.upper)
        for piece in parts.weight_pieces:
            weights = _into_domain(piece, weights)
        intercept = np.zeros(taken.n_outputs) if form.b is None else np.array(form.b.value, dtype=float).ravel()
        dual = {}
        for piece in parts.pieces:
            link = form.links.get(piece.number)
            if link is not None and link.dual_value is not None:
                u = self.unit * np.array(link.dual_value, dtype=float).reshape(link.shape)
                # remove the multipliers of zero-sum constraints, which are not part of the term
                dual[piece.number] = centred(u) if u.shape[1] > 1 and piece.atom.can("centred_hinges") else u
        point = self.reduction.lift(Point(weights, intercept, dual))
        return Iterate(point.theta, point.b, dict(point.dual), exhausted=exhausted)


def _units(problem: Problem) -> tuple[float, ...]:
    """The number that the objective is divided by, and a second one to try if the first fails.

    The accuracies of conic solvers are partly absolute, so the objective is scaled to make them mean the same for every
    problem. The unit is a power of two near the geometric mean of the loss per row and the strengths of the penalties.
    If the unit is near 1, the objective is not scaled at first.
    """
    parts = problem.normal_form
    strengths = [piece.scale for piece in parts.weight_pieces] + [form.scale for form in parts.weight_forms]
    strengths += [] if parts.separable is None else [float(np.max(parts.separable.weights))]
    strengths += [] if parts.function_norm is None else [parts.function_norm.scale]
    strengths = [strength for strength in strengths if 0 < strength < np.inf]
    null = null_point(problem)
    row = max(null.with_intercept, PERFECT * null.with_zero_scores) / problem.model.n_rows
    row = row if 1e-300 < row < np.inf else float(np.median(strengths or [1.0]))
    middle = 0.5 * (math.log2(row) + math.log2(float(np.median(strengths or [row]))))
    unit = 2.0 ** round(middle)
    first = 1.0 if 1.0 / NEAR_ONE <= unit <= NEAR_ONE else unit
    second = unit if unit != first else 2.0 ** round(math.log2(row))
    return (first, second) if second != first else (first,)


def limit_option(name: str, base: dict[str, Any]) -> dict[str, float]:
    """The time limit as an option of the solver, if the solver has such an option and the user has not set it."""
    option, seconds = TIME_LIMITS.get(name), deadline.remaining()
    return {} if option is None or option in base or seconds == math.inf else {option: max(seconds, 1e-3)}


def _solved(program: cp.Problem, name: str, options: dict[str, Any]) -> bool:
    """Solve the program; return whether all variables have values."""
    deadline.check()
    try:
        program.solve(solver=name, **options)
    except cp.SolverError as error:
        if "failed" in str(error):
            return False
        raise ValueError(
            f"{name} does not accept this problem; CLARABEL, SCS and ECOS accept every problem. CVXPY reports: {error}"
        ) from error
    return all(variable.value is not None for variable in program.variables())


def _into_domain(piece: Piece, weights: np.ndarray) -> np.ndarray:
    """Move the weights to where the term is finite, by a tiny prox step if necessary."""
    return weights if np.isfinite(piece.source.value(weights)) else piece.source.prox(weights, 1e-12)


SOLVER = Solver(NAME, run, coordinates=AS_GIVEN, rough_zeros=True)
