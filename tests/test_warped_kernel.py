"""The warped kernel on its own: stable, the same in and out of sample, and of use to scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import cvxstructreg as csr
from cvxstructreg.solvers.graph_strength import GraphDominatesWarning
from cvxstructreg.warped_kernel import WarpedKernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
GRAM = rbf_kernel(X)
GRAPH = csr.Graph.from_edges(
    [(i, (i + 1) % 40) for i in range(40)] + [(0, 20), (5, 30)], [1.0] * 40 + [-1.0, -2.0], n_nodes=40
)


def exact(strength, graph=GRAPH):
    """gram' from more digits than there are in a double, by the subtraction."""
    M = strength * graph.laplacian().toarray()
    K = GRAM.astype(np.longdouble)
    A = np.eye(40, dtype=np.longdouble) + M @ K
    X = _solve(A, M @ K)
    return np.asarray(K - K @ X, dtype=float)


def _solve(A, B):
    """Gaussian elimination with pivots, in whatever precision."""
    A, B = A.copy(), B.copy()
    n = len(A)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, pivot]], B[[k, pivot]] = A[[pivot, k]], B[[pivot, k]]
        factors = A[k + 1 :, k] / A[k, k]
        A[k + 1 :] -= np.outer(factors, A[k])
        B[k + 1 :] -= np.outer(factors, B[k])
    for k in range(n - 1, -1, -1):
        B[k] = (B[k] - A[k, k + 1 :] @ B[k + 1 :]) / A[k, k]
    return B


@pytest.mark.parametrize("strength", [0.0, 1e-3, 1.0, 1e3])
def test_it_is_the_warped_kernel(strength):
    warped = WarpedKernel(GRAM, GRAPH, strength)
    assert np.allclose(warped.gram(), exact(strength), atol=1e-10)
    R = warped.factor()
    assert np.allclose(R @ R.T, exact(strength), atol=1e-10)


@pytest.mark.filterwarnings("ignore::cvxstructreg.solvers.graph_strength.GraphDominatesWarning")
@pytest.mark.parametrize("graph", [GRAPH, GRAPH.similarity()], ids=["mixed", "similar"])
@pytest.mark.parametrize("size", [1e8, 1e10])
def test_a_strong_graph_costs_few_digits(graph, size):
    L = graph.laplacian().toarray()
    strength = size / np.linalg.eigvalsh(L)[-1]
    warped, expected = WarpedKernel(GRAM, graph, strength), exact(strength, graph)
    top = np.abs(expected).max()
    subtracted = GRAM - GRAM @ np.linalg.solve(np.eye(40) + strength * L @ GRAM, strength * L @ GRAM)
    error = np.abs(warped.gram() - expected).max() / top
    assert error < 1e-6
    assert error < np.abs(subtracted - expected).max() / top
    R = warped.factor()
    assert np.abs(R @ R.T - expected).max() / top < 1e-5


@pytest.mark.parametrize("on_scores", [False, True])
def test_out_of_sample_is_in_sample_on_training_points(on_scores):
    rows = [3, 1, 17, 25]
    by_matrix = WarpedKernel(GRAM, GRAPH, 2.0, on_scores=on_scores)
    by_function = WarpedKernel(rbf_kernel, GRAPH, 2.0, X=X, on_scores=on_scores)
    full = by_matrix.gram()
    assert np.allclose(by_matrix.gram(rows), full[np.ix_(rows, rows)])
    assert np.allclose(by_matrix.gram([0, 2], rows), full[np.ix_([0, 2], rows)])
    assert np.allclose(by_matrix.between(GRAM, rows), full[:, rows])
    assert np.allclose(by_function.between(X, rows), full[:, rows])
    coefficients = RNG.normal(size=4)
    f = by_function.function_of(coefficients, rows)
    assert np.allclose(f(X), full[:, rows] @ coefficients)
    new = RNG.normal(size=(5, 2))
    assert np.allclose(f(new), by_function.between(new, rows) @ coefficients)
    R = by_matrix.factor()
    assert np.allclose(R @ R.T, full)


def test_scikit_learn_machines_take_it():
    rows = np.arange(0, 40, 3)
    y = np.where(X[rows, 0] > 0, 1.0, -1.0)
    warped = WarpedKernel(rbf_kernel, csr.Laplacian(GRAPH, normalized=True, power=2), 1.0, X=X)
    machine = SVC(kernel="precomputed", C=2.0).fit(warped.gram(rows), y)
    values = machine.decision_function(warped.between(X, rows))
    f = warped.function_of(machine.dual_coef_[0], rows[machine.support_])
    assert np.allclose(values, f(X) + machine.intercept_[0])
    ridge = KernelRidge(alpha=0.1, kernel="precomputed").fit(warped.gram(rows), y)
    assert np.allclose(ridge.predict(warped.between(X, rows)), warped.function_of(ridge.dual_coef_, rows)(X))


def test_many_columns_at_once_and_few_edges():
    few = csr.Graph.from_edges([(0, 1), (5, 9)], [1.0, -1.0], n_nodes=40)
    warped = WarpedKernel(GRAM, few, 4.0)
    assert np.allclose(warped.gram(), exact(4.0, few), atol=1e-12)


def test_a_matrix_in_place_of_the_graph():
    M = GRAPH.laplacian()
    assert np.allclose(WarpedKernel(GRAM, M, 2.0).gram(), WarpedKernel(GRAM, GRAPH, 2.0).gram())


BAD = {
    "function without X": (lambda: WarpedKernel(rbf_kernel, GRAPH), ValueError, "a kernel function needs the examples"),
    "matrix with X": (lambda: WarpedKernel(GRAM, GRAPH, X=X), ValueError, "X is only used with a kernel function"),
    "sizes": (
        lambda: WarpedKernel(GRAM[:5, :5], GRAPH),
        ValueError,
        "acts on 40 rows, but the model has 5 examples",
    ),
    "negative strength": (lambda: WarpedKernel(GRAM, GRAPH, -1.0), ValueError, "strength must be a finite number"),
    "indefinite": (lambda: WarpedKernel(-GRAM, GRAPH), ValueError, "gram must be positive semidefinite"),
    "asymmetric": (lambda: WarpedKernel(np.triu(GRAM), GRAPH), ValueError, "gram must be symmetric"),
    "nan": (lambda: WarpedKernel(GRAM * np.nan, GRAPH), ValueError, "gram contains NaN"),
    "free constant": (
        lambda: WarpedKernel(GRAM, GRAPH.similarity(), on_scores=True),
        ValueError,
        "needs a graph with dissimilarity edges",
    ),
    "rows": (lambda: WarpedKernel(GRAM, GRAPH).gram([40]), ValueError, "example index 40 in rows is out of range"),
    "points": (lambda: WarpedKernel(GRAM, GRAPH).between(X), ValueError, "rows of the kernel with all 40"),
    "dual_coef": (
        lambda: WarpedKernel(GRAM, GRAPH).function_of([1.0], [0, 1]),
        ValueError,
        "dual_coef has 1 rows, expected one for each of 2",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    make, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        make()


def test_a_graph_that_drowns_everything_is_warned_of():
    with pytest.warns(GraphDominatesWarning):
        WarpedKernel(GRAM, GRAPH, 1e12)
