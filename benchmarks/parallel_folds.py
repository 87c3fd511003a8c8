"""Cross-validation in one process and with ``n_jobs=2``: by the clock, and in CPU seconds of all processes.

Overlapping groups on generated data of three sizes, three ratios, five folds. The two ways take turns. Processes are
ended after every fit, so that each fit with ``n_jobs=2`` includes their start, if the library starts any; the seconds
until they have ended are not counted by the clock, but as CPU seconds. Times are medians. The load is that of the
machine when the case begins; the rule that starts processes asks for idle processors.
"""

from __future__ import annotations

import os
import resource
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib.externals.loky import get_reusable_executor
from measure import Result

import cvxstructreg as csr
from cvxstructreg.runtime import processes

#: Rows, features, points of each path, and turns.
CASES = ((200, 60, 10, 3), (1500, 300, 15, 2), (4000, 800, 20, 2))
JOBS = {1: "", 2: "small: at most 1; large: clearly less"}


class Seconds(NamedTuple):
    """A fit by the clock and in CPU seconds of all processes, the largest gap, and the number of processes started."""

    clock: float
    cpu: float
    gap: float
    started: int


def cpu_seconds() -> float:
    """The CPU seconds of this process and of those it has started and that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def fitted(n: int, d: int, points: int, jobs: int) -> Seconds:
    """Fit with so many jobs, and end the processes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = (X[:, :20] @ rng.normal(size=20) + 2.0 * rng.logistic(size=n) > 0).astype(int)
    groups = csr.Groups([range(i, min(i + 8, d)) for i in range(0, d - 2, 5)], n_features=d)
    how: dict[str, Any] = {"n_strengths": points, "ratios": [0.1, 0.5, 2.0], "cv": 5}
    processes.remember(0)  # no pool runs
    clock, cpu = time.perf_counter(), cpu_seconds()
    model = csr.GroupLassoClassifierCV(groups, n_jobs=jobs, **how).fit(X, y)
    clock = time.perf_counter() - clock
    started = jobs if processes.start_of(jobs) < processes.START else 0
    get_reusable_executor().shutdown(wait=True)
    return Seconds(clock, cpu_seconds() - cpu, float(model.path_.gaps.max()), started)


def parallel() -> Iterator[Result]:
    """One job and two, by turns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a choice at the edge of the grid
        fitted(60, 20, 3, 1)  # loads what is compiled
        for n, d, points, turns in CASES:
            load = os.getloadavg()[0]
            runs: dict[int, list[Seconds]] = {jobs: [] for jobs in JOBS}
            for _ in range(turns):
                for jobs, taken in runs.items():
                    taken.append(fitted(n, d, points, jobs))
            work = f"{n:,} x {d}, 15 paths of {points} points, load {load:.1f}"
            for kind in ("clock", "cpu"):
                for jobs, taken in runs.items():
                    seconds = [getattr(run, kind) for run in taken]
                    name = f"n_jobs={jobs} ({'CPU seconds' if kind == 'cpu' else 'by the clock'})"
                    if jobs > 1:
                        name += f", processes started: {'/'.join(str(run.started) for run in taken)}"
                    gap, target = max(run.gap for run in taken), JOBS[jobs] if kind == "clock" else ""
                    yield Result(f"parallel, {kind}", work, name, float(np.median(seconds)), seconds[0], gap, target)


SECTIONS = {"path_parallel": parallel}
