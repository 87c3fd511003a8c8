"""Compare solvers, those of the library and anyone's, with the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import Certificate, certify_point, objective_scale, tightened
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.cvx import PlainProblem
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers import InaccurateWarning, registry, solve
from cvxstructreg.solvers.reference import NAME as REFERENCE
from cvxstructreg.verification.given import GivenWeights, checked_problem, given_weights, is_estimator
from cvxstructreg.verification.report import Report, Row, disagreements, failed_row, row_of
from cvxstructreg.verification.traced import solution_of, traced_until

#: Limits, in iterations and seconds, for a solver to reach the tolerance when it is verified.
MAX_ITER, TIME_LIMIT = 100_000, 120.0
#: A function that takes less than so many seconds is run a second time, so that compilation does not count.
QUICK = 5.0
#: The same for solvers of the library, which tell how many seconds they compiled.
QUICK_OURS = 0.5


@dataclass(frozen=True)
class _Candidate:
    """A solver to compare: the name of a solver of the library, a function, an estimator, or weights."""

    name: str
    given: Any

    @property
    def is_ours(self) -> bool:
        return isinstance(self.given, str)


def verify(
    problem: Problem | cp.Problem,
    solvers: Iterable[Any] | Mapping[str, Any] | None = None,
    tol: float = 1e-6,
    method: str = "problem",
    max_iter: int = MAX_ITER,
    time_limit: float = TIME_LIMIT,
    progress: Callable[[str], Any] | None = None,
) -> Report:
    """Solve a problem with the reference and with other solvers, the library's or your own, and compare.

    Parameters
    ----------
    problem : Problem or cp.Problem
        Small enough for CVXPY. A plain CVXPY problem is recognised (:func:`~cvxstructreg.from_cvxpy`); the solution of
        CVXPY for the given problem then has a row of its own, unless ``solvers`` are given.
    solvers : iterable or dict, optional
        The solvers to run; the reference is always included. By default every solver of the library that accepts the
        problem. Each is one of the following; a dict gives them names:

        - the name of a solver of the library;
        - a function ``f(problem)`` that returns weights or ``(coef, intercept)``, or yields them one iterate after the
          other, which gives the row a history. Iterates are taken until the tolerance is proved;
        - a fitted estimator with ``coef_`` and ``intercept_``, a :class:`~cvxstructreg.Solution`, or weights.

        A function that raises, or returns NaN, becomes a row that says so.
    tol : float
        The certified relative gap that each solver must reach.
    method : str
        A name for the table.
    max_iter, time_limit : int, float
        Limits for each solver: its iterations or iterates, and its seconds.
    progress : function, optional
        Called with the name of each solver before it runs.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> X, y = np.eye(3), np.array([1.0, 2.0, 4.0])
    >>> problem = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + csr.L1())
    >>> report = csr.verify(problem)
    >>> report.agrees, report.rows[0].solver
    (True, 'cvxpy')

    Your own solver, and one with a mistake:

    >>> def threshold(problem):
    ...     return np.maximum(y - 1.0, 0.0)
    >>> def twice(problem):
    ...     return np.maximum(y - 2.0, 0.0)
    >>> report = csr.verify(problem, [threshold, twice])
    >>> [row.status for row in report.rows]
    ['optimal', 'optimal', 'inaccurate']
    """
    given, problem = problem, checked_problem(problem, "verify")
    candidates = _candidates(problem, solvers)
    if solvers is None and isinstance(problem, PlainProblem) and problem is not given:
        candidates.append(_Candidate("given problem", _solved_as_given))
    tell = progress or (lambda name: None)
    with muted(InaccurateWarning):
        tell(REFERENCE)
        reference = solve(problem, REFERENCE, tol=tol)
        comparison = _Comparison(problem, tol, method, max_iter, time_limit, reference)
        for candidate in candidates:
            tell(candidate.name)
            comparison.add(candidate)
    refusals = {} if solvers is not None else registry.refusals(problem)
    return comparison.report(refusals)


def _solved_as_given(problem: Problem) -> Any:
    """Return the weights that CVXPY finds for the plain problem as it was given."""
    assert isinstance(problem, PlainProblem)
    problem.cvxpy_problem.solve(solver=cp.CLARABEL)
    return problem.weights_at()


def _candidates(problem: Problem, solvers: Any) -> list[_Candidate]:
    """Return the solvers to run, without the reference; raise for names that are unknown or refuse the problem."""
    if solvers is None:
        solvers = [solver.name for solver in registry.accepting(problem)]
    elif isinstance(solvers, str) or callable(solvers) or is_estimator(solvers):
        solvers = [solvers]
    pairs = list(solvers.items()) if isinstance(solvers, Mapping) else [(_name(given), given) for given in solvers]
    found: list[_Candidate] = []
    for name, given in pairs:
        if isinstance(given, str):
            registry.choose(problem, given)
            if given == REFERENCE:
                continue
        taken = {candidate.name for candidate in found} | {REFERENCE}
        unique = next(n for n in (name, *(f"{name} {count}" for count in range(2, 1000))) if n not in taken)
        found.append(_Candidate(unique, given))
    return found


def _name(given: Any) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, Solution):
        return given.solver
    name = getattr(given, "__name__", type(given).__name__ if is_estimator(given) else "solver")
    return "solver" if name == "<lambda>" else str(name)


class _Comparison:
    """The rows of a report, and the best proof of a lower bound."""

    def __init__(
        self, problem: Problem, tol: float, method: str, max_iter: int, time_limit: float, reference: Solution
    ) -> None:
        self.problem, self.tol, self.method = problem, tol, method
        self.max_iter, self.time_limit, self.reference = max_iter, time_limit, reference
        self.scale = objective_scale(problem, reference.objective)
        self.rows: list[Row] = []
        self.solutions: dict[str, Solution] = {}
        self.failures: list[str] = []
        self.foreign: list[str] = []
        self.proof = reference.certificate
        self._keep(REFERENCE, reference)

    def add(self, candidate: _Candidate) -> None:
        """Run a solver and add its row."""
        if candidate.is_ours:
            found = self._ours(candidate.given)
            if found.certificate.kind != "kkt" and not self.proof.lower_bound >= found.certificate.lower_bound:
                self.proof = found.certificate
            self._keep(candidate.name, found)
            return
        self.foreign.append(candidate.name)
        try:
            self._keep(candidate.name, self._theirs(candidate))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self.rows.append(failed_row(self.problem, candidate.name, self.method, reason))
            self.failures.append(f"FAILED {self.method}: {candidate.name} raised {reason}")

    def _keep(self, name: str, solution: Solution) -> None:
        self.solutions[name] = solution
        self.rows.append(row_of(name, solution, self.reference, self.scale, self.method))

    def _ours(self, name: str) -> Solution:
        how: dict[str, Any] = {"max_iter": self.max_iter, "time_limit": self.time_limit}
        how |= registry.choose(self.problem, name).accurate
        found = solve(self.problem, name, tol=self.tol, **how)
        if found.compiling > 0.0 or found.time < QUICK_OURS:  # the time should be that of a second use
            found = solve(self.problem, name, tol=self.tol, **how)
        return found

    def _theirs(self, candidate: _Candidate) -> Solution:
        given = candidate.given
        if not callable(given) or is_estimator(given):
            weights = given_weights(self.problem, given)
            seconds = given.time if isinstance(given, Solution) else np.nan
            return self._as_solution(weights, candidate.name, seconds)
        began = deadline.clock()
        found = self._called(given, candidate.name)
        if deadline.clock() - began < QUICK:
            found = self._called(given, candidate.name)
        return found

    def _called(self, function: Callable[[Problem], Any], name: str) -> Solution:
        """Call a function and certify what it returns, or follow what it yields."""
        began = deadline.clock()
        result = function(self.problem)
        seconds = deadline.clock() - began
        if isinstance(result, Iterator):
            limits = (float(self.max_iter), self.time_limit)
            return traced_until(self.problem, result, self.tol, limits, self.proof, name)
        if result is None:
            raise TypeError("the function returned None; return weights or (coef, intercept), or yield them")
        return self._as_solution(given_weights(self.problem, result), name, seconds)

    def _as_solution(self, weights: GivenWeights, name: str, seconds: float) -> Solution:
        certificate = certify_point(self.problem, weights.theta, weights.b, weights.dual)
        certificate = tightened(self.problem, certificate, self.proof)
        return solution_of(self.problem, weights, certificate, self.tol, name, seconds)

    def report(self, refusals: dict[str, str]) -> Report:
        """Return all rows, with the disagreements between them."""
        certificates: dict[str, Certificate] = {name: found.certificate for name, found in self.solutions.items()}
        lines = disagreements(certificates, self.tol, self.scale, self.method)
        wrong = [name for name in self.foreign if name in certificates and not certificates[name].error <= self.tol]
        hints = tuple(f"Why: csr.diagnose(problem, report.solutions[{name!r}])" for name in wrong)
        return Report(tuple(self.rows), refusals, (*self.failures, *lines), self.solutions, hints)
