"""Manifold regularization with mixed graphs: three routes, four losses, three conventions for the intercept."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold_problems import CLARABEL_TIGHT, CONVENTIONS, LAM1, LAM2, LOSSES, TIGHT, Instance, textbook
from sklearn.svm import SVC

import cvxstructreg as csr
from cvxstructreg.solvers.graph_strength import GraphDominatesWarning
from cvxstructreg.warped_kernel import WarpedKernel


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
