"""Truncated Newton on large dense data: single precision, and what it rests on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.solvers.smooth import smooth_objective


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
    """Small dense data take single precision too."""
    monkeypatch.setattr(smooth_objective, "SINGLE_FROM", 0)


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
def test_networks_of_every_strength(alpha, single):
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
