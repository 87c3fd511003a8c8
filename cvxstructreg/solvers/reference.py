"""The reference: CVXPY. It accepts every problem and is slow; it is the oracle of all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers.iterate import Iterate, Refusal

NAME = "cvxpy"
ITERATES = False  # CVXPY reports only its end

#: Accuracies asked for by default, in the names of each solver.
DEFAULTS: dict[str, dict[str, Any]] = {
    "CLARABEL": {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9},
    "ECOS": {"abstol": 1e-9, "reltol": 1e-9, "feastol": 1e-9},
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 100_000},
    "OSQP": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 200_000, "polishing": True},
}


def accepts(problem: Problem) -> Refusal | None:
    """Everything."""
    return None


def run(
    problem: Problem, start: Iterate, cvxpy_solver: str = "CLARABEL", cvxpy_options: dict[str, Any] | None = None
) -> Iterator[Iterate]:
    """Solve with ``cvxpy_solver``; ``cvxpy_options`` go to it as they are."""
    name = str(cvxpy_solver).upper()
    if name not in cp.installed_solvers():
        known = ", ".join(sorted(cp.installed_solvers()))
        raise ValueError(f"CVXPY has no solver {cvxpy_solver!r} installed; there are {known}")
    cvxpy_problem, theta, b, links = problem.cvxpy_parts(copies=True)
    try:
        cvxpy_problem.solve(solver=name, **(DEFAULTS.get(name, {}) | (cvxpy_options or {})))
    except cp.SolverError as error:
        raise RuntimeError(f"{name} could not solve the problem: {error}") from error
    if theta.value is None:
        raise RuntimeError(
            f"{name} found no solution (status {cvxpy_problem.status!r}); "
            "is there a direction of the weights without penalty on separable data?"
        )
    weights = np.asarray(theta.value, dtype=float)
    if problem.normal_form.separable is not None:  # a conic solution misses bounds by its tolerance
        weights = np.clip(weights, problem.normal_form.separable.lower, problem.normal_form.separable.upper)
    intercept = np.zeros(problem.n_outputs) if b is None else np.asarray(b.value, dtype=float).ravel()
    dual = {
        number: np.asarray(link.dual_value, dtype=float).reshape(link.shape)
        for number, link in links.items()
        if link.dual_value is not None
    }
    for piece in problem.normal_form.pieces:
        weights = _into_domain(problem, piece.number, weights)
    yield Iterate(weights, intercept, dual, exhausted=True)


def _into_domain(problem: Problem, number: int, weights: np.ndarray) -> np.ndarray:
    """Weights where the term is finite: a tiny prox step if it is not."""
    term = problem.terms[number]
    if term.target == "weights" and not np.isfinite(term.atom.value(weights)):
        return term.atom.prox(weights, 1e-12)
    return weights
