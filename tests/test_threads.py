"""Shared problems, models, graphs and atoms in several threads, after a fork and in worker processes."""

from __future__ import annotations

import ast
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cvxpy as cp
import joblib
import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom
from cvxstructreg.instances import METHODS
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.quiet import QuietProblem, muted, warn
from cvxstructreg.solvers import registry
from random_problems import kernel_problem, linear_problem

PACKAGE = Path(csr.__file__).parent
THREADS = 8


class Excess(Atom):
    """sum_i (z_i - 1)_+ + ||z||: nothing but the definition."""

    def expr(self, z: cp.Expression) -> cp.Expression:
        return cp.sum(cp.pos(z - 1.0)) + cp.norm(z, "fro")


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Threads take turns every few bytecodes, so that a race does not need luck to show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(tasks: list[Callable[[], Any]], threads: int = THREADS) -> list[Any]:
    """The results of the tasks, run by several threads."""
    with ThreadPoolExecutor(threads) as pool:
        return [future.result(timeout=300) for future in [pool.submit(task) for task in tasks]]


# ---------------------------------------------------------------------------------------------------------------------
# solves


def with_an_atom_of_its_own() -> csr.Problem:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 4))
    return csr.Problem(csr.Linear(X), csr.Squared(X @ np.ones(4)) + 0.5 * Excess() + 0.1 * csr.Ridge())


def with_disjoint_groups() -> csr.Problem:
    rng = np.random.default_rng(6)
    X, groups = rng.normal(size=(30, 12)), csr.Groups.from_labels(np.arange(12) // 3)
    return csr.Problem(csr.Linear(X), csr.Logistic(X[:, 0] > 0) + 0.5 * csr.GroupLasso(groups))


def with_many_rows() -> csr.Problem:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 4))
    graph = csr.Graph.from_edges([(0, 1), (1, 2), (2, 3)], n_nodes=4)
    return csr.Problem(
        csr.Linear(X),
        csr.Hinge(X[:, 0] + 0.3 * rng.normal(size=80) > 0) + csr.FeatureNetwork(graph) + 0.1 * csr.Ridge(),
    )


def with_virtual_nodes() -> csr.Problem:
    rng = np.random.default_rng(8)
    X, members = rng.normal(size=(25, 9)), [(i, 9 + (i + j) % 4) for i in range(9) for j in (0, 1)]
    graph = csr.Graph.from_edges(members, n_nodes=13, virtual=[9, 10, 11, 12], directed=True)
    return csr.Problem(csr.Linear(X), csr.Logistic(X[:, 0] > 0) + 2.0 * csr.FeatureNetwork(graph) + 0.1 * csr.Ridge())


PROBLEMS: dict[str, Callable[[], csr.Problem]] = {
    "atom of its own": with_an_atom_of_its_own,
    "disjoint groups": with_disjoint_groups,
    "many rows": with_many_rows,
    "virtual nodes": with_virtual_nodes,
    "ridge": lambda: linear_problem(3, "Logistic", "ridge", True, False),
    "l1": lambda: linear_problem(3, "Logistic", "l1", True, True),
    "groups": lambda: linear_problem(3, "Logistic", "groups", True, False),
    "latent": lambda: linear_problem(3, "Logistic", "latent", True, False),
    "classes": lambda: linear_problem(3, "Multinomial", "l1", True, False),
    "multiclass hinge": lambda: linear_problem(3, "MulticlassHinge", "ridge", True, False),
    "kernel hinge": lambda: kernel_problem(1, "Hinge", True, 0, 1),
    "kernel logistic": lambda: kernel_problem(1, "Logistic", True, 0, 2),
    "kernel pairs": lambda: kernel_problem(1, "Squared", True, 3, 1),
    **METHODS,
}
#: Seconds each: groups of the same kind are solved above.
TOO_SLOW = {("sentence-group-lasso", name) for name in ("admm", "sentence_admm", "cvxpy")}
TOL, MAX_ITER = 1e-5, 2000
Job = tuple[str, str]


def all_jobs() -> list[Job]:
    """Every problem with every solver that accepts it."""
    pairs = [(name, module.name) for name, make in PROBLEMS.items() for module in registry.accepting(make())]
    return [pair for pair in pairs if pair not in TOO_SLOW]


def solved(problem: csr.Problem, solver: str) -> csr.Solution:
    with muted(csr.InaccurateWarning):
        return problem.solve(solver, tol=TOL, max_iter=MAX_ITER)


def equal(one: csr.Solution, other: csr.Solution) -> bool:
    """Bit for bit."""
    return np.array_equal(one.coef, other.coef) and np.array_equal(one.intercept, other.intercept)


def agree(one: csr.Solution, other: csr.Solution) -> bool:
    """Equal bit for bit, or both proved, and the proofs do not contradict each other."""
    if equal(one, other):
        return True
    bounds = (one.certificate.lower_bound, other.certificate.lower_bound)
    slack = 1e-12 * abs(one.objective)
    return (
        one.status == other.status == "optimal"
        and bounds[0] <= other.objective + slack
        and bounds[1] <= one.objective + slack
    )


def hammer(jobs: list[Job], solves: int, rounds: int) -> tuple[int, int]:
    """Solve shared problems, new ones in each round, in several threads; (solves, those equal bit for bit)."""
    expected = {job: solved(PROBLEMS[job[0]](), job[1]) for job in jobs}
    count = same = 0
    for number in range(rounds):
        shared = {name: PROBLEMS[name]() for name, _ in jobs}
        barrier = threading.Barrier(THREADS)

        def work(thread: int, number: int = number, shared: Any = shared, barrier: Any = barrier) -> list[Any]:
            order = np.random.default_rng((number, thread)).permutation(np.arange(solves) % len(jobs))
            barrier.wait(timeout=60)
            return [(jobs[i], solved(shared[jobs[i][0]], jobs[i][1])) for i in order]

        for results in at_once([lambda thread=thread: work(thread) for thread in range(THREADS)]):
            for job, solution in results:
                assert agree(expected[job], solution), (job, expected[job], solution)
                count, same = count + 1, same + equal(expected[job], solution)
    return count, same


def test_every_solver_is_among_the_jobs():
    assert {solver for _, solver in all_jobs()} == set(registry.names())


def test_shared_problems_have_the_solutions_of_one_thread():
    first = {solver: (name, solver) for name, solver in reversed(all_jobs())}
    hammer(list(first.values()), solves=len(first), rounds=1)


@pytest.mark.slow
def test_eight_threads_with_two_hundred_solves_each():
    count, same = hammer(all_jobs(), solves=50, rounds=4)
    print(f"{count} solves, {same} equal bit for bit, all others within their certificates")
    assert count == THREADS * 200


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_first_use_of_a_problem_by_all_threads_at_once(name):
    """Nobody sees a half-made normal form, spectrum or factor."""
    expected, problem, barrier = solved(PROBLEMS[name](), "auto"), PROBLEMS[name](), threading.Barrier(THREADS)

    def task() -> csr.Solution:
        barrier.wait(timeout=60)
        return solved(problem, "auto")

    for solution in at_once([task] * THREADS):
        assert agree(expected, solution), (expected, solution)


# ---------------------------------------------------------------------------------------------------------------------
# atoms, graphs and groups


def test_the_default_prox_of_a_shared_atom():
    atom, rng = Excess(), np.random.default_rng(0)
    points = [(rng.normal(size=(6, 1 + number % 2)), float(rng.uniform(0.1, 2.0))) for number in range(80)]
    serial = [Excess().prox(v, t) for v, t in points]
    threaded = at_once([lambda v=v, t=t: atom.prox(v, t) for v, t in points])
    assert all(np.array_equal(one, other) for one, other in zip(serial, threaded, strict=True))


def test_atoms_need_no_hash_for_the_default_prox():
    class Unhashable(Excess):
        __hash__ = None  # type: ignore[assignment]

    v = np.array([[3.0], [0.5]])
    np.testing.assert_array_equal(Unhashable().prox(v, 0.3), Excess().prox(v, 0.3))


def test_idle_problems_go_with_their_atom():
    from cvxstructreg.core import default_prox

    atom = Excess()
    atom.prox(np.ones((2, 1)), 1.0)
    assert id(atom) in default_prox._IDLE
    key = id(atom)
    del atom
    assert key not in default_prox._IDLE


def test_an_error_in_a_prox_does_not_spoil_the_next_one():
    atom, v = Excess(), np.array([[3.0], [0.5]])
    expected = Excess().prox(v, 0.3)
    with pytest.raises(ValueError, match="nonneg"):
        atom.prox(v, -1.0)
    np.testing.assert_array_equal(atom.prox(v, 0.3), expected)


def test_shared_graphs_groups_and_kernels():
    rng = np.random.default_rng(1)
    ends = rng.integers(40, size=(120, 2))
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    graph = csr.Graph.from_edges(ends, rng.choice([1.0, -1.0], size=len(ends)), n_nodes=40)
    groups = csr.Groups([sorted(rng.choice(40, 5, replace=False).tolist()) for _ in range(20)], n_features=40)
    X = rng.normal(size=(40, 3))
    warped = csr.WarpedKernel(np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)), graph, 0.5)
    w = rng.normal(size=(40, 1))
    members = [(i, 36 + j) for i in range(36) for j in {i % 4, i % 3}]
    means = csr.FeatureNetwork(csr.Graph.from_edges(members, n_nodes=40, virtual=[36, 37, 38, 39], directed=True))

    def kept() -> list[Any]:
        """What goes by factors that the shared objects keep."""
        return [warped.gram(), means(w[:36]), means.grad(w[:36])]

    def made() -> list[Any]:
        """What is made anew from the shared objects."""
        network, laplacian, lasso = csr.FeatureNetwork(graph), csr.Laplacian(graph), csr.GroupLasso(groups)
        arrays = [network(w), network.prox(w, 0.5), laplacian.prox(w, 0.5), lasso(w), lasso.prox(w, 0.2)]
        return [*arrays, graph.laplacian().toarray(), groups.merged().weights, repr(graph), repr(groups)]

    for look, times in ((kept, 400), (made, 40)):
        expected = look()
        for found in at_once([look] * times):
            assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True))


def test_a_shared_kernel_model():
    """Its last product, its spectrum and the proof that it is positive semidefinite are kept with it."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    thetas = [rng.normal(size=(30, 1)) for _ in range(400)]
    serial = [csr.Kernel(gram).scores(theta, np.zeros(1)) for theta in thetas]
    factor, barrier = csr.Kernel(gram).factor(), threading.Barrier(THREADS)
    for _ in range(5):
        model = csr.Kernel(gram)

        def task(thread: int, model: csr.Kernel = model) -> list[Any]:
            barrier.wait(timeout=60)
            model.require_psd()
            np.testing.assert_array_equal(model.factor(), factor)
            own = thetas[thread::THREADS]  # each asked for three times in a row, as certificates do
            return [[model.scores(theta, np.zeros(1)) for _ in range(3)] for theta in own]

        for thread, found in enumerate(at_once([lambda thread=thread: task(thread) for thread in range(THREADS)])):
            for one, others in zip(serial[thread::THREADS], found, strict=True):
                assert all(np.array_equal(one, other) for other in others)


def test_a_shared_penalty_is_taken_apart_once():
    graph = csr.Graph.from_edges([(i, i + 1) for i in range(59)], n_nodes=60)
    barrier, penalty = threading.Barrier(THREADS), csr.FeatureNetwork(graph)

    def task() -> list[Any]:
        barrier.wait(timeout=60)
        form = penalty.quadratic(60)
        return [form.matrix, form.largest_eigenvalue, form.smallest_eigenvalue, form.main_diagonal]

    first, *others = at_once([task] * THREADS)
    for found in others:
        assert found[0] is first[0] and found[3] is first[3] and found[1:3] == first[1:3]


def test_a_fitted_estimator_predicts_and_copies_of_it_fit():
    from sklearn.base import clone

    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 6))
    y = X[:, 0] + X[:, 1] > 0
    graph = csr.Graph.from_edges([(i, i + 1) for i in range(5)], n_nodes=6)
    model = csr.FeatureNetworkClassifier(graph).fit(X, y)
    expected = model.decision_function(X)

    def task() -> tuple[Any, Any]:
        return model.decision_function(X), clone(model).fit(X, y)

    with warnings.catch_warnings():  # scikit-learn's input checks change the filters of all threads
        found = at_once([task] * 40)
    for scores, copy in found:
        np.testing.assert_array_equal(scores, expected)
        assert agree(copy.solution_, model.solution_)


# ---------------------------------------------------------------------------------------------------------------------
# warnings and cached properties


def test_muting_is_for_one_thread_and_ends():
    inside, told = threading.Event(), threading.Event()

    def quiet() -> None:
        with muted(UserWarning):
            inside.set()
            assert told.wait(timeout=60)
            warn("muted", UserWarning)
        with pytest.raises(UserWarning, match="aloud"):
            warn("aloud", UserWarning)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(quiet)
        assert inside.wait(timeout=60)
        with pytest.raises(UserWarning, match="not muted here"):
            warn("not muted here", UserWarning)
        told.set()
        future.result(timeout=60)


def test_solves_with_and_without_a_warning_side_by_side():
    problem, before = PROBLEMS["ridge"](), list(warnings.filters)

    def task(quiet: bool) -> str:
        with muted(*([csr.InaccurateWarning] if quiet else [])):
            try:
                return problem.solve("lbfgs", max_iter=1, tol=1e-12).status
            except csr.InaccurateWarning:
                return "warned"

    told = at_once([lambda number=number: task(number % 2 == 0) for number in range(40)])
    assert told == ["max_iter", "warned"] * 20
    assert warnings.filters == before


def test_other_categories_are_not_muted():
    with muted(csr.InaccurateWarning), pytest.raises(RuntimeWarning):
        warn("of another kind", RuntimeWarning)


def test_a_quiet_problem_says_nothing_of_inaccuracy_and_is_the_same_otherwise():
    x = cp.Variable(3)
    parts = (cp.Minimize(cp.sum_squares(x - np.arange(3.0)) + cp.norm1(x)), [x <= 1.5])
    options = {"solver": "SCS", "max_iters": 2}
    with pytest.warns(UserWarning, match="inaccurate"):
        cp.Problem(*parts).solve(**options)
    expected = x.value
    quiet = QuietProblem(*parts)
    quiet.solve(**options)
    assert quiet.status == "optimal_inaccurate"
    np.testing.assert_array_equal(x.value, expected)
    with pytest.raises(cp.SolverError):
        QuietProblem(cp.Minimize(cp.exp(x[0]))).solve(solver="OSQP")


def test_a_cached_property_has_one_value_for_all_threads():
    barrier = threading.Barrier(THREADS)

    class Slow:
        @cached_property
        def value(self) -> list[int]:
            """A list."""
            barrier.wait(timeout=60)  # all threads are inside
            return [threading.get_ident()]

    slow = Slow()
    found = at_once([lambda: slow.value] * THREADS)
    assert all(value is found[0] for value in found) and slow.value is found[0]
    assert Slow.value.__doc__ == "A list."


def imports_and_attributes(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
    return names


# the cross-check is a program: it may change the warning filters of its own process
LIBRARY = sorted(path for path in PACKAGE.rglob("*.py") if "crosscheck" not in path.relative_to(PACKAGE).parts)


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_uses_what_is_not_safe(path):
    """Filters of all threads, locks that outlive a fork, and random numbers that threads share."""
    unsafe = {"warnings.catch_warnings", "warnings.simplefilter", "warnings.filterwarnings", "np.random.seed"}
    unsafe |= {"np.seterr", "os.chdir", "os.environ.update"}
    if path.name != "lazy.py":
        unsafe |= {"functools.cached_property"}
    assert not imports_and_attributes(path) & unsafe


# ---------------------------------------------------------------------------------------------------------------------
# processes


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
import test_threads as t

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
