"""The sentence regularizer as published: ADMM stopped after a given number of iterations.

The result is the last iterate, not the best one, because the truncation is part of the method.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.groups import Groups
from cvxstructreg.numerics.block_norms import block_norms, row_squares
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.iterate import Iterate

NAME = "sentence_admm"
#: A copy is nonzero if the length of its multiplier equals its radius, up to this round-off.
ROUND_OFF = 1e-9


def truncated_admm(problem: Problem, tol: float, max_iter: int, rho: float, **options: Any) -> Solution:
    """Return the point after ``max_iter`` iterations, or earlier if a stopping rule is met.

    With the option ``change``, the rule is that of the paper: the relative change of w in an iteration is at most this.
    Without it, the residuals of the constraints are small.
    """
    if isinstance(max_iter, bool) or not isinstance(max_iter, Integral) or max_iter < 1:
        raise ValueError(f"max_iter must be a positive integer, got {max_iter!r}")
    began = time.perf_counter()
    ((count, iterate),) = points_at(problem, tol, [int(max_iter)], rho, **options)
    return certified(problem, tol, count, iterate, time.perf_counter() - began)


def points_at(
    problem: Problem, tol: float, stops: Sequence[int], rho: float, **options: Any
) -> Iterator[tuple[int, Iterate]]:
    """Yield the number of iterations and the iterate at each of the increasing stops, from zero.

    Once a stopping rule is met (see :func:`truncated_admm`), the iterate stays the same.
    """
    unknown = sorted(set(options) - {"w_tol", "change"})
    if unknown:
        raise TypeError(
            f"solver='sentence_admm' with max_iter has no option {unknown[0]!r}; the options are w_tol and change"
        )
    module = registry.choose(problem, NAME)
    shape = (problem.model.n_weights, problem.n_outputs)
    start, by_residuals = Iterate(np.zeros(shape), np.zeros(shape[1])), options.get("change") is None
    steps = module.run(problem, start, tol, rho=rho, stop=by_residuals, **options)
    count, iterate = 0, start
    for stop in stops:
        while count < stop and not iterate.exhausted:
            count, iterate = count + 1, next(steps)
        yield count, iterate


def certified(problem: Problem, tol: float, count: int, iterate: Iterate, seconds: float) -> Solution:
    """Return an iterate as a solution, with its certificate."""
    certificate = certify_point(problem, iterate.theta, iterate.b, iterate.dual)
    coef, intercept = weights_of(iterate)
    return Solution(
        problem=problem,
        coef=coef,
        intercept=intercept,
        objective=certificate.objective,
        certificate=certificate,
        status=certificate.status(tol) or "max_iter",
        solver=NAME,
        n_iter=count,
        time=seconds,
        dual=dict(iterate.dual),
    )


class Weights(NamedTuple):
    """The weights and the intercept of an iterate, in the shapes of a solution."""

    coef: NDArray[np.float64]
    intercept: Any


def weights_of(iterate: Iterate) -> Weights:
    """Return copies of the weights and the intercept."""
    if iterate.theta.shape[1] == 1:
        return Weights(iterate.theta[:, 0].copy(), float(iterate.b[0]))
    return Weights(iterate.theta.copy(), iterate.b.copy())


def copies_kept(solution: Solution, groups: Groups, strength: float) -> NDArray[np.bool_]:
    """Return which of the copies v_g are nonzero.

    v_g is the prox of r times the norm at some a. The multiplier a - v_g is a if v_g = 0, and has length r otherwise.
    """
    kept = groups.norms(solution.coef) > 0
    numbers = [number for number, term in enumerate(solution.problem.terms) if number in solution.dual]
    if strength == 0 or not numbers:
        return kept
    multiplier = solution.dual[numbers[0]]
    lengths = block_norms(row_squares(multiplier), groups.indptr)
    radii = strength * groups.weights
    return np.where(radii > 0, lengths >= radii * (1.0 - ROUND_OFF), kept)
