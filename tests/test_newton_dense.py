"""Truncated Newton on large dense data: single precision, and coordinates for quadratic parts that are narrow bands."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.core.quadratic_form import QuadraticForm
from cvxstructreg.solvers import banded, conjugate_gradients, smooth_objective
from cvxstructreg.solvers.curvature import Curvature


def chain(d, reach=2):
    """Each node linked to the next few in a row, with nodes numbered at random."""
    place = np.random.default_rng(5).permutation(d)
    pairs = [(place[i], place[i + step]) for step in range(1, reach + 1) for i in range(d - step)]
    return csr.Graph.from_edges(pairs, n_nodes=d)


def dense_problem(n=80, d=40, loss=csr.Logistic, alpha=3.0, beta=0.5, scale=1.0, graph=None):
    rng = np.random.default_rng(3)
    X = scale * (rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1)))
    y = (X @ rng.normal(size=d) / scale + rng.normal(size=n) > 0).astype(int)
    penalty = alpha * csr.FeatureNetwork(chain(d) if graph is None else graph) + beta * csr.Ridge()
    return csr.Problem(csr.Linear(X), loss(y) + penalty)


@pytest.fixture
def single(monkeypatch):
    """Small dense data take single precision and bands too."""
    monkeypatch.setattr(smooth_objective, "SINGLE_FROM", 0)
    monkeypatch.setattr(banded, "WIDEST", 1.0)


def curvature_of(problem):
    objective = smooth_objective.SmoothObjective(problem)
    rng = np.random.default_rng(4)
    return Curvature(objective, objective.state(0.1 * rng.normal(size=objective.shape), np.ones(1)))


@pytest.mark.parametrize("loss", [csr.Logistic, csr.SquaredHinge])
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-10])
def test_single_precision_reaches_every_tolerance(loss, tol, single):
    problem = dense_problem(loss=loss)
    solution = problem.solve("newton", tol=tol)
    assert solution.status == "optimal"
    reference = problem.solve("lbfgs", tol=1e-9)
    assert solution.certificate.lower_bound <= reference.objective * (1 + 1e-12)
    assert solution.objective <= reference.objective * (1 + tol)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1e3])
def test_bands_of_every_strength(alpha, single):
    assert dense_problem(alpha=alpha).solve("newton", tol=1e-7).status == "optimal"


@pytest.mark.parametrize("scale", [1e-15, 1e15, 1e30])
def test_data_beyond_single_precision_stay_in_double(scale, single):
    problem = dense_problem(scale=scale)
    assert not smooth_objective.SmoothObjective(problem).has_single
    assert problem.solve("newton", tol=1e-6).status == "optimal"


def test_uneven_weights_of_the_rows(single):
    problem = dense_problem()
    loss = csr.Logistic(problem.terms[0].atom.y[:, 0], sample_weight=np.geomspace(1e-3, 1e3, 80))
    weighted = csr.Problem(problem.model, loss + 3.0 * csr.FeatureNetwork(chain(40)) + 0.5 * csr.Ridge())
    assert weighted.solve("newton", tol=1e-7).status == "optimal"
    objective = smooth_objective.SmoothObjective(weighted)
    rows = np.linspace(0.1, 1.0, 80)[:, None]
    expected = np.diag(problem.model.design.T @ (rows * problem.model.design))
    np.testing.assert_allclose(objective.data_diagonal(rows)[:, 0], expected, rtol=1e-6)
    even = np.diag(problem.model.design.T @ problem.model.design)
    np.testing.assert_allclose(objective.data_diagonal(np.full((80, 1), 3.0))[:, 0], 3.0 * even, rtol=1e-6)


def test_banded_coordinates_are_coordinates(single):
    curvature = curvature_of(dense_problem())
    space = banded.banded(curvature)
    assert space is not None and space.band.width == 4
    G = np.column_stack([space.residual(e[:, None]) for e in np.eye(40)]).T
    band = 2.0 * curvature.objective.quadratic.apply(np.eye(40))
    np.testing.assert_allclose(G.T @ G, band + np.diag(space.diagonal[:, 0]), atol=1e-10)
    H = np.column_stack([curvature.times(e[:, None]) for e in np.eye(40)])
    inverse = np.linalg.inv(G)
    for dtype, atol in ((np.float64, 1e-10), (np.float32, 1e-4)):
        units = np.eye(40, dtype=dtype)
        for method, expected in (
            (space.to_weights, inverse),
            (space.pull, inverse.T),
            (space.times, inverse.T @ H @ inverse),
        ):
            found = np.column_stack([method(e[:, None]) for e in units])
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, atol=atol * np.abs(expected).max())


def test_bands_take_fewer_steps_than_the_diagonal(single):
    """A long chain, where the network outweighs the data."""
    problem = dense_problem(n=60, d=200, alpha=50.0, beta=0.1)
    curvature = curvature_of(problem)
    gradient = curvature.gradient(curvature.objective.state(np.zeros((200, 1)), np.zeros(1)))[0]
    steps = []
    for narrow in (True, False):
        if not narrow:
            curvature.objective.quadratic._band = None
        solver = conjugate_gradients.NewtonStep(curvature, 1000, single=False)
        step = solver.solve(gradient, 1e-6 * float(np.linalg.norm(gradient)), 0.0)
        assert np.linalg.norm(curvature.times(step) + gradient) <= 1e-4 * np.linalg.norm(gradient)
        steps.append(solver.steps)
    assert 2 * steps[0] <= steps[1]


def test_wide_networks_have_no_band(single):
    rng = np.random.default_rng(6)
    edges = [(int(i), int(j)) for i, j in rng.integers(0, 40, size=(200, 2)) if i != j]
    weights = sp.csr_array((np.ones(len(edges)), tuple(np.array(edges).T)), shape=(40, 40))
    factor = QuadraticForm(factor=csr.FeatureNetwork(csr.Graph(weights)).quadratic(40).factor).factor
    assert banded.narrow_band(factor, np.ones(40), 10, 10**9) is None
    narrow = csr.FeatureNetwork(chain(40)).quadratic(40).factor
    assert banded.narrow_band(narrow, np.ones(40), 10, 10**9) is not None
    assert banded.narrow_band(narrow, np.ones(40), 10, 100) is None  # would take too long to find out
    assert dense_problem(graph=csr.Graph(weights)).solve("newton").status == "optimal"


def test_a_diagonal_form_is_the_form_of_its_matrix():
    rng = np.random.default_rng(7)
    weights, w = rng.random(6), rng.normal(size=(6, 2))
    form, plain = QuadraticForm.diagonal_form(weights), QuadraticForm(matrix=sp.diags_array(weights, format="csr"))
    np.testing.assert_allclose(form.apply(w), plain.apply(w))
    np.testing.assert_allclose(form.apply(w[:, 0]), plain.apply(w[:, 0]))
    np.testing.assert_allclose(form.matrix.toarray(), plain.matrix.toarray())
    np.testing.assert_allclose(form.prox(w, 0.3), plain.prox(w, 0.3))
    assert form.value(w) == pytest.approx(plain.value(w))
    assert form.conj(w) == pytest.approx(plain.conj(w))
    assert form.value_and_product(w)[0] == pytest.approx(plain.value_and_product(w)[0])
    assert form.smallest_eigenvalue == pytest.approx(plain.smallest_eigenvalue)
    assert form.largest_eigenvalue == pytest.approx(plain.largest_eigenvalue)
    assert form.diagonal is not None and plain.diagonal is not None


@pytest.mark.parametrize("mean", [10.0, 1e3, 1e5])
def test_columns_far_from_zero(mean, single):
    """The intercept takes the means away; where single precision has no digits left for the rest, it is not used."""
    plain = dense_problem(graph=csr.Graph(sp.csr_array((40, 40))))
    shifted = csr.Problem(csr.Linear(plain.model.design + mean), plain.terms[0].atom + 0.5 * csr.Ridge())
    assert smooth_objective.SmoothObjective(shifted).has_single == (mean < 30.0)
    solution = shifted.solve("newton", tol=1e-6)
    assert solution.status == "optimal"
    assert solution.n_iter <= 15
