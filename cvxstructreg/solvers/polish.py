"""Polish a conic solution: find its support, solve again on the support, and certify the result, with exact zeros.

A conic solver returns small numbers in place of zeros. The zeros are identified by a proximal gradient step, which sets
them exactly, and by size. With these weights fixed at zero, the program is solved once more to a tighter tolerance. The
result is kept only if its certificate is at least as good, up to the tolerance of the solve.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.certificates.certificate import certify_point, objective_scale
from cvxstructreg.certificates.kkt import gradient_mapping, slope_at, step_size
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Record, Solution
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.reductions.cvxpy_program import cvxpy_program
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.solvers.reference import ACCURACIES, DEFAULTS, limit_option

#: Weights of at most these sizes, relative to the largest weight, are tried as zeros.
SMALL = (1e-4, 1e-5, 1e-6, 1e-8)
#: A weight after the proximal gradient step is zero if it is at most this part of the largest weight.
ZERO = 1e-10
#: The accuracy on the support, and the looser one if the solver fails.
ACCURACY = (1e-12, 1e-10)
#: The objective may increase by this part of its scale, the accuracy of conic solvers.
INCREASE = 1e-9


def polished(solution: Solution, tol: float, cvxpy_solver: str = "CLARABEL") -> Solution:
    """Return the solution on its support, with exact zeros; the given one if no support can be confirmed."""
    problem, began = solution.problem, deadline.clock()
    parts = problem.normal_form
    if parts.separable is None and not parts.weight_pieces:
        return solution
    theta, b = problem.shaped(solution.coef, solution.intercept)
    scale = objective_scale(problem, solution.objective)
    for fixed in _patterns(problem, theta, b, solution.dual):
        if deadline.passed():
            break
        found = _solved_with(problem, fixed, theta, str(cvxpy_solver).upper())
        if found is None:
            continue
        known = solution.certificate
        bound = -np.inf if known.kind == "kkt" else known.lower_bound
        certificate = certify_point(problem, *found, solution.dual, bound, known_dual=known.dual)
        enough = certificate.error <= max(tol, known.error)
        if enough and certificate.objective <= solution.objective + INCREASE * scale:
            seconds = solution.time + deadline.clock() - began
            shown = replace(certificate, dual=None)
            record = Record(solution.n_iter + 1, seconds, certificate.objective, shown, solution.solver)
            single = problem.n_outputs == 1
            return replace(
                solution,
                coef=found[0][:, 0] if single else found[0],
                intercept=float(found[1][0]) if single else found[1],
                objective=certificate.objective,
                certificate=certificate,
                status=certificate.status(tol) or solution.status,
                n_iter=solution.n_iter + 1,
                time=seconds,
                history=(*solution.history, record),
            )
    return solution


def _patterns(problem: Problem, theta: Array, b: Array, dual: Mapping[int, Array]) -> Iterator[NDArray[np.bool_]]:
    """Yield the sets of weights that may be zero or at a bound, the largest first."""
    parts = problem.normal_form
    slope = slope_at(parts, theta, b, dual).gradient
    stepped = theta - step_size(theta, slope) * gradient_mapping(parts, theta, slope, dual)
    largest = float(np.abs(theta).max(initial=0.0))
    found = [np.abs(stepped) <= ZERO * largest, *(np.abs(theta) <= small * largest for small in SMALL), theta == 0.0]
    if parts.separable is not None and parts.separable.bounded:
        reach = ZERO * largest
        at_bound = (stepped <= parts.separable.lower + reach) | (stepped >= parts.separable.upper - reach)
        found = [zeros | at_bound for zeros in found]
    distinct = {pattern.tobytes(): pattern for pattern in found}
    yield from sorted(distinct.values(), key=lambda pattern: -int(pattern.sum()))


def _solved_with(problem: Problem, fixed: NDArray[np.bool_], theta: Array, name: str) -> tuple[Array, Array] | None:
    """Return the optimal weights and intercepts with these weights fixed at zero or at their bound."""
    from cvxstructreg.runtime.quiet_problem import QuietProblem  # imports CVXPY

    values = _values(problem, theta)
    form = cvxpy_program(problem)
    rows, columns = np.nonzero(fixed)
    constraints: list[Any] = list(form.program.constraints)
    if rows.size:
        constraints.append(form.theta[rows, columns] == values[rows, columns])
    program = QuietProblem(form.program.objective, constraints)
    for accuracy in ACCURACY:
        options = DEFAULTS.get(name, {}) | dict.fromkeys(ACCURACIES.get(name, ()), accuracy)
        with contextlib.suppress(cp.SolverError):
            program.solve(solver=name, **options, **limit_option(name, options))
            if form.theta.value is not None and np.isfinite(form.theta.value).all():
                break
    else:
        return None
    moved = np.where(fixed, values, np.asarray(form.theta.value, dtype=float))
    part = problem.normal_form.separable
    if part is not None:
        moved = np.clip(moved, part.lower, part.upper)
    b = np.zeros(problem.n_outputs) if form.b is None else np.array(form.b.value, dtype=float).ravel()
    return moved, b


def _values(problem: Problem, theta: Array) -> Array:
    """Return the nearest bound of each weight that is near one, and zero for all others."""
    part, values = problem.normal_form.separable, np.zeros_like(theta)
    if part is None or not part.bounded:
        return values
    reach = SMALL[0] * float(np.abs(theta).max(initial=0.0))
    values = np.where(np.abs(theta - part.lower) <= reach, part.lower, values)
    return np.asarray(np.where(np.abs(theta - part.upper) <= reach, part.upper, values))
