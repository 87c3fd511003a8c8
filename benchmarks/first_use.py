"""The first solve in a fresh process: without compiled code, and with the cache of an earlier process.

Times are CPU seconds of the process: "seconds" is the first solve with a filled cache, "first run" the first solve with
an empty cache. The import of the package is not included; it has its own line, with Python's own compiled files
("first run" may write them), and another line with the names that a first problem needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import data
import groups
import numpy as np
from measure import Result

import cvxstructreg as csr


def gaussian_kernel(n: int) -> csr.Kernel:
    """The Gaussian kernel of random points in five dimensions."""
    X = np.random.default_rng(0).normal(size=(n, 5))
    return csr.Kernel(np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1) / 5.0))


def problem(solver: str) -> csr.Problem:
    """A problem for which ``auto`` chooses this solver."""
    if solver == "newton":
        X, y = data.sparse_problem(2000, 20_000, 0.01)
        penalty = 100.0 * csr.FeatureNetwork(data.ring_graph(20_000)) + 0.1 * csr.Ridge()
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + penalty)
    if solver == "working_set":
        X, y = data.sparse_problem(1000, 2000, 0.02)
        penalty = 2.0 * csr.L1() + 1.0 * csr.Laplacian(data.ring_graph(2000), normalized=True)
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + penalty)
    if solver == "group_newton":
        X, y, sentences = groups.sentences_like_text(200, 1900, 2000, length=8.0)
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.5 * csr.L1() + 0.1 * csr.GroupLasso(sentences))
    if solver == "group_descent":
        X, y = data.sparse_problem(1000, 2000, 0.02)
        clusters = csr.Groups.from_labels(np.arange(2000) // 5)
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + 2.0 * csr.GroupLasso(clusters))
    rows = np.arange(60)
    if solver == "douglas_rachford":
        loss = csr.MulticlassHinge(rows % 3, rows=rows) + 0.1 * csr.Dissimilarity([(100, 101), (110, 120)])
        return csr.Problem(gaussian_kernel(200), loss + 0.1 * csr.RKHSNorm())
    graph = csr.Laplacian(data.ring_graph(600)).on_function()
    return csr.Problem(gaussian_kernel(600), csr.Hinge(rows % 2, rows=rows) + 0.1 * csr.RKHSNorm() + 0.1 * graph)


def print_first_solve(solver: str) -> None:
    """Solve in this process, and print time and gap as a line of JSON."""
    made = problem(solver)
    began = time.process_time()
    solution = made.solve()
    seconds = time.process_time() - began
    print(json.dumps({"solver": solution.solver, "seconds": seconds, "gap": solution.certificate.relative_gap}))


def first_use() -> Iterator[Result]:
    """Time each compiled solver in two fresh processes, and the import."""
    here = Path(__file__).resolve().parent
    section, target = "first use in a fresh process", "<= 3 s without cache, < 1 s with cache"

    def fresh(code: str, cache: str) -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1]

    for solver in ("newton", "working_set", "group_newton", "group_descent", "douglas_rachford", "warped_kernel"):
        code = f"import first_use; first_use.print_first_solve({solver!r})"
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (json.loads(fresh(code, cache)) for _ in range(2))
        yield Result(section, solver, warm["solver"], warm["seconds"], cold["seconds"], warm["gap"], target)
    clock, names = "import time; t = time.process_time(); ", "csr.Problem, csr.Linear, csr.Logistic, csr.L1; "
    imports = {"import": "import cvxstructreg; ", "import and a first problem": f"import cvxstructreg as csr; {names}"}
    for work, code in imports.items():
        with tempfile.TemporaryDirectory() as cache:
            first, *times = (float(fresh(clock + code + "print(time.process_time() - t)", cache)) for _ in range(6))
        yield Result(section, work, "cvxstructreg", float(np.median(times)), first, float("nan"), "<= 0.7 s")


SECTIONS = {"first_use": first_use}
