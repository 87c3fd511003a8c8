"""Differences of many weights are proved: a sparse factor spreads what is left of the pull over the dual points."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates.spreading import spreading
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.solvers import registry

N = DENSE_LIMIT + 300


def chain(d):
    return csr.Graph.from_edges(np.column_stack([np.arange(d - 1), np.arange(1, d)]), n_nodes=d)


def sparse_data(n=1400, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, N), density=0.005, rng=rng, format="csr")
    X.data[:] = rng.normal(size=X.nnz)
    return X, X @ np.repeat([1.0, 0.0], [200, N - 200]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("penalty", [csr.FusedLasso(chain(N)), csr.TrendFilter(2)], ids=["fused", "trend"])
def test_signals_with_missing_values(penalty, verbose):
    weight = np.ones(N)
    weight[::7] = 0.0
    loss = csr.Squared(np.random.default_rng(0).normal(size=N), sample_weight=weight)
    model = csr.Linear(sp.eye_array(N, format="csr"), intercept=False)
    solution = csr.Problem(model, loss + penalty).solve(verbose=verbose)
    assert (solution.status, solution.certificate.kind) == ("optimal", "duality_gap")


def test_an_image_with_missing_pixels():
    rng = np.random.default_rng(1)
    loss = csr.Squared(rng.normal(size=38 * 38), sample_weight=(rng.random(38 * 38) < 0.7).astype(float))
    model = csr.Linear(sp.eye_array(38 * 38, format="csr"), intercept=False)
    solution = csr.Problem(model, loss + 0.5 * csr.TotalVariation((38, 38))).solve()
    assert (solution.status, solution.certificate.kind) == ("optimal", "duality_gap")


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
@pytest.mark.parametrize("loss", [csr.Squared, csr.Huber, lambda z: csr.Logistic((z > 0).astype(int))])
def test_sparse_data_without_a_ridge(loss, tol):
    X, z = sparse_data()
    solution = csr.Problem(csr.Linear(X), loss(z) + 0.5 * csr.FusedLasso(chain(N))).solve(tol=tol)
    assert (solution.status, solution.certificate.kind) == ("optimal", "duality_gap")


def test_the_map_solves_for_what_the_terms_see():
    problem = csr.Problem(csr.Linear(np.ones((2, N))), csr.Squared([1.0, 2.0]) + csr.FusedLasso(chain(N)))
    excess = np.random.default_rng(2).normal(size=(N, 1))
    excess -= excess.mean()
    solve = spreading(problem.normal_form)
    assert solve is spreading(problem.normal_form)
    np.testing.assert_allclose(problem.normal_form.piece_gram @ solve(excess), excess, atol=1e-9)


def test_few_stored_numbers_with_kinks_and_loose_weights_go_to_the_reference():
    X, z = sparse_data()
    problem = csr.Problem(csr.Linear(X), csr.Absolute(z) + 0.5 * csr.FusedLasso(chain(N)))
    assert registry.choose(problem, "auto").name == "cvxpy"
    held = csr.Problem(csr.Linear(X), csr.Absolute(z) + 0.5 * csr.FusedLasso(chain(N)) + 0.1 * csr.Ridge())
    assert registry.choose(held, "auto").name == "semismooth_cg"
    solution = problem.solve()
    assert (solution.status, solution.certificate.kind) == ("optimal", "duality_gap")
