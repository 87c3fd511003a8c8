"""Measuring: one line of a table, and how our solvers are timed."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import cvxpy as cp
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
    """The result, the median CPU time of the warm runs and the time of the first."""
    times = []
    for _ in range(repeats + 1):
        began = time.process_time()
        result = run()
        times.append(time.process_time() - began)
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


#: CVXPY's solvers for programs with exponential cones, at tolerances that reach an objective error of 1e-6.
CVXPY_SOLVERS: dict[str, dict[str, Any]] = {
    "CLARABEL": {"max_threads": 1},
    "SCS": {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 20_000},
    "ECOS": {"abstol": 1e-8, "reltol": 1e-8, "feastol": 1e-8},
}
#: Seconds of the clock after which a solver of CVXPY is stopped.
CVXPY_LIMIT = 90.0


def by_cvxpy(section: str, work: str, make: Callable[[], csr.Problem]) -> Iterator[Result]:
    """CVXPY's solvers, once each, compilation included; "gap" is the error of their objective.

    Each runs in a process of its own, which is ended at ``CVXPY_LIMIT``: ECOS needs many minutes on some of these.
    """
    bound = make().solve(tol=1e-9).certificate.lower_bound
    for name, options in CVXPY_SOLVERS.items():
        parent, child = multiprocessing.get_context("fork").Pipe()
        worker = multiprocessing.get_context("fork").Process(target=_reference, args=(make, name, options, child))
        worker.start()
        if parent.poll(CVXPY_LIMIT):
            value, seconds = parent.recv()
            yield Result(section, work, f"cvxpy {name}", seconds, seconds, abs(value / bound - 1.0))
        else:
            worker.kill()
            yield Result(section, work, f"cvxpy {name} (stopped)", CVXPY_LIMIT, CVXPY_LIMIT, np.nan)
        worker.join()


def _reference(make: Callable[[], csr.Problem], name: str, options: dict[str, Any], answer: Connection) -> None:
    """Solve by CVXPY and send objective (NaN if it failed) and CPU seconds."""
    reference = make().to_cvxpy()
    began = time.process_time()
    try:
        reference.solve(name, **options)
    except cp.SolverError:
        answer.send((np.nan, time.process_time() - began))
        return
    answer.send((reference.value, time.process_time() - began))
