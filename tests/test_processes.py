"""Problems and solutions in worker processes and after a fork."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np
import pytest
from thread_jobs import PACKAGE, PROBLEMS, TOL, agree, equal, solved, switching_often, with_an_atom_of_its_own


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    with switching_often():
        yield


def test_solutions_problems_and_atoms_go_to_workers():
    problem = with_an_atom_of_its_own()
    expected = solved(problem, "cvxpy")
    atom = problem.terms[1].atom
    point = atom.prox(np.ones((4, 1)), 0.5)  # by now there is a compiled CVXPY problem of the atom
    again = pickle.loads(pickle.dumps(expected))
    assert equal(again, expected) and equal(solved(again.problem, "cvxpy"), expected)
    np.testing.assert_array_equal(again.problem.terms[1].atom.prox(np.ones((4, 1)), 0.5), point)
    jobs = [
        ("ridge", "newton"),
        ("groups", "group_newton"),
        ("kernel hinge", "augmented_lagrangian"),
        ("l1", "cvxpy"),
        ("virtual nodes", "newton"),
    ]
    problems = [PROBLEMS[name]() for name, _ in jobs]
    serial = [solved(problem, solver) for problem, (_, solver) in zip(problems, jobs, strict=True)]
    for backend in ("loky", "threading"):
        tasks = (joblib.delayed(problem.solve)(job[1], tol=TOL) for problem, job in zip(problems, jobs, strict=True))
        for one, other in zip(serial, joblib.Parallel(n_jobs=2, backend=backend)(tasks), strict=True):
            assert agree(one, other), (one, other)


FORK = """
import multiprocessing, sys, threading, warnings
sys.path[:0] = {paths!r}
import thread_jobs as t

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of every fork of a process with threads
sys.setswitchinterval(1e-5)
jobs = [("l1", "working_set"), ("ridge", "newton"), ("groups", "group_newton"), ("atom of its own", "cvxpy"),
        ("kernel hinge", "warped_kernel"), ("kernel logistic", "kernel_cg"), ("latent", "cvxpy")]
problems = {{name: t.PROBLEMS[name]() for name, _ in jobs}}
expected = {{job: t.solved(problems[job[0]], job[1]) for job in jobs}}
stop = threading.Event()

def busy():
    while not stop.is_set():
        for name, solver in jobs:
            t.solved(problems[name], solver)

def child(queue):
    queue.put(all(t.agree(expected[job], t.solved(problems[job[0]], job[1])) for job in jobs))

threads = [threading.Thread(target=busy, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
context = multiprocessing.get_context("fork")
for number in range({forks}):
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(queue,), daemon=True)
    process.start()
    process.join(60)
    assert process.exitcode == 0, (number, process.exitcode)
    assert queue.get(), number
stop.set()
for thread in threads:
    thread.join(60)
print("all well")
"""


def run_script(code: str, timeout: float) -> str:
    """What a script prints in a process of its own, so that a deadlock is a failure."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system has no fork")
@pytest.mark.parametrize("forks", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_children_of_a_process_whose_threads_are_solving(forks):
    code = FORK.format(paths=[str(Path(__file__).parent)], forks=forks)
    assert "all well" in run_script(code, timeout=120 + 10 * forks)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system has no fork")
def test_a_fork_in_the_middle_of_a_cached_property():
    code = """
import os, threading, time
from cvxstructreg.runtime.lazy import cached_property

inside = threading.Event()

class Slow:
    @cached_property
    def value(self):
        inside.set()
        time.sleep(1.0 if threading.current_thread() is not threading.main_thread() else 0.0)
        return 7

slow = Slow()
thread = threading.Thread(target=lambda: slow.value)
thread.start()
inside.wait()
import warnings
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    os._exit(slow.value)
deadline = time.monotonic() + 30
while True:
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    assert time.monotonic() < deadline, "the child waits for a lock"
    time.sleep(0.01)
print(os.waitstatus_to_exitcode(status))
thread.join()
"""
    assert run_script(code, timeout=60).strip() == "7"


def test_threads_that_import_and_solve_first():
    """Lazy imports, and compiled loops loaded by several threads at once."""
    code = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import cvxstructreg as csr

sys.setswitchinterval(1e-5)
barrier = threading.Barrier(8)
rng = np.random.default_rng(0)
X = rng.normal(size=(30, 6))
y = X[:, 0] > 0
graph = csr.Graph.from_edges([(0, 1), (1, 2)], n_nodes=6)
groups = csr.Groups([[0, 1], [1, 2, 3, 4, 5]])
penalties = [csr.L1(), csr.Ridge(), csr.FeatureNetwork(graph) + 0.1 * csr.Ridge(), csr.GroupLasso(groups)]

def task(number):
    barrier.wait(60)
    csr.datasets, csr.metrics, csr.estimators, csr.GroupLassoClassifier, csr.FeatureNetworkClassifier
    return csr.Problem(csr.Linear(X), csr.Logistic(y) + penalties[number % 4]).solve().status

with ThreadPoolExecutor(8) as pool:
    print(sorted(set(pool.map(task, range(8)))))
"""
    assert run_script(code, timeout=240).strip() == "['optimal']"
