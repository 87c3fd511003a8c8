"""The interior-point method for piecewise linear losses and penalties."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.solvers.general import interior_point
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian
from cvxstructreg.solvers.general.starts.first_penalties import set_penalties

NAME = interior_point.SOLVER.name
N, D = 60, 16
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
SCORE = X @ np.repeat([1.0, -1.0, 0.0, 0.5], D // 4) + 0.5 * RNG.normal(size=N)
Y, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, np.quantile(SCORE, [1 / 3, 2 / 3]))
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(D - 1)], n_nodes=D)
LOSSES = {
    "hinge": csr.Hinge(Y),
    "squared": csr.Squared(SCORE),
    "logistic": csr.Logistic(Y),
    "quantile": csr.Quantile(SCORE, quantile=0.3),
    "absolute": csr.Absolute(SCORE),
    "poisson": csr.Poisson(np.floor(np.abs(SCORE))),
    "multinomial": csr.Multinomial(THREE),
    "multiclass hinge": csr.MulticlassHinge(THREE),
}
PENALTIES = {
    "L1": 2.0 * csr.L1(),
    "fused": 2.0 * csr.FusedLasso(CHAIN) + 0.1 * csr.L1(),
    "nonnegative": csr.NonNegative() + 0.1 * csr.Ridge(),
    "box": csr.Box(-0.2, 0.3) + csr.Laplacian(CHAIN),
    "fused alone": csr.FusedLasso(CHAIN),
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_another_solver(loss, penalty):
    problem = csr.Problem(csr.Linear(X), LOSSES[loss] + PENALTIES[penalty])
    found, other = problem.solve(NAME, tol=1e-8), problem.solve("semismooth_newton", tol=1e-8)
    assert found.status == "optimal" and found.n_iter <= 30
    assert abs(found.objective - other.objective) <= found.certificate.gap + other.certificate.gap


@pytest.mark.parametrize("size", [-1, 0, 1])
def test_the_step_solves_the_linearised_conditions(size):
    """The products of second order, and what smooth terms bend, are all that a step leaves."""
    problem = csr.Problem(csr.Linear(X), csr.Squared(SCORE) + csr.Hinge(Y) + csr.FusedLasso(CHAIN) + csr.NonNegative())
    function = AugmentedLagrangian(problem)
    set_penalties(function)
    terms = interior_point.Terms(function)
    at = terms.start(0.1 * size * np.ones((function.size, 1)))
    newton = interior_point.Newton(terms, at)
    step = newton.step(0.3)
    after = at.moved(step, 1.0)
    free = terms.is_free > 0
    missed = terms.forward(after.x) - terms.offset - after.p + after.n
    np.testing.assert_allclose(missed[free], (terms.least_bend * step.u)[free], atol=1e-9)
    up, low = terms.has_upper, terms.has_lower
    above, below = terms.upper[up] - after.u[up], after.u[low] - terms.lower[low]
    np.testing.assert_allclose(after.p[up] * above + step.p[up] * step.u[up], 0.3, atol=1e-8)
    np.testing.assert_allclose(after.n[low] * below - step.n[low] * step.u[low], 0.3, atol=1e-8)
    balance = function.quadratic @ after.x + terms.adjoint(after.u)
    for smooth, g, h in zip(function.smooth, newton.grads, newton.hessians, strict=True):
        balance += smooth.rows.T @ (g + h * (smooth.rows @ step.x))
    np.testing.assert_allclose(balance, 0.0, atol=1e-6)


@pytest.mark.parametrize("loss", ["absolute", "quantile", "hinge", "squared"])
@pytest.mark.parametrize("penalty", ["L1", "nonnegative", "box"])
def test_more_weights_than_rows(loss, penalty):
    """Some of these fit every row, so that many kinks are met at once."""
    few = np.random.default_rng(1).normal(size=(12, 60))
    target = few[:, :6].sum(axis=1)
    losses = {
        "absolute": csr.Absolute(target),
        "quantile": csr.Quantile(target, quantile=0.7),
        "hinge": csr.Hinge((target > 0).astype(int)),
        "squared": csr.Squared(target),
    }
    chain = csr.Graph.from_edges([(i, i + 1) for i in range(59)], n_nodes=60)
    penalties = {
        "L1": 0.1 * csr.L1(),
        "nonnegative": csr.NonNegative() + 0.1 * csr.Ridge(),
        "box": csr.Box(-2.0, 2.0) + 0.01 * csr.Ridge() + 0.1 * csr.Laplacian(chain),
    }
    problem = csr.Problem(csr.Linear(few), losses[loss] + penalties[penalty])
    found, reference = problem.solve(NAME, tol=1e-6), problem.solve("cvxpy", tol=1e-6)
    assert found.status == "optimal"
    assert abs(found.objective - reference.objective) <= found.certificate.gap + reference.certificate.gap


def test_units_do_not_matter():
    scale = 2.0**20
    one = csr.Problem(csr.Linear(X), csr.Hinge(Y) + csr.FusedLasso(CHAIN) + 0.1 * csr.L1())
    two = csr.Problem(csr.Linear(X * scale), csr.Hinge(Y) + scale * csr.FusedLasso(CHAIN) + 0.1 * scale * csr.L1())
    first, second = one.solve(NAME, tol=1e-8), two.solve(NAME, tol=1e-8)
    assert first.status == second.status == "optimal" and abs(first.n_iter - second.n_iter) <= 2
    np.testing.assert_allclose(second.coef * scale, first.coef, atol=1e-5)


def test_rows_weights_sparse_data_no_intercept_and_kernels():
    rows = np.arange(0, N, 2)
    loss = csr.Hinge(Y[rows], rows=rows, sample_weight=np.linspace(0.0, 3.0, rows.size))
    sparse = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    for model in (csr.Linear(sparse), csr.Linear(X, intercept=False)):
        assert csr.Problem(model, loss + csr.FusedLasso(CHAIN) + 0.1 * csr.L1()).solve(NAME).status == "optimal"
    kernel = csr.Problem(csr.Kernel(X @ X.T + 0.1 * np.eye(N)), loss + csr.RKHSNorm())
    found, reference = kernel.solve(NAME, tol=1e-7), kernel.solve("cvxpy")
    assert abs(found.objective - reference.objective) <= found.certificate.gap + reference.certificate.gap


def test_auto_takes_it_for_hinges_and_differences():
    for objective in (csr.Hinge(Y) + csr.L1(), csr.Squared(SCORE) + csr.FusedLasso(CHAIN) + csr.L1()):
        assert csr.Problem(csr.Linear(X), objective).solve().solver == NAME


def test_what_it_does_not_accept_is_said():
    groups = csr.Groups([range(8), range(6, 16)], n_features=D)
    for objective, reason in (
        (csr.Hinge(Y) + csr.GroupLasso(groups), "norm of groups"),
        (csr.Logistic(Y) + csr.Ridge(), "no term is piecewise linear"),
    ):
        assert reason in interior_point.SOLVER.refusal(csr.Problem(csr.Linear(X), objective)).reason


def test_a_tolerance_below_round_off_ends_with_an_honest_status():
    problem = csr.Problem(csr.Linear(X), csr.Hinge(Y) + csr.FusedLasso(CHAIN))
    with pytest.warns(csr.InaccurateWarning):
        found = problem.solve(NAME, tol=1e-17)
    assert found.status == "inaccurate" and found.n_iter < interior_point.MOST_STEPS
