"""Graphs as operators on a kernel: powers, solves in both precisions, and compiled products."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from manifold_problems import CONVENTIONS, LAM1, LOSSES, Instance, mixed_graph

import cvxstructreg as csr
from cvxstructreg.forms.composed_forms import PowerForm, PulledForm
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.graphs import NeighborGraph
from cvxstructreg.solvers.kernels import reduced_kernel
from cvxstructreg.solvers.kernels.warp import GraphOperator, Warp


@pytest.mark.parametrize("power", [2, 3, 5])
def test_powers_are_powers(power):
    graph = mixed_graph(12, 25, np.random.default_rng(0))
    L = graph.laplacian(normalized=True)
    form = PowerForm(L, graph.incidence(normalized=True), power)
    M = np.linalg.matrix_power(L.toarray(), power)
    w = np.random.default_rng(1).normal(size=(12, 2))
    assert np.allclose(form.apply(w), M @ w)
    assert form.value(w) == pytest.approx(np.sum(w * (M @ w)))
    assert np.allclose(form.main_diagonal, np.diag(M))
    assert np.allclose(form.matrix if not sp.issparse(form.matrix) else form.matrix.toarray(), M)
    assert form.largest_eigenvalue >= np.linalg.eigvalsh(M)[-1] * (1 - 1e-12)
    assert np.allclose(form.prox(w, 0.3), np.linalg.solve(np.eye(12) + 0.6 * M, w))


def test_forms_of_images():
    rng = np.random.default_rng(2)
    graph, A, w = mixed_graph(12, 25, rng), rng.normal(size=(12, 4)), rng.normal(size=(4, 1))
    M = A.T @ graph.laplacian() @ A
    form = PulledForm(QuadraticForm(factor=graph.incidence()), A)
    assert np.allclose(form.apply(w), M @ w)
    assert np.allclose(form.matrix, M)
    assert form.largest_eigenvalue >= np.linalg.eigvalsh(M)[-1]


@pytest.mark.parametrize("edges", [5, 20, 200])
def test_every_way_to_solve_with_the_graph(edges):
    # few edges: in their own space; edges on some nodes only; on all nodes
    instance = Instance(12, n=40, edges=edges)
    form = QuadraticForm(factor=instance.graph.incidence())
    operator = GraphOperator([(3.0, form)], 40)
    Y = np.random.default_rng(0).normal(size=(40, 6))
    exact = np.linalg.solve(np.eye(40) + 3.0 * instance.graph.laplacian() @ instance.gram, Y)
    assert np.allclose(Warp(instance.gram, operator).solve(Y), exact, atol=1e-10)
    trace = np.trace(3.0 * instance.graph.laplacian() @ instance.gram)
    assert operator.trace_with(instance.gram) == pytest.approx(trace)
    assert operator.trace_bound(instance.gram) >= trace


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compiled_product_is_that_of_its_plain_twin(dtype, monkeypatch):
    from cvxstructreg.solvers.kernels import compiled_warp

    instance = Instance(18, n=30, edges=90)
    M, V = instance.graph.laplacian(), instance.gram.astype(dtype)
    results = []
    for run in (compiled_warp.one_plus_product, compiled_warp.one_plus_product.py_func):
        monkeypatch.setattr(compiled_warp, "one_plus_product", run)
        results.append(compiled_warp.one_plus(M, V))
    accuracy = 10 * np.finfo(dtype).eps * np.abs(M).sum(axis=1).max()
    assert results[0].dtype == dtype
    assert np.allclose(*results, rtol=0.0, atol=accuracy)
    assert np.allclose(results[0], np.eye(30) + M @ V.astype(float), rtol=0.0, atol=accuracy)
    operator = GraphOperator([(1.0, QuadraticForm(factor=instance.graph.incidence()))], 30)
    plain = operator.one_plus(V)
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warp.COMPILE_FROM", 1)
    assert np.allclose(operator.one_plus(V), plain, rtol=0.0, atol=accuracy)


def test_single_precision_factors_are_refined(monkeypatch):
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warp.SINGLE_FROM", 1)
    instance = Instance(13, n=60, edges=200)
    for strength in (1.0, 1e7):  # the second one is too much for single precision
        operator = GraphOperator([(strength, QuadraticForm(factor=instance.graph.incidence()))], 60)
        Y = np.eye(60)[:, :5]
        found = instance.gram @ Warp(instance.gram, operator).solve(Y)
        exact = np.linalg.solve(np.eye(60) + strength * instance.graph.laplacian() @ instance.gram, Y)
        assert np.allclose(found, instance.gram @ exact, atol=1e-9)


def test_a_residual_that_is_foreseen_is_one(monkeypatch):
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warp.SINGLE_FROM", 1)
    instance = Instance(13, n=60, edges=200)
    for strength in (0.1, 1.0, 1e3):
        operator = GraphOperator([(strength, QuadraticForm(factor=instance.graph.incidence()))], 60)
        Y = np.eye(60)[:, :5]
        for accuracy in (1e-4, 1e-8, 0.0):
            warp = Warp(instance.gram, operator, accuracy)
            X = warp.solve(Y)
            left = Y - X - strength * (instance.graph.laplacian() @ (instance.gram @ X))
            assert np.linalg.norm(left, axis=0).max() <= max(accuracy, 1e-11)
            assert warp.is_rough == (accuracy > 1e-11)


@pytest.mark.parametrize("nodes", [60, 80])  # all of them, or some without edges
def test_a_solution_in_single_precision_is_improved(nodes, monkeypatch):
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warp.ROUGH_FROM", 1)
    instance = Instance(13, n=60, edges=200)
    gram = np.exp(-((np.arange(nodes)[:, None] - np.arange(nodes)) ** 2) / 8.0)
    N = sp.csr_array(instance.graph.incidence())
    N = sp.csr_array((N.data, N.indices, N.indptr), shape=(N.shape[0], nodes))
    for strength in (1.0, 1e7):  # the second one is too much for single precision
        operator = GraphOperator([(strength, QuadraticForm(factor=N))], nodes)
        Y = np.eye(nodes)[:, :1] + 0.5
        exact = gram @ np.linalg.solve(np.eye(nodes) + strength * (N.T @ N).toarray() @ gram, Y)
        warp = Warp(gram, operator, 1e-9)
        assert warp.can_be_rough
        rough = warp.rough(Y)
        error = np.abs(gram @ rough - exact).max()
        assert error > 1e-9
        assert error < 1e-4 or strength > 1.0
        assert np.allclose(gram @ warp.improved(rough, Y), exact, rtol=0.0, atol=1e-7)
        assert np.allclose(gram @ warp.improved(np.zeros_like(Y), Y), exact, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("strength", [0.1, 10.0, 1e5, 1e9])
def test_a_machine_on_a_rough_kernel_is_corrected(convention, strength, monkeypatch):
    instance = Instance(19, n=60, labels=30, edges=200)
    bias, how = CONVENTIONS[convention]
    graph = getattr(csr.Laplacian(instance.graph), how)()
    loss = csr.Hinge(instance.y, rows=instance.rows, sample_weight=instance.weights * (np.arange(30) > 0))
    problem = csr.Problem(csr.Kernel(instance.gram, bias), loss + LAM1 * csr.RKHSNorm() + strength * LAM1 * graph)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of strong graphs
        finest = 1e-9 if strength < 1e9 else 1e-6  # round-off in a graph as strong as this allows no proof of more
        exact = problem.solve("warped_kernel", tol=finest)
        monkeypatch.setattr("cvxstructreg.solvers.kernels.warp.ROUGH_FROM", 1)
        for tol in (1e-4, 1e-6, finest):
            rough = problem.solve("warped_kernel", tol=tol)
            assert rough.status == "optimal" == exact.status
            assert abs(rough.objective - exact.objective) <= rough.certificate.gap + exact.certificate.gap + 1e-11
            if tol < 1e-5:
                assert np.allclose(rough.scores, exact.scores, rtol=0.0, atol=1e-6)
            assert rough.n_iter == 1 or strength > 100.0 or tol < 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_powers_of_graphs_that_single_precision_cannot_hold(seed, monkeypatch):
    """The rough kernel of the labelled rows may be indefinite then, though gram is not: so it is with seed 4."""
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warp.ROUGH_FROM", 1)
    rng, y = np.random.default_rng(seed), np.arange(60) % 2
    X = rng.normal(size=(60, 20))
    X[:, :2] += 1.5 * (2 * y - 1)[:, None]
    near = NeighborGraph(20, weights="heat").fit(X).graph_
    graph = csr.Laplacian(near, normalized=True, power=5).on_function()
    loss = csr.Hinge(y[:20], rows=np.arange(20))
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1) / 612.5)
    problem = csr.Problem(csr.Kernel(gram), loss + 1e-6 * csr.RKHSNorm() + 100.0 * graph)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of strong graphs
        rough = problem.solve("warped_kernel")
        monkeypatch.setattr("cvxstructreg.solvers.kernels.warp.ROUGH_FROM", 1000)
        exact = problem.solve("warped_kernel")
    assert rough.status == exact.status == "optimal"
    assert abs(rough.objective - exact.objective) <= rough.certificate.gap + exact.certificate.gap + 1e-11


def test_a_rough_kernel_is_shifted_by_no_more_than_round_off():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    for smallest, kept in ((1e-3, True), (-1e-8, True), (-1e-3, False)):
        Q = (basis * [1.0, 0.5, 0.2, 0.1, smallest]) @ basis.T
        found = reduced_kernel._shifted((Q + Q.T) / 2)
        assert (found is not None) == kept
        if found is not None:
            assert np.linalg.eigvalsh(found)[0] > 0
            assert np.abs(found - Q).max() <= (0.0 if smallest > 0 else 1e-5) + 1e-15
    assert reduced_kernel._shifted(-np.eye(3)) is None


def test_the_compiled_matrix_of_edges_is_the_product(monkeypatch):
    from cvxstructreg.solvers.kernels import compiled_warp

    N = sp.csr_array(Instance(20, n=30, edges=90).graph.incidence())
    N = sp.csr_array(sp.vstack([N, 0.5 * N[:7]]))  # edges twice
    N = sp.csr_array((N.data, N.indices, N.indptr), shape=(N.shape[0], 35))  # and nodes without
    results = []
    for run in (compiled_warp.edge_matrix, compiled_warp.edge_matrix.py_func):
        monkeypatch.setattr(compiled_warp, "edge_matrix", run)
        results.append(compiled_warp.of_edges(N, 3.0))
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(results[0], name), getattr(results[1], name))
    assert np.allclose(results[0].toarray(), 3.0 * (N.T @ N).toarray(), rtol=0.0, atol=1e-12)
    sums = []
    for rows in (500, 1):
        monkeypatch.setattr("cvxstructreg.solvers.kernels.warp.COMPILE_FROM", rows)
        forms = [(3.0, QuadraticForm(factor=N)), (2.0, QuadraticForm(matrix=sp.eye_array(35, format="csr")))]
        sums.append(GraphOperator(forms, 35).matrix.toarray())
        touched = GraphOperator(forms[:1], 35).touched
        assert touched.tolist() == np.flatnonzero(abs(N).sum(axis=0)).tolist()
    assert np.allclose(*sums, rtol=0.0, atol=1e-12)


def test_the_direct_way_goes_on_where_a_rough_kernel_was_not_enough(monkeypatch):
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warp.SINGLE_FROM", 1)
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warped_kernel.RESIDUAL", 1e9)
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warped_kernel.MOST_RESIDUAL", 0.1)
    instance = Instance(17, n=60, edges=200)
    solutions = [instance.problem(loss, "graph on f").solve("warped_kernel", tol=1e-11) for loss in LOSSES]
    assert {solution.status for solution in solutions} == {"optimal"}
    assert max(solution.n_iter for solution in solutions) > 1
