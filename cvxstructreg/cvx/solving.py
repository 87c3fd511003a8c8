"""``prob.solve(method="structreg")``: a plain CVXPY problem, solved by the solvers of this library.

After the solve the CVXPY problem has values, a status, an objective, multipliers of its bounds and ``solver_stats``, as
after any CVXPY solve; ``prob.solver_stats.extra_stats`` is the certificate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from cvxstructreg.certificates.certificate import Certificate
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.cvx.bounds import InfeasibleBoundsError
from cvxstructreg.cvx.by_cone_program import Answer, answer_of, is_small
from cvxstructreg.cvx.plain_problem import PlainProblem
from cvxstructreg.cvx.reading import names
from cvxstructreg.cvx.registration import METHOD
from cvxstructreg.cvx.remembered import Remembered
from cvxstructreg.cvx.translation import parts_of, problem_of, problem_sign
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp

#: The statuses of CVXPY for those of this library; any other is "optimal_inaccurate".
STATUSES = {"optimal": "optimal", "max_iter": "user_limit", "time_limit": "user_limit"}
#: The objective that CVXPY computes may differ by this, relative to the size of its parts.
SAME_OBJECTIVE = 1e-7
#: Arguments of ``cp.Problem.solve`` that have no meaning here.
FOREIGN = {"gp", "qcp", "requires_grad", "solver_path", "enforce_dpp", "canon_backend"}


@dataclass(frozen=True, eq=False)
class _Last:
    """A solution without its problem, and what must not change for a warm start from it."""

    solution: Solution
    kinds: list[Any]
    shape: tuple[int, ...]
    intercept: bool

    @classmethod
    def of(cls, solution: Solution) -> _Last:
        """The solution, without a reference to the CVXPY problem: that would keep the problem alive for ever."""
        problem = solution.problem
        alone = replace(solution, problem=cast(Problem, None), history=(), certificate=cast(Certificate, None))
        return cls(alone, _kinds(problem), problem.given.design.shape, problem.given.intercept)


#: The last solution of each problem, for warm starts.
_LAST: WeakKeyDictionary[cp.Problem, _Last] = WeakKeyDictionary()


def solve_structreg(
    prob: cp.Problem, tol: float = 1e-6, warm_start: bool = True, ignore_dpp: bool = True, **options: Any
) -> float:
    """Solve a plain CVXPY problem; registered as ``prob.solve(method="structreg")``.

    Parameters
    ----------
    prob : cp.Problem
        A problem that :func:`cvxstructreg.from_cvxpy` recognises; any other is refused with the first term that is not
        known.
    tol : float
        The certified relative gap to reach.
    warm_start : bool
        Whether to start at the last solution of the same problem, as after a change of a parameter.
    **options
        Those of :meth:`cvxstructreg.Problem.solve`, such as ``solver``, ``max_iter``, ``time_limit`` and ``verbose``.
    """
    _refuse_foreign(options)
    began = time.perf_counter()
    try:
        parts = parts_of(prob)
    except InfeasibleBoundsError:
        return _failed(prob, cp.INFEASIBLE)
    answer = answer_of(parts) if not options and is_small(parts) else None
    if answer is not None and answer.status in cp.settings.INF_OR_UNB:
        return _failed(prob, answer.status)
    if answer is not None and answer.certificate is not None and answer.certificate.relative_gap <= tol:
        return _proved(prob, answer, answer.certificate, time.perf_counter() - began)
    problem = problem_of(parts)
    read = time.perf_counter()
    start = _start(problem, _LAST.get(prob)) if warm_start else None
    if start is None and answer is not None and answer.values:
        start = problem.weights_at({variable: answer.values[variable.id] for variable in problem.layout.variables})
    solution = problem.solve(tol=tol, warm_start=start, **options)
    _LAST[prob] = _Last.of(solution)
    attributes = {
        cp.settings.SOLVE_TIME: solution.time,
        cp.settings.SETUP_TIME: read - began,
        cp.settings.NUM_ITERS: solution.n_iter,
        cp.settings.EXTRA_STATS: solution.certificate,
    }
    _unpack(prob, problem, solution, attributes)
    return float(prob.value)


def _refuse_foreign(options: dict[str, Any]) -> None:
    given = sorted(key for key in FOREIGN & options.keys() if options[key])
    if given:
        raise TypeError(f"method={METHOD!r} does not take {given[0]}=; leave it out, or leave out method=")
    for key in FOREIGN & options.keys():
        del options[key]
    solver = options.get("solver")
    if isinstance(solver, str) and solver.upper() in cp.installed_solvers():
        raise ValueError(
            f"solver={solver!r} is a solver of CVXPY; write solver='cvxpy', cvxpy_solver={solver.upper()!r} for its "
            f"solution with a certificate, or leave out method={METHOD!r}"
        )


def _failed(prob: cp.Problem, status: str) -> float:
    """Write into the CVXPY problem that it is infeasible or unbounded."""
    prob.unpack(names.failure_solution(status))
    prob._value = problem_sign(prob) * prob.value
    prob._solver_stats = names.SolverStats(_name("feasibility"))
    return float(prob.value)


def _name(solver: str) -> str:
    return f"cvxstructreg {solver}"


def _kinds(problem: Problem) -> list[Any]:
    return [type(term.atom) for term in problem.terms]


def _start(problem: PlainProblem, last: _Last | None) -> Any:
    """The last solution, with its dual point if the terms are the same up to their strengths."""
    if last is None or last.shape != problem.given.design.shape or last.intercept != problem.given.intercept:
        return None
    solution = last.solution
    if not np.isfinite(solution.coef).all():
        return None
    return solution if last.kinds == _kinds(problem) else (solution.coef, solution.intercept)


def _proved(prob: cp.Problem, answer: Answer, certificate: Certificate, seconds: float) -> float:
    """Write the proved solution of CVXPY into the problem."""
    attributes = {
        cp.settings.SOLVE_TIME: seconds,
        cp.settings.NUM_ITERS: answer.n_iter,
        cp.settings.EXTRA_STATS: certificate,
    }
    prob.unpack(names.Solution(cp.OPTIMAL, None, answer.values, answer.duals, attributes))
    prob._solver_stats = names.SolverStats.from_dict(attributes, _name("cvxpy"))
    return float(prob.value)


def _unpack(prob: cp.Problem, problem: PlainProblem, solution: Solution, attributes: dict[str, Any]) -> None:
    """Write values, multipliers, status and statistics into the CVXPY problem, and compare the objectives."""
    values = {variable.id: value for variable, value in problem.values_of(solution).items()}
    if len(values) < len(prob.variables()):
        values |= _auxiliary(prob, problem, values)
    status = STATUSES.get(solution.status, cp.OPTIMAL_INACCURATE)
    value = problem.sign * (solution.objective + problem.constant)
    duals = multipliers(problem, solution)
    prob.unpack(names.Solution(status, value, values, duals, attributes))
    prob._solver_stats = names.SolverStats.from_dict(attributes, _name(solution.solver))
    size = 1.0 + abs(solution.objective) + abs(problem.constant)
    if not abs(float(prob.value) - value) <= SAME_OBJECTIVE * size:
        raise RuntimeError(
            f"the objective of the recognised problem, {value:.9g}, is not that of the CVXPY problem, "
            f"{float(prob.value):.9g}; please report this problem. prob.solve() without method= solves it with CVXPY"
        )


def multipliers(problem: PlainProblem, solution: Solution) -> dict[int, Array]:
    """The multipliers of constraints that are bounds, by the ids of the constraints, in their shapes."""
    bounds, dual = problem.bounds, solution.certificate.dual
    if not bounds.bounding or dual is None or dual.separable is None:
        return {}
    separable = problem.normal_form.separable
    assert separable is not None
    theta = problem.shaped(solution.coef, solution.intercept)[0]
    costs = np.broadcast_to(separable.weights, theta.shape)
    given = dual.separable.reshape(theta.shape)
    slopes = np.where(theta == 0, np.clip(given, -costs, costs), np.sign(theta) * costs)
    normal = problem.vector_of(given - slopes)
    x = problem.vector_of(theta, solution.intercept)
    found = bounds.multipliers(x, normal)
    shapes = {bounding.constraint.id: bounding.constraint.shape for bounding in bounds.bounding}
    return {key: value.reshape(shapes[key], order="F") for key, value in found.items()}


def _auxiliary(prob: cp.Problem, problem: PlainProblem, values: dict[int, Array]) -> dict[int, Array]:
    """The best values of the auxiliary variables inside atoms of this library."""
    for variable in problem.layout.variables:
        variable.save_value(values[variable.id])
    found: dict[int, Array] = {}
    for atom in _remembered(prob.objective):
        hidden = [variable for variable in atom.args[0].variables() if variable.id not in values]
        if hidden:
            at = atom.argument.value
            fixed = cp.Problem(cp.Minimize(atom.args[0]), [atom.argument == at])
            fixed.solve(solver=cp.CLARABEL)
            found |= {variable.id: np.asarray(variable.value) for variable in hidden}
    return found


def _remembered(e: Any) -> list[Any]:
    if isinstance(e, Remembered):
        return [e]
    return [atom for argument in e.args for atom in _remembered(argument)]
