"""Shared problems, models, graphs and atoms in several threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from thread_jobs import PROBLEMS, THREADS, Excess, agree, at_once, equal, solved, switching_often

import cvxstructreg as csr
from cvxstructreg.solvers import registry


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    with switching_often():
        yield


#: Seconds each: groups of the same kind are solved above.
TOO_SLOW = {("sentence-group-lasso", name) for name in ("admm", "sentence_admm", "cvxpy")}
Job = tuple[str, str]


def all_jobs() -> list[Job]:
    """Every problem with every solver that accepts it."""
    pairs = [(name, module.name) for name, make in PROBLEMS.items() for module in registry.accepting(make())]
    return [pair for pair in pairs if pair not in TOO_SLOW]


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
