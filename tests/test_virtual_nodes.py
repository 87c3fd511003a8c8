"""Virtual nodes are minimised out by a sparse factorisation: the same penalty as the dense way, at any size."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.numerics.semidefinite_solve import SemidefiniteSolve


def classes(d: int, k: int, seed: int, per_feature: int = 2) -> csr.Graph:
    """Each feature in some of k classes, with random shares; every class has a member."""
    rng = np.random.default_rng(seed)
    members = np.column_stack([np.arange(d) % k, rng.integers(k, size=(d, per_feature - 1))])
    rows = np.repeat(np.arange(d), per_feature)
    shares = rng.uniform(0.2, 1.0, size=rows.size)
    W = sp.coo_array((shares, (rows, d + members.ravel())), shape=(d + k, d + k))
    return csr.Graph(W, virtual=np.arange(d, d + k))


def directed(pairs: list[tuple[int, int]], weights: list[float], n: int, virtual: list[int]) -> csr.Graph:
    return csr.Graph.from_edges(pairs, weights, n_nodes=n, virtual=virtual, directed=True)


GRAPHS = {
    "one class each": lambda: classes(12, 4, 0, per_feature=1),
    "shared classes": lambda: classes(20, 6, 1),
    "as many classes as features": lambda: classes(9, 9, 2, per_feature=3),
    "a class without members": lambda: directed([(0, 4), (1, 4)], [1.0, 2.0], 6, [4, 5]),
    "no members at all": lambda: directed([(0, 1), (1, 0)], [1.0, 1.0], 4, [2, 3]),
    "two classes alike": lambda: directed([(i, j) for i in range(4) for j in (4, 5)], [1.0] * 8, 6, [4, 5]),
    "two classes nearly alike": lambda: directed(
        [(i, j) for i in range(4) for j in (4, 5)], [1.0, 1.0] * 3 + [1.0, 1.0001], 6, [4, 5]
    ),
    "classes of classes": lambda: directed(
        [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6), (6, 5)], [1.0, 1.0, 2.0, 1.0, 1.0, -1.0, 1.0], 7, [4, 5, 6]
    ),
    "virtual nodes among themselves": lambda: directed(
        [(0, 1), (1, 0), (2, 3), (3, 2), (3, 4)], [1.0] * 5, 5, [2, 3, 4]
    ),
    "dissimilar": lambda: directed([(0, 3), (1, 3), (2, 4), (3, 4)], [1.0, 1.0, -1.0, -1.0], 5, [3, 4]),
}


def dense(form: QuadraticForm) -> np.ndarray:
    """N'(I - QQ')N with an orthonormal basis Q of the range of E."""
    N, Q = form.factor.toarray(), scipy.linalg.orth(form.eliminated.toarray())
    return N.T @ (np.eye(len(N)) - Q @ Q.T) @ N


@pytest.mark.parametrize("signed", ["separate", "joint"])
@pytest.mark.parametrize("name", list(GRAPHS))
def test_the_same_as_the_dense_way(name, signed):
    penalty = csr.FeatureNetwork(GRAPHS[name](), signed=signed)
    form = penalty.quadratic(penalty.size)
    M, rng = dense(form), np.random.default_rng(3)
    size = max(1.0, np.abs(M).max())
    for k in (1, 3):
        w = rng.normal(size=(form.size, k))
        np.testing.assert_allclose(form.apply(w), M @ w, atol=1e-9 * size)
        assert form.value(w) == pytest.approx(np.sum(w * (M @ w)), abs=1e-9 * size)
        for t in (1e-3, 1.0, 1e4):
            expected = np.linalg.solve(np.eye(form.size) + 2.0 * t * M, w)
            np.testing.assert_allclose(form.prox(w, t), expected, atol=1e-8)
            np.testing.assert_allclose(form._joint_prox(w, t), expected, atol=1e-8)  # as for larger forms
    np.testing.assert_allclose(form.matrix, M, atol=1e-9 * size)


def test_the_prox_of_a_large_form():
    penalty, v = csr.FeatureNetwork(chain(1000)), np.random.default_rng(7).normal(size=(3000, 2))
    x = penalty.prox(v, 3.0)
    np.testing.assert_allclose(x + 3.0 * penalty.grad(x), v, atol=1e-9)


def test_copies_solve_alike():
    penalty = csr.FeatureNetwork(GRAPHS["shared classes"]())
    w = np.random.default_rng(4).normal(size=(20, 1))
    expected = penalty.quadratic(20).apply(w)
    for again in (pickle.loads(pickle.dumps(penalty)), copy.deepcopy(penalty)):
        np.testing.assert_array_equal(again.quadratic(20).apply(w), expected)


def chain(k: int) -> csr.Graph:
    """Three features between each two neighbours in a row of k class means."""
    d = 3 * k
    rows = np.repeat(np.arange(d), 2)
    means = np.column_stack([np.arange(d) // 3, np.minimum(np.arange(d) // 3 + 1, k - 1)]).ravel()
    W = sp.coo_array((np.tile([0.7, 0.3], d), (rows, d + means)), shape=(d + k, d + k))
    return csr.Graph(W, virtual=np.arange(d, d + k))


@pytest.mark.parametrize("make", [lambda k: classes(3 * k, k, 0, per_feature=1), chain])
def test_the_work_grows_with_the_entries_and_not_with_the_square(make):
    entries = {}
    for k in (500, 4000):
        form = csr.FeatureNetwork(make(k)).quadratic(3 * k)
        entries[k] = form._elimination.n_entries
    assert entries[4000] <= 10 * entries[500]
    assert entries[4000] <= 20 * 4000


def test_four_thousand_class_means_in_a_fit():
    """The weights of a class share a mean: few labels of many features are enough to see it."""
    k = 4000
    graph = chain(k)
    rng = np.random.default_rng(5)
    X = sp.random_array((60, 3 * k), density=0.01, rng=rng, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel() > np.median(np.asarray(X.sum(axis=1)))
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + 2.0 * csr.FeatureNetwork(graph) + 0.1 * csr.Ridge())
    solution = problem.solve(tol=1e-4)
    assert solution.status == "optimal" and solution.certificate.kind == "duality_gap"


class TestSemidefiniteSolve:
    def test_random_systems_regular_and_singular(self):
        rng = np.random.default_rng(6)
        for rank in (3, 8):
            B = sp.csr_array(rng.normal(size=(rank, 8)) * (rng.random((rank, 8)) < 0.6))
            A = B.T @ B
            right = A @ rng.normal(size=(8, 2))
            np.testing.assert_allclose(A @ SemidefiniteSolve(A)(right), right, atol=1e-11)

    def test_entries_of_any_size(self):
        A = sp.diags_array([1e-12, 1.0, 1e12]) @ sp.csr_array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]])
        A = A @ sp.diags_array([1e-12, 1.0, 1e12])
        x = np.array([[1e12], [1.0], [1e-12]])
        np.testing.assert_allclose(SemidefiniteSolve(A)(A @ x), x, rtol=1e-12)

    def test_nothing_and_a_diagonal_need_no_factors(self):
        for A in (sp.csr_array((3, 3)), sp.diags_array([4.0, 0.0, 2.0], format="csr")):
            solve = SemidefiniteSolve(A)
            assert solve.factors is None
            right = A @ np.ones((3, 1))
            np.testing.assert_array_equal(A @ solve(right), right)


@pytest.mark.parametrize("name", list(GRAPHS))
def test_the_values_of_virtual_nodes_attain_the_minimum(name):
    penalty = csr.FeatureNetwork(GRAPHS[name]())
    form = penalty.quadratic(penalty.size)
    w = np.random.default_rng(4).normal(size=(form.size, 2))
    residual = form.factor @ w + form.eliminated @ penalty.virtual_values(w)
    assert np.sum(residual**2) == pytest.approx(penalty.value(w), abs=1e-9)


def test_the_values_of_class_nodes_are_the_means_of_the_classes():
    graph = csr.graphs.class_graph({"one": ["a", "b"], "two": ["c"]}, ["a", "b", "c", "d"])
    values = csr.FeatureNetwork(graph).virtual_values(np.array([[1.0], [3.0], [-5.0], [9.0]]))
    np.testing.assert_allclose(values, [[2.0], [-5.0]], atol=1e-12)
    assert csr.Ridge().virtual_values(np.ones((3, 2))).shape == (0, 2)
