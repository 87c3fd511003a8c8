"""Base class of all estimators: checked strengths, the solve with its certificate, and convergence warnings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cvxstructreg.certificates.certificate import Certificate
from cvxstructreg.core.objective import Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.estimators.without_data import SmallPickles
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers import InaccurateWarning, NoMinimiserWarning
from cvxstructreg.solvers.driver import no_minimiser_in_words

#: What a user of an estimator can do if there is no minimiser.
ADD_PENALTY = (
    "Penalise these features: raise the strength, or add a penalty such as 0.01 * Ridge() with a StructuredClassifier "
    "or StructuredRegressor"
)


class NoMinimiserConvergenceWarning(NoMinimiserWarning, ConvergenceWarning):
    """An estimator diverges because its problem has no minimiser; more iterations would not help."""


class StructuredEstimator(SmallPickles):
    """An estimator that solves one problem, or one for each class.

    Subclasses have the parameters ``solver``, ``solver_options``, ``tol``, ``max_iter`` and ``verbose`` of
    :meth:`cvxstructreg.Problem.solve`.
    """

    solver: str
    solver_options: Mapping[str, Any] | None
    tol: float
    max_iter: int | None
    verbose: bool

    def __sklearn_tags__(self) -> Any:
        """Declare that X may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _strength(self, name: str) -> float:
        """Return the parameter of this name, which must be a finite number of at least 0."""
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a number of at least 0, got {value!r}")
        if not 0 <= float(value) < math.inf:
            raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
        return float(value)

    def _choice(self, name: str, allowed: Sequence[str]) -> str:
        """Return the parameter of this name, which must be one of the allowed strings."""
        value = getattr(self, name)
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}")
        return value

    def _solve(self, problem: Problem) -> Solution:
        """Solve; if the gap exceeds ``tol``, issue a ConvergenceWarning with the certificate."""
        if self._recalls:
            return self._recalled(problem)
        solution = self._attempt(problem, verbose=bool(self.verbose))
        if self._is_unfinished(solution):
            warning = self._shortfall(solution)
            warning.certificate = solution.certificate
            warnings.warn(warning, stacklevel=5)
        return solution

    def _shortfall(self, solution: Solution) -> ConvergenceWarning:
        """The warning about a solution that is not the minimiser."""
        name = type(self).__name__
        if solution.status == "no_minimiser":
            text = f"{name}: the problem has {no_minimiser_in_words(solution)}. {ADD_PENALTY}"
            return NoMinimiserConvergenceWarning(text)
        return ConvergenceWarning(
            f"{name} stopped with status {solution.status!r} after {solution.n_iter} iterations of "
            f"{solution.solver}: {solution.certificate}, tolerance {self.tol:g}. Raise max_iter or tol, or scale "
            "the columns of X"
        )

    def _attempt(self, problem: Problem, start: Solution | None = None, verbose: bool = False) -> Solution:
        """Solve without a warning about the gap; ``start`` is the solution of a similar problem."""
        return self._run_solver(problem, self.solver, {"warm_start": start, "verbose": verbose})

    def _run_solver(self, problem: Problem, solver: str, own_options: Mapping[str, Any]) -> Solution:
        options = {**own_options, **(self.solver_options or {})}
        with muted(InaccurateWarning):
            return problem.solve(solver=solver, tol=self.tol, max_iter=self.max_iter, **options)

    def _is_unfinished(self, solution: Solution) -> bool:
        """Return whether the solver stopped before ``tol`` was proved."""
        return solution.status not in ("optimal", "stationary")

    def _keep_results(self, solutions: Sequence[Solution]) -> None:
        """Set ``solution_``, ``objective_``, ``certificate_`` and ``n_iter_``; with several problems, add them up."""
        if len(solutions) == 1:
            solution = solutions[0]
            self.solution_: Any = solution
            self.objective_ = solution.objective
            self.certificate_ = solution.certificate
            self.n_iter_ = solution.n_iter
            return
        self.solution_ = tuple(solutions)
        self.certificate_ = sum_of_certificates([solution.certificate for solution in solutions])
        self.objective_ = self.certificate_.objective
        self.n_iter_ = max(solution.n_iter for solution in solutions)


def sum_of_certificates(certificates: Sequence[Certificate]) -> Certificate:
    """Return the certificate of a sum of independent problems: objectives, bounds and gaps are added."""
    objective = sum(certificate.objective for certificate in certificates)
    if any(certificate.kind == "kkt" for certificate in certificates):
        worst = max(certificate.error for certificate in certificates)
        return Certificate("kkt", objective, np.nan, np.nan, np.nan, worst)
    bound = sum(certificate.lower_bound for certificate in certificates)
    gap = sum(certificate.gap for certificate in certificates)
    kinds = {certificate.kind for certificate in certificates}
    kind = kinds.pop() if len(kinds) == 1 else "strong_convexity"
    # the scale of each problem is gap / relative gap; if the relative gap is zero, use the objective
    scale = sum(c.gap / c.relative_gap if c.relative_gap > 0 else abs(c.objective) for c in certificates)
    return Certificate(kind, objective, bound, gap, gap / scale if gap else 0.0)


def sum_of_terms(terms: Sequence[Any]) -> Any:
    """Return the sum of the terms with positive strength; the first term, the loss, is always included."""
    return sum((term for term in terms[1:] if not isinstance(term, Term) or term.scale > 0), start=0 + terms[0])
