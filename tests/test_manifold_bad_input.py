"""Kernels, labels, graphs and strengths that manifold regularization refuses, and odd ones that it takes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from manifold_problems import LAM1, LAM2, Instance

import cvxstructreg as csr
from cvxstructreg.runtime.memory import require_memory
from cvxstructreg.warped_kernel import WarpedKernel


def problem_of(gram, y=(1, -1), rows=(0, 1), terms=None):
    return csr.Problem(
        csr.Kernel(gram), csr.Hinge(list(y), rows=list(rows)) + csr.RKHSNorm() + (terms or csr.RKHSNorm())
    )


def test_an_indefinite_gram_is_refused_whatever_its_size():
    for n in (5, 300):
        values = np.linspace(-1.0, 1.0, n)
        Q = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
        gram = (Q * values) @ Q.T
        with pytest.raises(ValueError, match="gram must be positive semidefinite, but its smallest eigenvalue is -"):
            problem_of((gram + gram.T) / 2).solve()


def indefinite_kernels(n):
    """Kernels that are not, by chance or by mistake, with the least part of the diagonal that is seen."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 8))
    squares = ((X[:, None] - X[None]) ** 2).sum(-1)
    rbf, noise = np.exp(-squares / 16), rng.normal(size=(n, n))
    pair = np.eye(n)
    pair[1, 2] = pair[2, 1] = 1.5
    yield np.tanh(0.1 * X @ X.T - 0.5)
    yield 1.0 - np.sqrt(squares) / 6
    yield np.where(squares < 8.0, rbf, 0.0)
    yield rbf + 0.02 * (noise + noise.T)
    yield pair
    if n <= 500:  # a Cholesky factor of all of it sees much more
        values, vectors = np.linalg.eigh(rbf)
        values[-60] = -1e-3
        yield (vectors * values) @ vectors.T


@pytest.mark.parametrize("n", [201, 400, 700])
def test_the_direct_way_refuses_kernels_that_are_not(n):
    graph = csr.Laplacian(csr.Graph.from_edges([(i, i + 1) for i in range(n - 1)], n_nodes=n)).on_function()
    for gram in indefinite_kernels(n):
        with pytest.raises(ValueError, match="gram must be positive semidefinite, but its smallest eigenvalue is -"):
            problem_of((gram + gram.T) / 2, terms=graph).solve("warped_kernel")
        with pytest.raises(ValueError, match="gram must be positive semidefinite"):
            WarpedKernel((gram + gram.T) / 2, csr.Graph.from_edges([(0, 1)], n_nodes=n))


def test_without_graph_negative_curvature_is_met_among_the_labelled_rows():
    n = 400
    gram, y = np.eye(n), np.where(np.arange(n) % 2 == 0, 1, -1)
    gram[1, 2] = gram[2, 1] = 1.5  # rows that the first look leaves out
    with pytest.raises(ValueError, match="gram must be positive semidefinite"):
        csr.Problem(csr.Kernel(gram), csr.Hinge(y) + 0.01 * csr.RKHSNorm()).solve("warped_kernel")


@pytest.mark.parametrize("n", [400, 700])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_kernels_of_any_rank_and_size_are_taken(n, size):
    X = np.random.default_rng(0).normal(size=(n, 5))
    for gram in (X @ X.T, np.ones((n, n)), np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))):
        csr.Kernel(size * gram).require_psd()


def test_negative_curvature_in_the_kernel_is_met_and_named():
    # positive on the part that is looked at first, not on the labelled rows
    n = 500
    gram = np.eye(n)
    gram[1, 2] = gram[2, 1] = 3.0
    loss = csr.Squared([1.0, -1.0], rows=[1, 2])
    with pytest.raises(ValueError, match="gram must be positive semidefinite"):
        csr.Problem(csr.Kernel(gram), loss + 0.01 * csr.RKHSNorm()).solve("kernel_cg")


def test_bad_labels_graphs_and_strengths():
    gram = np.eye(4)
    with pytest.raises(ValueError, match="y has only one class"):
        csr.Hinge([1], rows=[2])
    with pytest.raises(ValueError, match="acts on 3 rows, but the model has 4 examples"):
        problem_of(gram, terms=csr.Laplacian(csr.Graph.from_edges([(0, 1)], n_nodes=3)).on_function())
    with pytest.raises(ValueError, match="must be finite and at least 0 to stay convex, got -1"):
        -1.0 * csr.Laplacian(csr.Graph.from_edges([(0, 1)], n_nodes=4)).on_function()
    with pytest.raises(ValueError, match="given both as similar and as dissimilar"):
        csr.Graph.from_edges([(0, 1), (1, 0)], [1.0, -1.0], n_nodes=4, duplicates="sum")
    with pytest.raises(ValueError, match=r"on_function\(\) is for quadratic penalties"):
        csr.L1().on_function()
    with pytest.raises(ValueError, match="power must be at least 1"):
        csr.Laplacian(csr.Graph.from_edges([(0, 1)]), power=0)
    with pytest.raises(ValueError, match="not defined for a graph with virtual nodes"):
        csr.Laplacian(csr.Graph.from_edges([(0, 1)], n_nodes=2, virtual=[1]), power=2)


def test_one_labelled_point_is_enough_for_regression():
    instance = Instance(16)
    loss = csr.Squared([2.0], rows=[3]) + LAM1 * csr.RKHSNorm()
    problem = csr.Problem(csr.Kernel(instance.gram), loss + LAM2 * csr.Laplacian(instance.graph).on_scores())
    assert problem.solve().objective == pytest.approx(problem.solve("cvxpy").objective, rel=1e-6)


def test_an_edge_both_similar_and_dissimilar_is_two_terms():
    similar, dissimilar = (csr.Graph.from_edges([(0, 1)], [w], n_nodes=4) for w in (1.0, -1.0))
    both = csr.Laplacian(similar).on_scores() + csr.Laplacian(dissimilar).on_scores()
    problem = problem_of(np.eye(4), terms=both)
    expected = 2 * csr.Ridge(weights=[1.0, 1.0, 0.0, 0.0]).on_scores()  # (a - b)^2 + (a + b)^2
    assert problem.solve(tol=1e-9).objective == pytest.approx(problem_of(np.eye(4), terms=expected).solve().objective)


def test_too_little_memory_is_said_before_it_is_used(monkeypatch):
    monkeypatch.setattr("cvxstructreg.runtime.memory.available_memory", lambda: 1e9)
    with pytest.raises(MemoryError, match=r"gram as a dense matrix .* needs 320\.0 GB, but only 1\.0 GB are available"):
        csr.Kernel(sp.eye_array(200_000))
    with pytest.raises(MemoryError, match="the kernel matrix of 200,000 examples needs"):
        WarpedKernel(lambda X, Z: X @ Z.T, csr.Graph.from_edges([(0, 1)]), X=np.zeros((200_000, 1)))
    require_memory(1e9, "a matrix", "nothing to do")
