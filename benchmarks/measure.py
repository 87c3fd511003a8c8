"""Measurements: one line of the table, and the timing of solvers."""

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
    """The result, the median CPU time of the warm runs, and the time of the first run."""
    times = []
    for _ in range(repeats + 1):
        began = time.process_time()
        result = run()
        times.append(time.process_time() - began)
    return result, float(np.median(times[1:] or times)), times[0]


def ours(section: str, work: str, make: Callable[[], csr.Problem], solver: str, tol: float, **how: Any) -> Result:
    """Time one of our solvers on a new problem in each run, so that nothing is cached."""
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
#: Wall-clock seconds after which a CVXPY solver is stopped.
CVXPY_LIMIT = 90.0


def by_cvxpy(section: str, work: str, make: Callable[[], csr.Problem], tol: float = 1e-9) -> Iterator[Result]:
    """Run each of CVXPY's solvers once, including compilation; "gap" is the error of the objective, up to ``tol``.

    Each solver runs in its own process, which is stopped at ``CVXPY_LIMIT``: ECOS needs many minutes on some problems.
    """
    bound = make().solve(tol=tol).certificate.lower_bound
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
    """Solve with CVXPY and send the objective (NaN if the solver failed) and the CPU seconds."""
    reference = make().to_cvxpy()
    began = time.process_time()
    try:
        reference.solve(name, **options)
    except cp.SolverError:
        answer.send((np.nan, time.process_time() - began))
        return
    answer.send((reference.value, time.process_time() - began))
