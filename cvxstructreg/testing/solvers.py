"""The contract of solvers: a solver reaches the optimum of the reference and proves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cvxstructreg.certificates.certificate import certify_point, tightened
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers.iterate import InaccurateWarning
from cvxstructreg.solvers.reference import NAME as REFERENCE
from cvxstructreg.testing.probe import require, where
from cvxstructreg.verification.compare import MAX_ITER, TIME_LIMIT, verify

#: Differences of two values of one objective that round-off explains, relative to the value.
ROUND_OFF = 1e-9


def check_solver(
    solver: str | Callable[[Problem], Any],
    problem: Problem,
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
) -> None:
    """Raise AssertionError unless a solver reaches the optimum of the reference and proves it.

    The checked properties are ``runs`` (no exception, finite weights), ``status``, ``objective`` (the reported value is
    that of the weights), ``certificate`` (the gap, recomputed from the weights, is within the tolerance) and
    ``reference`` (solver and CVXPY do not contradict each other). A failure names the property, the point and the two
    numbers that differ.

    Parameters
    ----------
    solver : str or function
        One of ``cvxstructreg.solvers.names()``, or a function ``f(problem)`` that returns weights or
        ``(coef, intercept)``, or yields them. The certificate of a function may use the dual point of the reference.
    problem : Problem
        A problem that the solver accepts and that has a duality gap or another bound on the optimum.
    tol : float
        The certified relative gap to reach.
    max_iter, time_limit : optional
        Limits of the iterations and seconds of the solver, by default those of :meth:`cvxstructreg.Problem.solve`; a
        solver that needs more fails the check.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> from cvxstructreg.testing import check_solver
    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> problem = csr.Problem(csr.Linear(X), csr.Squared([1.0, 2.0, 4.0]) + 0.1 * csr.L1())
    >>> check_solver("fista", problem)
    >>> def guess(problem):
    ...     return np.zeros(2)
    >>> check_solver(guess, problem)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    AssertionError: solver 'guess' on ...: status: expected 'optimal', got 'inaccurate': relative gap ... (at coef = ...
    """
    problem = problem.now
    with muted(InaccurateWarning):  # the status has the same information
        reference = problem.solve(solver=REFERENCE, tol=tol)
        if isinstance(solver, str):
            name = solver
            found = problem.solve(solver=name, tol=tol, max_iter=max_iter, time_limit=time_limit)
        else:
            name, found = _called(solver, problem, tol, max_iter, time_limit)
    proofs = []
    for who, solution in ((name, found), (REFERENCE, reference)):
        proofs.append(_checked(who, solution, reference, tol, given=who == name and not isinstance(solver, str)))
    who, (own, other) = f"solver {name!r} on {problem!r}", proofs
    apart = abs(own.objective - other.objective)
    allowed = own.gap + other.gap + 1e-12 * abs(other.objective)
    why = (
        f"the objective is {own.objective:.12g}, that of CVXPY {other.objective:.12g}: they differ by {apart:.3g}, "
        f"more than the gaps {own.gap:.3g} and {other.gap:.3g} together allow"
    )
    require(apart <= allowed, who, "reference", why + where(_point(found)))


def _called(
    function: Callable[[Problem], Any], problem: Problem, tol: float, max_iter: int | None, time_limit: float | None
) -> tuple[str, Solution]:
    """Run a function as a solver; return its name and its solution."""
    limits = (MAX_ITER if max_iter is None else max_iter, TIME_LIMIT if time_limit is None else time_limit)
    row = (report := verify(problem, [function], tol, "problem", *limits)).rows[1]
    require(row.solver in report.solutions, f"solver {row.solver!r} on {problem!r}", "runs", row.status)
    return row.solver, report.solutions[row.solver]


def _checked(name: str, solution: Solution, reference: Solution, tol: float, given: bool) -> Any:
    """Return the certificate, recomputed from the weights, after checks of status, objective and gap."""
    problem, who, at = solution.problem, f"solver {name!r} on {solution.problem!r}", where(_point(solution))
    stated = solution.certificate
    what = "residual" if stated.kind == "kkt" else "relative gap"
    why = f"expected 'optimal', got {solution.status!r}: {what} {stated.error:.3g}, tolerance {tol:g}"
    require(solution.status == "optimal", who, "status", why + at)
    certificate = certify_point(problem, *problem.shaped(solution.coef, solution.intercept), solution.dual)
    if given:  # weights alone do not determine the dual point of every loss
        certificate = tightened(problem, certificate, reference.certificate)
    why = f"the reported value is {solution.objective:.12g}, the value of the point is {certificate.objective:.12g}"
    close = abs(certificate.objective - solution.objective) <= ROUND_OFF * (1.0 + abs(solution.objective))
    require(close, who, "objective", why + at)
    why = f"the relative gap, recomputed from the point, is {certificate.relative_gap:.3g}, the tolerance is {tol:g}"
    require(certificate.gap >= 0.0 and certificate.relative_gap <= 1.01 * tol, who, "certificate", why + at)
    return certificate


def _point(solution: Solution) -> dict[str, Any]:
    return {"coef": solution.coef, "intercept": solution.intercept}
