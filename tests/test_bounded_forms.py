"""Quadratic terms that couple bounded weights: their minimum within the bounds, and the certificates it proves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates import bounds
from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.certificates.quadratic_conjugate import has_bounded_forms
from cvxstructreg.numerics.box_quadratic import lowest_within
from cvxstructreg.solvers.general.matrix_free import MatrixFreeLagrangian

N, D = 60, 40
RNG = np.random.default_rng(8)
X = sp.random_array((N, D), density=0.2, rng=RNG, format="csr", data_sampler=RNG.standard_normal)
THREE = np.digitize(np.asarray(X[:, :5].sum(axis=1)).ravel() + 0.1 * RNG.normal(size=N), [-0.5, 0.5])
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(D - 1)], n_nodes=D)
GRID = csr.Graph.from_edges([(i, i + 1) for i in range(D - 1)] + [(i, i + 8) for i in range(D - 8)], n_nodes=D)


@pytest.mark.parametrize("graph", [CHAIN, GRID])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_minimum_within_bounds(graph, ridge):
    """At the minimum, the slope is zero between the bounds and points outwards at them."""
    Q = sp.csr_array(graph.laplacian()) + ridge * sp.eye_array(D, format="csr")
    for seed in range(5):
        rng = np.random.default_rng(seed)
        lower, upper = -rng.uniform(0.1, 1.0, D), rng.uniform(0.1, 1.0, D)
        v = rng.normal(size=D)
        x = lowest_within(sp.csr_array(Q), v, lower, upper, rng.normal(size=D), 1e-12)
        slope = Q @ x + v
        assert np.all(slope[x < upper] >= -1e-8) and np.all(slope[x > lower] <= 1e-8)
        assert np.all((lower <= x) & (x <= upper))


def problem(intercept=True):
    terms = csr.MulticlassHinge(THREE) + csr.Box(-0.5, 0.5) + 1.0 * csr.Laplacian(CHAIN)
    return csr.Problem(csr.Linear(X, intercept=intercept), terms)


@pytest.mark.parametrize("intercept", [True, False])
def test_dual_points_of_quadratic_terms_move(intercept, monkeypatch):
    """Weights beside the optimum cost the bound little, and it stays a bound."""
    given = problem(intercept)
    best = given.solve("cvxpy", tol=1e-8)
    theta, b = given.shaped(best.coef, best.intercept)
    theta = np.clip(theta + 0.003 * np.random.default_rng(0).normal(size=theta.shape), -0.5, 0.5)
    moved = certify_point(given, theta, b, best.dual, tol=1e-8)
    monkeypatch.setattr(bounds, "has_bounded_forms", lambda parts: False)
    kept = certify_point(given, theta, b, best.dual, tol=1e-8)
    assert best.objective - moved.lower_bound <= 0.05 * (best.objective - kept.lower_bound)
    assert moved.lower_bound <= best.objective * (1.0 + 1e-9)


def test_which_terms_are_bounded_forms():
    def parts(penalty):
        return csr.Problem(csr.Linear(X), csr.MulticlassHinge(THREE) + penalty).normal_form

    box, graph = csr.Box(-0.5, 0.5), csr.Laplacian(CHAIN)
    assert has_bounded_forms(parts(box + graph)) and has_bounded_forms(parts(box + graph + csr.Ridge()))
    for other in (box + csr.Ridge(), csr.NonNegative() + graph, csr.L1() + graph, box + graph + csr.L1(), graph):
        assert not has_bounded_forms(parts(other))
    assert not has_bounded_forms(parts(box + graph + csr.GroupLasso(csr.Groups([[0, 1]], n_features=D))))


def test_conjugate_gradients_beside_bounded_forms():
    """The preconditioner is then the matrix of the quadratic terms and little more."""
    assert MatrixFreeLagrangian(problem()).coupled
    solution = problem().solve("semismooth_cg", tol=1e-5)
    assert solution.status == "optimal"
    program = problem().to_cvxpy()
    program.solve("CLARABEL")
    assert solution.objective == pytest.approx(program.value, rel=2e-5)
