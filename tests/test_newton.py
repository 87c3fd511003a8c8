"""Truncated Newton and L-BFGS: against the reference, and how many steps they take."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from newton_problems import SMOOTH, SOLVERS, agrees_with_reference, big_network, text_like_problem

import cvxstructreg as csr
from cvxstructreg.certificates import quadratic_conjugate
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.smooth import matrix_products, preconditioners, truncated_newton
from cvxstructreg.solvers.smooth.smooth_objective import SmoothObjective, Span
from random_problems import kernel_problem, linear_problem, random_graph


@pytest.fixture
def compiled(monkeypatch):
    """Small problems take the compiled path and triangular coordinates too."""
    monkeypatch.setattr(matrix_products, "COMPILE_FROM", 0)
    monkeypatch.setattr(preconditioners, "MOST_REST", np.inf)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("penalty", ["ridge", "network"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_linear_models(loss, penalty, sparse, solver):
    agrees_with_reference(linear_problem(7, loss, penalty, sparse, sparse), solver)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", SMOOTH)
def test_compiled_products(loss, seed, compiled):
    agrees_with_reference(linear_problem(seed, loss, "network", True, True), "newton")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", SMOOTH)
def test_kernel_models_with_a_graph_and_pairs_on_the_scores(loss, intercept, solver):
    agrees_with_reference(kernel_problem(5, loss, intercept, 2, 2), solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_virtual_nodes(solver, compiled):
    rng = np.random.default_rng(1)
    means = csr.Graph.from_edges([(i, 6 + i % 2) for i in range(6)], n_nodes=8, virtual=[6, 7], directed=True)
    network = csr.FeatureNetwork(means)
    y = rng.permutation(np.arange(20) % 2)
    other = csr.FeatureNetwork(random_graph(rng, 6, True))
    objective = csr.Logistic(y) + 5.0 * network + 0.5 * other + 0.1 * csr.Ridge()
    agrees_with_reference(csr.Problem(csr.Linear(rng.normal(size=(20, 6))), objective), solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_several_quadratic_terms_of_every_kind(solver, compiled):
    rng = np.random.default_rng(2)
    N = rng.normal(size=(3, 5))
    penalties = (
        0.3 * csr.Quadratic(matrix=N.T @ N)
        + 0.2 * csr.Quadratic(factor=sp.csr_array(np.round(N)))
        + 0.4 * csr.Laplacian(random_graph(rng, 5, True), normalized=True)
        + 0.5 * csr.FeatureNetwork(random_graph(rng, 5, True))
        + 0.1 * csr.Ridge(weights=[1.0, 2.0, 0.5, 1.0, 1.0])
        + 0.2 * csr.Laplacian(random_graph(rng, 15, False)).on_scores()
    )
    X = sp.csr_array(rng.normal(size=(15, 5)) * (rng.random((15, 5)) < 0.6))
    agrees_with_reference(csr.Problem(csr.Linear(X), csr.Multinomial(np.arange(15) % 3) + penalties), solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_directions_without_penalty(solver):
    rng = np.random.default_rng(3)
    path = csr.Graph.from_edges([(0, 1), (1, 2)], n_nodes=4)
    y = rng.permutation(np.arange(30) % 2)
    problem = csr.Problem(csr.Linear(rng.normal(size=(30, 4))), csr.Logistic(y) + 2.0 * csr.Laplacian(path))
    agrees_with_reference(problem, solver)


def test_a_warm_start_at_the_optimum_is_optimal_at_once():
    problem = text_like_problem(1.0, 0.1)
    first = problem.solve("newton")
    again = problem.solve("newton", warm_start=first)
    assert again.n_iter == 1
    assert again.objective <= first.objective * (1 + 1e-12)


def test_a_path_over_the_strength_of_one_network(compiled):
    """What is kept of a network is scaled as its strength changes."""
    rng = np.random.default_rng(8)
    network = csr.FeatureNetwork(random_graph(rng, 6, True))
    X = sp.csr_array(rng.normal(size=(20, 6)))
    for strength in (1.0, 100.0):
        objective = csr.Logistic(np.arange(20) % 2) + strength * network + 0.1 * csr.Ridge()
        agrees_with_reference(csr.Problem(csr.Linear(X), objective), "newton")


def conjugate_gradient_steps(monkeypatch, problem):
    """Steps of each Newton system until the solver believes the tolerance is reached."""
    steps, solve = [], truncated_newton.NewtonStep.solve

    def counting(self, *arguments):
        step = solve(self, *arguments)
        steps.append(self.steps)
        return step

    monkeypatch.setattr(truncated_newton.NewtonStep, "solve", counting)
    solution = problem.solve("newton")
    assert solution.status == "optimal"
    return steps


@pytest.mark.parametrize(("ratio", "most"), [(10, 90), (1e3, 140), (1e4, 200)])
def test_steps_on_a_network(ratio, most, monkeypatch):
    monkeypatch.setattr(matrix_products, "COMPILE_FROM", 0)
    steps = conjugate_gradient_steps(monkeypatch, text_like_problem(0.1 * ratio, 0.1))
    assert len(steps) <= 15
    assert sum(steps) <= most


def test_the_triangle_beats_the_diagonal(monkeypatch, compiled):
    problem = text_like_problem(1e3, 0.1)
    triangle = sum(conjugate_gradient_steps(monkeypatch, problem))
    monkeypatch.setattr(preconditioners, "MOST_REST", 0.0)
    assert 2 * triangle <= sum(conjugate_gradient_steps(monkeypatch, problem))


def test_refusals_are_in_words():
    X, y = np.eye(4), [0, 1, 0, 1]
    hinge = csr.Problem(csr.Linear(X), csr.Hinge(y) + csr.Ridge())
    lasso = csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.L1())
    groups = csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.GroupLasso(csr.Groups([[0, 1], [2, 3]])) + csr.Ridge())
    for solver in SOLVERS:
        assert "second derivatives" in registry.refusals(hinge)[solver]
        assert "no gradient" in registry.refusals(lasso)[solver]
        assert "GroupLasso is not a quadratic" in registry.refusals(groups)[solver]


def test_auto_takes_newton_for_smooth_problems():
    assert text_like_problem(1.0, 0.1).solve().solver == "newton"


def test_the_paper_version_of_lbfgs_takes_more_steps():
    problem = text_like_problem(10.0, 0.1)
    scaled = problem.solve("lbfgs", tol=1e-6)
    plain = problem.solve("lbfgs", tol=1e-6, scaled=False, memory=5)
    assert scaled.status == plain.status == "optimal"
    assert scaled.objective == pytest.approx(plain.objective, rel=2e-6)
    with pytest.raises(ValueError, match="memory"):
        problem.solve("lbfgs", memory=0)


def test_iterates_never_get_worse():
    problem = text_like_problem(10.0, 0.1)
    start = Iterate(np.zeros((3000, 1)), np.zeros(1))
    values = []
    for iterate in truncated_newton.run(problem, start, 1e-12):
        values.append(problem.value_at(iterate.theta, iterate.b))
        if iterate.exhausted or len(values) > 50:
            break
    assert all(after <= before * (1 + 1e-14) for before, after in itertools.pairwise(values))


@pytest.mark.parametrize("steps", [0, 1, 6])
def test_a_bound_of_the_conjugate_of_a_graph_and_a_ridge(steps, monkeypatch):
    """Never below the truth, and with some steps much nearer to it than the ridge alone."""
    monkeypatch.setattr(quadratic_conjugate, "STEPS", steps)
    rng = np.random.default_rng(15)
    N = np.eye(30) - big_network(rng, 30, 3).transition().toarray()
    for strength in (0.0, 1.0, 30.0):
        ridge = rng.uniform(0.1, 0.2, size=30)
        M = strength * N.T @ N + np.diag(ridge)
        for u in (rng.normal(size=(30, 2)), M @ rng.normal(size=(30, 1)), np.zeros((30, 1))):
            exact = 0.25 * np.sum(u * np.linalg.solve(M, u))
            found = quadratic_conjugate.conjugate_bound(lambda w, M=M: M @ w, M.diagonal(), ridge, u)
            simple = 0.25 * np.sum(u**2 / ridge[:, None])
            assert exact * (1 - 1e-12) <= found <= simple * (1 + 1e-12)
            if steps == 6 and strength == 1.0:
                assert found <= 3.0 * exact


def test_an_early_end_with_a_linearised_dual_point_is_proved(monkeypatch):
    """The last Newton step hands over a dual point of its own, which proves more than the gradient at its end."""
    problem, seen = text_like_problem(1.0, 0.1, seed=2), []
    run = truncated_newton.run

    def watched(*arguments, **options):
        for iterate in run(*arguments, **options):
            seen.append(iterate)
            yield iterate

    monkeypatch.setattr(truncated_newton.SOLVER, "run", watched)
    solution = problem.solve("newton")
    last = seen[-1]
    assert solution.status == "optimal"
    assert len(last.dual) == 1
    with_dual = csr.certify(problem, last.theta[:, 0], last.b[0], dual=last.dual, search=False)
    without = csr.certify(problem, last.theta[:, 0], last.b[0], search=False)
    assert with_dual.relative_gap <= 1e-6
    assert with_dual.lower_bound > without.lower_bound
    assert with_dual.lower_bound <= problem.solve("newton", tol=1e-10).objective * (1 + 1e-12)


def test_a_direction_whose_square_overflows_is_no_step():
    """No warning, and the search stays where it is."""
    rng = np.random.default_rng(3)
    problem = csr.Problem(csr.Linear(rng.normal(size=(6, 2))), csr.Logistic([0, 1, 0, 1, 1, 0]) + csr.Ridge())
    objective = SmoothObjective(problem)
    at = objective.state(np.ones((2, 1)), np.zeros(1))
    far = objective.state(np.full((2, 1), 1e200), np.zeros(1))
    span = Span(objective, at, objective.value(at), [far])
    assert not span.minimise().theta.any() and span.best == objective.value(at)
