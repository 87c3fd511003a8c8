"""The contract of solvers: a solver reaches the optimum of the reference and proves it."""

from __future__ import annotations

from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.core.problem import Problem
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers.driver import InaccurateWarning
from cvxstructreg.solvers.reference import NAME as REFERENCE
from cvxstructreg.testing.probe import require


def check_solver(name: str, problem: Problem, tol: float = 1e-6) -> None:
    """Raise AssertionError unless a solver reaches the optimum of the reference and proves it.

    Parameters
    ----------
    name : str
        One of ``cvxstructreg.solvers.names()``.
    problem : Problem
        A problem that the solver accepts and that has a duality gap or another bound on the optimum.
    tol : float
        The certified relative gap to reach.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> from cvxstructreg.testing import check_solver
    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> problem = csr.Problem(csr.Linear(X), csr.Squared([1.0, 2.0, 4.0]) + 0.1 * csr.L1())
    >>> check_solver("fista", problem)
    """
    proofs = []
    for solver in (name, REFERENCE):
        with muted(InaccurateWarning):  # the status has the same information
            solution = problem.solve(solver=solver, tol=tol)
        who, message = (
            f"solver {solver!r} on {problem!r}",
            f"expected 'optimal', got {solution.status!r}: {solution.certificate}",
        )
        require(solution.status == "optimal", who, "status", message)
        certificate = certify_point(problem, *problem.shaped(solution.coef, solution.intercept), solution.dual)
        message = f"the reported value is {solution.objective}, the value of the point is {certificate.objective}"
        close = abs(certificate.objective - solution.objective) <= 1e-9 * (1.0 + abs(solution.objective))
        require(close, who, "objective", message)
        message = f"the recomputed certificate is {certificate}, the tolerance is {tol:g}"
        require(certificate.gap >= 0.0 and certificate.relative_gap <= 1.01 * tol, who, "certificate", message)
        proofs.append(certificate)
    message = f"objectives and gaps of the solver and the reference contradict each other: {proofs}"
    apart = abs(proofs[0].objective - proofs[1].objective) - 1e-12 * abs(proofs[1].objective)
    require(apart <= proofs[0].gap + proofs[1].gap, f"solver {name!r} on {problem!r}", "reference", message)
