"""The sentence regularizer as published: ADMM stopped after a given number of iterations.

The result is the last iterate, not the best one, because the truncation is part of the method.
"""

from __future__ import annotations

import time
from itertools import islice
from numbers import Integral
from typing import Any

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
    unknown = sorted(set(options) - {"w_tol", "change"})
    if unknown:
        raise TypeError(
            f"solver='sentence_admm' with max_iter has no option {unknown[0]!r}; the options are w_tol and change"
        )
    began = time.perf_counter()
    module = registry.choose(problem, NAME)
    shape = (problem.model.n_weights, problem.n_outputs)
    start, by_residuals = Iterate(np.zeros(shape), np.zeros(shape[1])), options.get("change") is None
    steps = module.run(problem, start, tol, rho=rho, stop=by_residuals, **options)
    count = 0
    for count, iterate in enumerate(islice(steps, int(max_iter)), start=1):  # noqa: B007
        if iterate.exhausted:
            break
    steps.close()
    certificate = certify_point(problem, iterate.theta, iterate.b, iterate.dual)
    single = shape[1] == 1
    return Solution(
        problem=problem,
        coef=iterate.theta[:, 0].copy() if single else iterate.theta.copy(),
        intercept=float(iterate.b[0]) if single else iterate.b.copy(),
        objective=certificate.objective,
        certificate=certificate,
        status=certificate.status(tol) or "max_iter",
        solver=NAME,
        n_iter=count,
        time=time.perf_counter() - began,
        dual=dict(iterate.dual),
    )


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
