"""Measuring: one line of a table, our solvers and their peers at equal certified gap.

A time is the median of several runs after one that warms caches and compilers (kept as "cold"). Our times include the
certificate. A peer is stopped by its own rule with a tolerance tightened until our certificate of *its* weights says
that it is as good as we are.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import peers

import cvxstructreg as csr

REPEATS = 3


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    section: str
    work: str
    solver: str
    seconds: float
    cold: float
    gap: float
    target: str = ""


def timed(run: Callable[[], Any], repeats: int = REPEATS) -> tuple[Any, float, float]:
    """The result, the median time of the warm runs and the time of the first."""
    times = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - began)
    return result, float(np.median(times[1:] or times)), times[0]


def ours(section: str, work: str, make: Callable[[], csr.Problem], solver: str, tol: float, **how: Any) -> Result:
    """Time one of our solvers on a problem that is made anew each time, so that nothing is cached in it."""
    target, repeats, options = how.pop("target", ""), how.pop("repeats", REPEATS), how
    problems = [make() for _ in range(repeats + 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        solution, seconds, cold = timed(lambda: problems.pop().solve(solver, tol=tol, **options), repeats)
    return Result(section, work, solver, seconds, cold, solution.certificate.relative_gap, target)


def peer(section: str, work: str, problem: csr.Problem, name: str, fit: peers.Fit, tol: float) -> Result:
    """Time a peer at the loosest of its tolerances that gives a certified gap of ``tol``, or at its tightest."""
    gap, tolerance = np.inf, peers.TOLERANCES[0]
    for tolerance in peers.TOLERANCES:
        coef, intercept = fit(tolerance)
        gap = csr.certify(problem, coef, intercept, tol=tol, search=False).relative_gap
        if gap <= tol:
            break
    _, seconds, cold = timed(lambda: fit(tolerance))
    return Result(section, work, name, seconds, cold, gap)


def lambda_max(X: Any, y: np.ndarray) -> float:
    """The smallest L1 strength at which all weights are zero."""
    return float(np.abs(X.T @ (y - y.mean())).max())
