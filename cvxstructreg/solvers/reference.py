"""The reference: CVXPY. It accepts every problem and is slow; it is the oracle of all others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.core.centred_hinge import centred
from cvxstructreg.core.model import Kernel
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.quiet import QuietProblem
from cvxstructreg.solvers.iterate import Iterate, Refusal

NAME = "cvxpy"
ITERATES = False  # CVXPY reports only its end
ROUGH_ZEROS = True
ON_KERNELS = True  # it changes the coordinates itself, where the problem has no better ones

#: Factors of the accuracies: looser ones are tried when the solver fails, tighter ones when the certificate asks.
LOOSER = (10.0, 100.0)
TIGHTER = (1e-2, 1e-3)

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


@cache
def installed() -> frozenset[str]:
    """The solvers that CVXPY has, asked once: it tries to import each one, and a fork during an import is fatal."""
    return frozenset(cp.installed_solvers())


def accepts(problem: Problem) -> Refusal | None:
    """Everything."""
    return None


def run(
    problem: Problem,
    start: Iterate,
    tol: float,
    cvxpy_solver: str = "CLARABEL",
    cvxpy_options: dict[str, Any] | None = None,
) -> Iterator[Iterate]:
    """Solve with ``cvxpy_solver``; ``cvxpy_options`` go to it as they are, and are then not tightened."""
    if cvxpy_options is not None and not isinstance(cvxpy_options, dict):
        raise TypeError(f"cvxpy_options must be a dictionary, got {type(cvxpy_options).__name__}")
    name = str(cvxpy_solver).upper()
    if name not in installed():
        known = ", ".join(sorted(installed()))
        raise ValueError(f"CVXPY has no solver {cvxpy_solver!r} installed; there are {known}")
    taken = problem if problem.has_few_coordinates else problem.linear()
    built, theta, b, links = taken.cvxpy_parts(copies=True)
    cvxpy_problem = QuietProblem(built.objective, built.constraints)  # of inaccuracy the certificate says more
    base = DEFAULTS.get(name, {}) | (cvxpy_options or {})
    adjustable = () if cvxpy_options else ACCURACIES.get(name, ())

    def found(factor: float) -> bool:
        return _solved(cvxpy_problem, name, base | {key: base[key] * factor for key in adjustable})

    worked = found(1.0)
    tighter: tuple[float, ...] = TIGHTER if worked and adjustable else ()
    if not worked and not any(found(factor) for factor in LOOSER if adjustable):
        raise RuntimeError(
            f"{name} found no solution (status {cvxpy_problem.status!r}); "
            "is there a direction of the weights without penalty on separable data?"
        )
    yield _point(problem, taken, theta, b, links, exhausted=not tighter)
    for factor in tighter:
        if not found(factor):
            return
        yield _point(problem, taken, theta, b, links, exhausted=factor == tighter[-1])


def _solved(cvxpy_problem: cp.Problem, name: str, options: dict[str, Any]) -> bool:
    try:
        cvxpy_problem.solve(solver=name, **options)
    except cp.SolverError as error:
        if "failed" in str(error):
            return False
        raise ValueError(
            f"{name} does not take this problem; CLARABEL, SCS and ECOS take every one. CVXPY says: {error}"
        ) from error
    return all(variable.value is not None for variable in cvxpy_problem.variables())


def _point(
    problem: Problem,
    taken: Problem,
    theta: cp.Expression,
    b: cp.Variable | None,
    links: dict[int, Any],
    exhausted: bool,
) -> Iterate:
    weights, parts = np.array(theta.value, dtype=float), taken.normal_form
    if parts.separable is not None:  # a conic solution misses bounds by its tolerance
        weights = np.clip(weights, parts.separable.lower, parts.separable.upper)
    for piece in parts.weight_pieces:
        weights = _into_domain(taken, piece.number, weights)
    if taken is not problem and problem.has_factor_coordinates:
        assert isinstance(problem.model, Kernel)
        weights = problem.model.lift(weights)
    intercept = np.zeros(problem.n_outputs) if b is None else np.array(b.value, dtype=float).ravel()
    dual = {}
    for piece in parts.pieces:
        link = links.get(piece.number)
        if link is not None and link.dual_value is not None:
            u = np.array(link.dual_value, dtype=float).reshape(link.shape)
            # multipliers of zero sums, where the problem has them, are no part of the term
            dual[piece.number] = centred(u) if u.shape[1] > 1 and piece.atom.can("centred_hinges") else u
    return Iterate(weights, intercept, dual, exhausted=exhausted)


def _into_domain(problem: Problem, number: int, weights: np.ndarray) -> np.ndarray:
    """Weights where the term is finite: a tiny prox step if it is not."""
    term = problem.terms[number]
    if term.target == "weights" and not np.isfinite(term.atom.value(weights)):
        return term.atom.prox(weights, 1e-12)
    return weights
