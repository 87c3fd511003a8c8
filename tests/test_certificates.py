"""Certificates: valid at every point, tight at the optimum, and honest about their kind."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import spsolve

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.penalties.blocks import BlockNorms
from random_problems import LOSSES, PENALTIES, kernel_problem, linear_problem, problems


def reference(problem):
    """The optimum by CVXPY, with the certificate it must have."""
    solution = problem.solve("cvxpy", tol=1e-5)
    assert solution.status == "optimal"
    return solution


@settings(max_examples=60, deadline=None)
@given(problems, st.integers(0, 1000), st.sampled_from([0.0, 1e-6, 1e-2, 1.0]))
@example(linear_problem(115, "SquaredHinge", "groups", False, False), 1, 1e-6)  # a dual norm above by round-off
def test_the_bound_is_valid_at_any_point(problem, seed, distance):
    rng = np.random.default_rng(seed)
    optimum = reference(problem)
    theta, b = problem.shaped(optimum.coef, optimum.intercept)
    theta = theta + distance * rng.normal(size=theta.shape)
    if problem.normal_form.separable is not None:
        theta = np.clip(theta, problem.normal_form.separable.lower, problem.normal_form.separable.upper)
    if problem.model.intercept:
        b = b + distance * rng.normal(size=b.shape)
    for dual in ({}, optimum.dual):
        certificate = certify_point(problem, theta, b, dual)
        assert certificate.kind == "duality_gap"
        assert certificate.gap >= 0
        slack = 1e-9 * max(1.0, abs(optimum.objective))
        assert certificate.lower_bound <= optimum.objective + slack


@settings(max_examples=40, deadline=None)
@given(problems)
def test_certify_is_tight_at_the_optimum(problem):
    optimum = reference(problem)
    certificate = csr.certify(problem, optimum.coef, optimum.intercept)
    assert certificate.kind == "duality_gap"
    assert 0 <= certificate.relative_gap <= 1e-5


@settings(max_examples=20, deadline=None)
@given(problems)
def test_certify_measures_the_distance_of_a_bad_point(problem):
    optimum = reference(problem)
    zero = np.zeros_like(optimum.coef)
    certificate = csr.certify(problem, zero)
    distance = problem.value(zero) - optimum.objective
    assert certificate.gap == pytest.approx(distance, rel=1e-3, abs=2e-5 * optimum.objective + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", PENALTIES)
def test_every_loss_with_every_penalty_is_certified(loss, name):
    optimum = reference(linear_problem(7, loss, name, True, False))
    assert optimum.certificate.kind == "duality_gap"
    assert 0 <= optimum.certificate.relative_gap <= 1e-5


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_with_pairs_on_a_kernel_is_certified(loss, intercept):
    for power in (1, 2):
        optimum = reference(kernel_problem(3, loss, intercept, 2, power))
        assert 0 <= optimum.certificate.relative_gap <= 1e-5


def test_an_unpenalised_weight_is_minimised_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = rng.integers(0, 2, size=30)
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + 1.0 * csr.L1(weights=[1.0, 0.0, 2.0, 0.0]))
    for solver in ("fista", "admm", "cvxpy"):
        solution = problem.solve(solver)
        assert solution.status == "optimal"
        assert solution.certificate.kind == "duality_gap"


def test_a_singular_quadratic_penalty_is_certified():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 5)), rng.integers(0, 2, size=40)
    graph = csr.Graph.from_edges([(0, 1), (1, 2)], n_nodes=5)
    solution = csr.Problem(csr.Linear(X), csr.Logistic(y) + 2.0 * csr.Laplacian(graph)).solve("fista")
    assert solution.certificate.kind == "duality_gap"
    assert solution.status == "optimal"


class LogCosh(Atom):
    """sum log cosh w_j: convex, smooth, without any closed form here."""

    def expr(self, z):
        """The definition."""
        import cvxpy as cp

        return cp.sum(cp.logistic(2 * z) - z - np.log(2))


def test_without_conjugates_the_certificate_says_so():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 2, size=30)
    strongly = csr.Problem(csr.Linear(X), csr.Logistic(y) + LogCosh() + 0.5 * csr.Ridge())
    solution = strongly.solve()
    assert (solution.solver, solution.certificate.kind) == ("cvxpy", "strong_convexity")
    assert 0 <= solution.certificate.relative_gap <= 1e-6
    worse = certify_point(strongly, *strongly.shaped(solution.coef + 0.1, solution.intercept))
    assert worse.gap >= strongly.value(solution.coef + 0.1, solution.intercept) - solution.objective
    merely = csr.Problem(csr.Linear(X), csr.Logistic(y) + LogCosh())
    solution = merely.solve(tol=1e-5)
    assert (solution.status, solution.certificate.kind) == ("stationary", "kkt")
    assert np.isnan(solution.certificate.gap)
    worse = certify_point(merely, *merely.shaped(solution.coef + 0.1, solution.intercept))
    assert worse.residual > 1e-2


def test_an_infeasible_point_has_an_infinite_gap():
    problem = csr.Problem(csr.Linear(np.eye(3)), csr.Squared([1.0, 2.0, 3.0]) + csr.NonNegative())
    assert csr.certify(problem, [-1.0, 0.0, 0.0]).gap == np.inf


def test_the_null_point_of_a_loss_with_kinks_has_the_best_intercept_beside_bounds():
    X, y = np.array([[1e5], [2e5], [4e5]]), [0.0, 1.0, 3.0]
    problem = csr.Problem(csr.Linear(X), csr.Absolute(y) + csr.Box(0.75, np.inf))
    null = null_point(problem)
    assert null.theta.tolist() == [[0.75]]
    assert null.b == pytest.approx([1.0 - 0.75 * 2e5])  # the median of y - 0.75 x


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dense", [False, True])
def test_a_large_singular_laplacian_is_proved_on_data_with_one_entry_in_each_row(dense, intercept):
    rng, d = np.random.default_rng(0), 1200
    graph = csr.Graph.from_edges([(i, i + 1) for i in range(d - 1)], n_nodes=d)
    # beside an intercept, the columns must have equal entries
    sizes, y = rng.uniform(0.5, 2.0, size=d) if not intercept else np.full(d, 3.0), rng.normal(size=d)
    X = sp.diags_array(sizes, format="csr")
    model = csr.Linear(X.toarray() if dense else X, intercept=intercept)
    problem = csr.Problem(model, csr.Squared(y) + 0.5 * csr.Laplacian(graph))
    solution = problem.solve()
    assert solution.status == "optimal" and solution.certificate.kind == "duality_gap"
    pickle.dumps(problem.model)
    best = solution.objective
    if not intercept:
        matrix = sp.csc_array(X.T @ X + graph.laplacian())  # Squared has a factor 1/2
        best = problem.value_at(spsolve(matrix, X.T @ y)[:, None], np.zeros(1))
        assert solution.objective == pytest.approx(best, rel=1e-6)
    for distance in (1e-6, 1e-3, 1.0):
        moved = solution.coef + distance * rng.normal(size=d)
        certificate = certify_point(problem, moved[:, None], np.atleast_1d(solution.intercept))
        assert certificate.lower_bound <= best * (1 + 1e-12)
        assert certificate.relative_gap <= max(1e-6, 1e3 * distance**2)


def test_no_solution_is_worse_than_the_null_point():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6))
    groups = csr.Groups([[0, 1], [1, 2, 3], [4, 5]], n_features=6)
    problem = csr.Problem(csr.Linear(X), csr.Squared(X[:, 0] + rng.normal(size=40)) + 80.0 * csr.GroupLasso(groups))
    solution = problem.solve("semismooth_newton", tol=1e-2)
    assert solution.status == "optimal" and solution.objective <= null_point(problem).objective
    assert solution.objective == pytest.approx(problem.value(solution.coef, solution.intercept), rel=1e-12)


def test_a_perfect_fit_along_a_free_direction_is_not_said_of_the_null_point():
    """There the null point has the objective of other weights."""
    X = np.random.default_rng(0).normal(size=(4, 6))
    objective = csr.Squared(X.sum(axis=1)) + csr.L1(weights=[0.0] * 5 + [1.0])
    problem = csr.Problem(csr.Linear(X, intercept=False), objective)
    for solver in ("auto", "fista"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", csr.InaccurateWarning)
            solution = problem.solve(solver)
        value = problem.value(solution.coef, solution.intercept)
        assert solution.objective == pytest.approx(value, rel=1e-9, abs=1e-20)


@pytest.mark.parametrize("sizes", [1.0, np.geomspace(1e-3, 1e2, 20)])
def test_a_ridge_is_proved_without_eigenvectors(sizes):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 20)), rng.normal(size=50)
    problem = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + csr.Ridge(weights=np.full(20, sizes)))
    solution = problem.solve(tol=1e-9)
    parts = problem.normal_form
    assert "quadratic_spectrum" not in vars(parts)
    optimum = np.linalg.solve(X.T @ X + 2.0 * np.diag(np.full(20, sizes)), X.T @ y)
    best = problem.value(optimum)
    assert solution.status == "optimal"
    assert best * (1.0 - 1e-8) <= solution.certificate.lower_bound <= best * (1.0 + 1e-14)
    assert csr.certify(problem, optimum).relative_gap < 1e-11
    far = csr.certify(problem, optimum + 1.0)
    assert far.lower_bound <= best


@pytest.mark.parametrize("seed, loss", [(0, "squared"), (22, "squared"), (19, "logistic")])
def test_dual_points_that_prove_the_tolerance_are_not_searched_for(seed, loss, monkeypatch):
    """The solver's own dual point leaves an excess, but proves the tolerance once it is scaled down."""
    steps = []
    prox_conj, repair = Piece.prox_conj, BlockNorms.repair
    monkeypatch.setattr(Piece, "prox_conj", lambda *args: steps.append("prox") or prox_conj(*args))
    monkeypatch.setattr(BlockNorms, "repair", lambda *args: steps.append("sweeps") or repair(*args))
    X, noise = np.random.default_rng(seed).normal(size=(40, 12)), np.random.default_rng(seed + 1000)
    z = X[:, 0] - X[:, 1]
    z = z + np.std(z) / 5 * noise.normal(size=40)
    groups = csr.Groups([list(range(i, min(i + 8, 12))) for i in range(0, 12, 5)], n_features=12)
    fit = csr.Squared(z) if loss == "squared" else csr.Logistic((z > 0).astype(int))
    problem = csr.Problem(csr.Linear(X), fit + 0.4 * csr.GroupLasso(groups) + 40 / 300 * csr.L1())
    solution = problem.solve(tol=1e-6)
    assert solution.status == "optimal" and len(solution.history) <= 3
    assert len(steps) <= 10  # a search takes hundreds
    csr.certify(problem, solution.coef, solution.intercept)  # without a tolerance, the search is made
    assert len(steps) > 10
