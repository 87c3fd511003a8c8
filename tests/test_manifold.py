"""Manifold regularization with mixed graphs: three routes, four losses, three conventions for the intercept."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

import cvxstructreg as csr
from cvxstructreg.forms.composed_forms import PowerForm, PulledForm
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.forms.smoothed_hinge import SmoothedHinge
from cvxstructreg.graphs import NeighborGraph
from cvxstructreg.runtime.memory import require_memory
from cvxstructreg.solvers.graph_strength import GraphDominatesWarning
from cvxstructreg.solvers.kernels import reduced_kernel
from cvxstructreg.solvers.kernels.box_qp import BoxProgram
from cvxstructreg.solvers.kernels.box_qp_by_rows import Decomposition
from cvxstructreg.solvers.kernels.warp import GraphOperator, Warp
from cvxstructreg.warped_kernel import WarpedKernel

LAM1, LAM2 = 0.2, 0.4
LOSSES = {"hinge": csr.Hinge, "squared hinge": csr.SquaredHinge, "squared": csr.Squared, "logistic": csr.Logistic}
# the intercept and what the graph acts on
CONVENTIONS = {"no bias": (False, "on_scores"), "graph on f": (True, "on_scores"), "graph on h": (True, "on_function")}


def mixed_graph(n, edges, rng, share=0.3):
    pairs = {tuple(sorted(map(int, rng.choice(n, 2, replace=False)))) for _ in range(edges)}
    signs = np.where(rng.random(len(pairs)) < share, -1.0, 1.0)
    return csr.Graph.from_edges(sorted(pairs), signs * rng.uniform(0.5, 2.0, len(pairs)), n_nodes=n)


class Instance:
    """Points, a mixed graph, and labels for some of them."""

    def __init__(self, seed, n=24, labels=9, edges=50):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, 3))
        self.gram = np.exp(-((self.X[:, None] - self.X[None]) ** 2).sum(-1) / 2)
        self.rows = rng.choice(n, labels, replace=False)
        self.y = np.where(self.X[self.rows, 0] + 0.3 * rng.normal(size=labels) > 0, 1.0, -1.0)
        self.y[:2] = 1.0, -1.0
        self.graph = mixed_graph(n, edges, rng)
        self.weights = rng.uniform(0.5, 2.0, labels)

    def problem(self, loss, convention, kernel=True, power=1, normalized=False, weighted=False):
        bias, how = CONVENTIONS[convention]
        model = csr.Kernel(self.gram, intercept=bias) if kernel else csr.Linear(self.X, intercept=bias)
        penalty = csr.Laplacian(self.graph, normalized=normalized, power=power)
        data = LOSSES[loss](self.y, rows=self.rows, sample_weight=self.weights if weighted else None)
        return csr.Problem(model, data + LAM1 * csr.RKHSNorm() + LAM2 * getattr(penalty, how)())


def textbook(instance, loss, convention, power=1, normalized=False, weighted=False):
    """The optimum by a CVXPY problem written by hand, from the matrix of the graph."""
    n, s = len(instance.gram), instance.weights if weighted else np.ones(len(instance.y))
    theta, b = cp.Variable(n), cp.Variable()
    bias, how = CONVENTIONS[convention]
    h = instance.gram @ theta
    f = h + b if bias else h
    z, y = f[instance.rows], instance.y
    losses = {
        "hinge": lambda: s @ cp.pos(1 - cp.multiply(y, z)),
        "squared hinge": lambda: s @ cp.square(cp.pos(1 - cp.multiply(y, z))),
        "squared": lambda: 0.5 * s @ cp.square(z - y),
        "logistic": lambda: s @ cp.logistic(-cp.multiply(y, z)),
    }
    L = instance.graph.laplacian(normalized=normalized).toarray()
    M = np.linalg.matrix_power(L, power)
    graph = cp.quad_form(f if how == "on_scores" else h, cp.psd_wrap((M + M.T) / 2))
    norm = cp.quad_form(theta, cp.psd_wrap(instance.gram))
    return cp.Problem(cp.Minimize(losses[loss]() + LAM1 * norm + LAM2 * graph)).solve(solver=cp.CLARABEL)


#: By the strong convexity of lam1 ||h||^2 such a gap keeps the scores within about 5e-6; the routes come much nearer.
TIGHT = 1e-12
CLARABEL_TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}


def primal_route(loss):
    """The large-scale route by name, with options that keep it from handing over to the direct way."""
    return ("augmented_lagrangian", {}) if loss == "hinge" else ("kernel_cg", {"direct": False})


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_all_routes_find_the_same_optimum(loss, convention):
    cases = ((0, 50, {}), (1, 50, {"power": 3, "normalized": True}), (2, 50, {"weighted": True}), (3, 8, {}))
    for seed, edges, options in cases:  # 8 edges are factorised in their own space
        instance = Instance(seed, edges=edges)
        problem = instance.problem(loss, convention, **options)
        expected = textbook(instance, loss, convention, **options)
        name, more = primal_route(loss)
        direct = problem.solve("warped_kernel", tol=TIGHT)
        primal = problem.solve(name, tol=1e-11 if name == "augmented_lagrangian" else TIGHT, **more)
        reference = problem.solve("cvxpy", tol=TIGHT, cvxpy_options=CLARABEL_TIGHT)
        for solution in (direct, primal, reference):
            assert solution.status == "optimal", solution.solver
            assert solution.objective == pytest.approx(expected, rel=1e-6), solution.solver
            assert solution.objective == pytest.approx(direct.objective, rel=1e-11), solution.solver
            assert np.allclose(solution.scores, direct.scores, rtol=0.0, atol=1e-6), solution.solver
        assert problem.solve().solver in {"warped_kernel", name}


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_linear_kernel_is_the_linear_model(loss, convention):
    instance = Instance(3)
    linear = instance.problem(loss, convention, kernel=False)
    instance.gram = instance.X @ instance.X.T
    kernel = instance.problem(loss, convention)
    name = "augmented_lagrangian" if loss == "hinge" else "newton"
    direct = kernel.solve("warped_kernel", tol=TIGHT)
    for problem, options in (
        (linear, {"solver": name}),
        (linear, {"solver": "cvxpy", "cvxpy_options": CLARABEL_TIGHT}),
        (kernel, {"solver": primal_route(loss)[0]}),
    ):
        # for the multipliers a kernel of rank 3 leaves more round-off than others
        found = problem.solve(tol=1e-11 if loss == "hinge" else 1e-12, **options)
        assert found.status == "optimal", found.solver
        assert found.objective == pytest.approx(direct.objective, rel=1e-11), found.solver
        assert np.allclose(found.scores, direct.scores, rtol=0.0, atol=1e-6), found.solver


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_sparse_data_take_the_linear_route(convention):
    instance = Instance(4)
    dense = instance.problem("hinge", convention, kernel=False).solve("augmented_lagrangian", tol=1e-8)
    instance.X = sp.csr_array(instance.X)
    solution = instance.problem("hinge", convention, kernel=False).solve(tol=1e-8)
    assert solution.solver == "augmented_lagrangian"
    assert solution.objective == pytest.approx(dense.objective, rel=1e-7)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_cvxpy_is_given_one_dense_form_and_the_labelled_rows(convention):
    instance = Instance(2)
    problem = instance.problem("hinge", convention)
    program = problem.to_cvxpy()
    forms = [atom for atom in (program.objective.expr, *program.objective.expr.args) if isinstance(atom, cp.QuadForm)]
    assert len(forms) == 1
    data, *_ = program.get_problem_data("CLARABEL")
    copied = len(instance.gram) + 1 if convention == "graph on f" else 0  # (theta, b)
    assert data["A"].shape[0] == 2 * len(instance.y) + copied
    program.solve(solver="CLARABEL")
    assert problem.value(*problem.weights_of(program)) == pytest.approx(problem.solve().objective, rel=1e-6)


def test_hinge_with_the_graph_on_h_is_a_machine_with_the_warped_kernel():
    instance = Instance(5)
    solution = instance.problem("hinge", "graph on h").solve(tol=1e-10)
    warped = WarpedKernel(instance.gram, instance.graph, LAM2 / LAM1)
    machine = SVC(C=1 / (2 * LAM1), kernel="precomputed", tol=1e-8)
    machine.fit(warped.gram(instance.rows), instance.y)
    scores = machine.decision_function(warped.between(instance.gram, instance.rows))
    assert np.allclose(solution.scores, scores, atol=1e-6)
    assert solution.intercept == pytest.approx(machine.intercept_[0], abs=1e-6)


def test_least_squares_without_bias_have_a_closed_form():
    instance = Instance(6)
    # Squared has the factor 1/2, so that twice its strengths are those of the formula
    solution = instance.problem("squared", "no bias").solve("kernel_cg", tol=1e-12)
    K = WarpedKernel(instance.gram, instance.graph, LAM2 / LAM1)
    a = np.linalg.solve(K.gram(instance.rows) + 2 * LAM1 * np.eye(len(instance.y)), instance.y)
    assert np.allclose(solution.scores, K.between(instance.gram, instance.rows) @ a, atol=1e-6)


def test_a_bias_with_the_graph_on_f_is_a_machine_without_bias():
    instance = Instance(7)
    solution = instance.problem("squared", "graph on f").solve("kernel_cg", tol=1e-12)
    K = WarpedKernel(instance.gram, instance.graph, LAM2 / LAM1, on_scores=True)
    a = np.linalg.solve(K.gram(instance.rows) + 2 * LAM1 * np.eye(len(instance.y)), instance.y)
    assert np.allclose(solution.scores, K.between(instance.gram, instance.rows) @ a, atol=1e-6)


def test_the_conventions_differ_with_dissimilarity_edges_and_only_then():
    instance = Instance(8)
    on_f, on_h = (instance.problem("hinge", name).solve(tol=1e-9) for name in ("graph on f", "graph on h"))
    assert np.abs(on_f.scores - on_h.scores).max() > 1e-2
    assert abs(on_f.objective - on_h.objective) > 1e-2
    instance.graph = instance.graph.similarity()
    on_f, on_h = (instance.problem("hinge", name).solve(tol=1e-9) for name in ("graph on f", "graph on h"))
    assert on_f.objective == pytest.approx(on_h.objective, rel=1e-8)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(list(LOSSES)),
    convention=st.sampled_from(list(CONVENTIONS)),
    edges=st.integers(1, 60),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_no_certificate_claims_too_much(seed, loss, convention, edges, size):
    instance = Instance(seed, n=14, labels=6, edges=edges)
    instance.gram = size * instance.gram
    problem = instance.problem(loss, convention)
    best = problem.solve("warped_kernel", tol=1e-10)
    assert best.certificate.gap >= 0
    assert best.certificate.relative_gap <= 1e-9
    rough = problem.solve("augmented_lagrangian" if loss == "hinge" else "kernel_cg", tol=1e-3)
    assert all(record.certificate.gap >= 0 for record in (*best.history, *rough.history, rough))
    assert rough.certificate.lower_bound <= best.objective * (1 + 1e-9)
    assert rough.objective >= best.certificate.lower_bound * (1 - 1e-9)


def test_conjugate_gradients_hand_over_to_the_direct_way_when_the_graph_is_strong():
    instance = Instance(9, n=150, labels=20, edges=400)
    problem = csr.Problem(
        csr.Kernel(instance.gram),
        csr.Squared(instance.y, rows=instance.rows)
        + 1e-3 * csr.RKHSNorm()
        + 1e3 * csr.Laplacian(instance.graph).on_scores(),
    )
    patient = problem.solve("kernel_cg", direct=False, tol=1e-7)
    assert problem.solve("kernel_cg", tol=1e-7).objective == pytest.approx(patient.objective, rel=1e-6)


def test_several_outputs_by_conjugate_gradients():
    instance = Instance(10)
    targets = np.column_stack([instance.y, -instance.y, instance.weights])
    terms = csr.Squared(targets, rows=instance.rows) + LAM1 * csr.RKHSNorm()
    problem = csr.Problem(csr.Kernel(instance.gram), terms + LAM2 * csr.Laplacian(instance.graph).on_scores())
    solution = problem.solve(tol=1e-9)
    assert solution.solver == "kernel_cg"
    assert solution.objective == pytest.approx(problem.solve("cvxpy").objective, rel=1e-7)


def drowned(loss, model="kernel", how="on_function", strength=1e9):
    instance = Instance(11)
    models = {
        "kernel": csr.Kernel(instance.gram),
        "dense": csr.Linear(instance.X),
        "sparse": csr.Linear(sp.csr_array(instance.X)),
    }
    labels = instance.y if loss is not csr.MulticlassHinge else np.arange(len(instance.y)) % 3
    penalty = csr.RKHSNorm() + strength * getattr(csr.Laplacian(instance.graph), how)()
    return csr.Problem(models[model], loss(labels, rows=instance.rows) + penalty)


@pytest.mark.parametrize("how", ["on_function", "on_scores"])
@pytest.mark.parametrize(
    "loss, model, solver",
    [
        (csr.Hinge, "kernel", "warped_kernel"),
        (csr.Squared, "kernel", "kernel_cg"),
        (csr.Hinge, "kernel", "augmented_lagrangian"),
        (csr.MulticlassHinge, "kernel", "douglas_rachford"),
        (csr.Squared, "kernel", "cvxpy"),
        (csr.Hinge, "dense", "augmented_lagrangian"),
        (csr.SquaredHinge, "sparse", "newton"),
        (csr.Logistic, "dense", "lbfgs"),
    ],
)
@pytest.mark.filterwarnings("ignore::cvxstructreg.InaccurateWarning")
def test_a_graph_that_drowns_everything_is_warned_of_whatever_the_solver(loss, model, solver, how):
    with pytest.warns(GraphDominatesWarning, match=r"Lower the strength of the Laplacian"):
        drowned(loss, model, how).solve(solver, max_iter=2)


@pytest.mark.parametrize("model", ["kernel", "dense", "sparse"])
def test_a_graph_that_is_only_strong_is_not_warned_of(model):
    drowned(csr.Squared, model, strength=1e5).solve(tol=1e-3)


# graphs as operators


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


# the quadratic programs of the hinge loss


def programs():
    rng = np.random.default_rng(0)
    for n in (5, 40):
        A = rng.normal(size=(n, n + 2))
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        C = rng.uniform(0.1, 1.0, n)
        yield BoxProgram(A @ A.T / n, y, C, None, 0.0)
        yield BoxProgram(A @ A.T / n, y, C, y, 0.0)
        yield BoxProgram(A @ A.T / n, y, C, y * rng.uniform(0.2, 1.0, n), 0.3)


@pytest.mark.parametrize("program", list(programs()))
def test_interior_point_and_decomposition_agree(program):
    inner, b = program.interior_point(1e-12)
    assert program.gap(inner, b) <= 1e-8
    steps = Decomposition(program)
    outer, c = program.polish(*steps.run(1e-4), goal=1e-13)
    assert program.gap(outer, c) <= 1e-9
    assert np.allclose(inner, outer, atol=1e-5)
    assert np.all((outer >= 0) & (outer <= program.C))


def test_polishing_rows_without_kernel_does_not_overflow():
    K = np.diag([0.0, 1.0, 1.0, 1.0])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    program = BoxProgram(K, y, np.full(4, 25.0), y, 0.0)
    a, b = program.polish(np.full(4, 12.5), -9.0, goal=1e-9)
    assert program.gap(a, b) <= program.gap(np.full(4, 12.5), -9.0)


def test_compiled_steps_are_those_of_their_plain_twins():
    from cvxstructreg.solvers.kernels import compiled_smo

    for program in programs():
        for name, arguments in (("pairs", (program.y,)), ("singles", (program.y,))):
            kernel = getattr(compiled_smo, name)
            results = []
            for run in (kernel, kernel.py_func):
                a, slope = np.zeros(len(program.C)), np.full(len(program.C), -1.0)
                steps = run(program.K, program.C, *arguments, a, slope, 1e-3, 500)
                results.append((steps, a, slope))
            assert results[0][0] == results[1][0]
            assert np.allclose(results[0][1], results[1][1], atol=1e-9)
            assert np.allclose(results[0][2], results[1][2], atol=1e-9)


def test_many_labels_go_to_libsvm_and_are_polished(monkeypatch):
    monkeypatch.setattr("cvxstructreg.solvers.kernels.box_qp_by_rows.LIBSVM_ROWS", 20)
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warped_kernel.COMPILE_FROM", 10)
    rng = np.random.default_rng(14)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, 1, -1)
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    weights = rng.integers(0, 3, size=80).astype(float)
    problem = csr.Problem(csr.Kernel(gram), csr.Hinge(y, sample_weight=weights) + 0.1 * csr.RKHSNorm())
    solution = problem.solve("warped_kernel", tol=1e-9)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(problem.solve("cvxpy").objective, rel=1e-7)


def test_the_smoothed_hinge_has_the_derivatives_it_says():
    rng = np.random.default_rng(15)
    loss = SmoothedHinge(np.array([1.0, -1.0, 1.0]), np.array([1.0, 2.0, 0.5]), None)
    loss.recentre(np.array([[0.2], [1.0], [0.4]]), 3.0)
    for _ in range(20):
        z, p = rng.normal(size=(3, 1)), rng.normal(size=(3, 1))
        slope = (loss.value(z + 1e-6 * p) - loss.value(z - 1e-6 * p)) / 2e-6
        assert slope == pytest.approx(np.sum(loss.grad(z) * p), abs=1e-6)
        bent = (loss.grad(z + 1e-6 * p) - loss.grad(z - 1e-6 * p)) / 2e-6
        assert np.allclose(bent, loss.hessp(z, p), atol=1e-5)


# bad input


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
