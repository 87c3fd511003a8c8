"""A certificate uses the product that its solver left, and only for the same dual point."""

import pickle

import numpy as np
import pytest

import cvxstructreg as csr


@pytest.mark.parametrize("intercept", [False, True])
def test_the_certificate_takes_the_last_product_of_the_solver(intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    model = csr.Linear(X, intercept=intercept)
    terms = csr.Gamma(rng.gamma(2.0, np.exp(0.3 * X[:, 0]))) + 4.0 * csr.L1()
    solution = csr.Problem(model, terms).solve("working_set")
    u, product = model.last_product._last
    np.testing.assert_allclose(product, X.T @ u, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.adjoint(2.0 * u[:, None]), 2.0 * product[:, None], rtol=1e-12, atol=1e-12)
    fresh = csr.Problem(csr.Linear(X, intercept=intercept), terms).solve("cvxpy")
    assert solution.certificate.lower_bound <= fresh.objective
    assert fresh.certificate.lower_bound <= solution.objective
    assert pickle.loads(pickle.dumps(model)).last_product._last is None
