"""Measuring: one line of a table, and how our solvers are timed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

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


def lambda_max(X: Any, y: np.ndarray) -> float:
    """The smallest L1 strength at which all weights are zero."""
    return float(np.abs(X.T @ (y - y.mean())).max())


#: CVXPY's solvers for programs with exponential cones, at tolerances that reach an objective error of 1e-6. ECOS is not
#: among them: it did not end in minutes at 1,000 x 2,000.
CVXPY_SOLVERS: dict[str, dict[str, Any]] = {
    "CLARABEL": {"max_threads": 1},
    "SCS": {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 20_000},
}


def by_cvxpy(section: str, work: str, make: Callable[[], csr.Problem]) -> Iterator[Result]:
    """CVXPY's solvers, once each, compilation included; "gap" is the error of their objective."""
    bound = make().solve(tol=1e-9).certificate.lower_bound
    for name, options in CVXPY_SOLVERS.items():
        reference = make().to_cvxpy()
        began = time.process_time()
        reference.solve(name, **options)
        seconds = time.process_time() - began
        yield Result(section, work, f"cvxpy {name}", seconds, seconds, abs(reference.value / bound - 1.0))
