"""A certificate uses the product that its solver left, and only for the same dual point."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates.absorbed_pull import AbsorbedPull
from cvxstructreg.numerics.last_product import LastProduct


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


@pytest.mark.parametrize("near", [1e-12, 1e-3, 1.0])
def test_older_products_stand_only_where_they_prove_the_limit(near):
    rng = np.random.default_rng(1)
    A, u = np.asfortranarray(rng.normal(size=(50, 200))), rng.normal(size=50)
    norms, last = np.linalg.norm(A, axis=0), LastProduct()
    last.computed(A, u)
    v = u + near * rng.normal(size=50)
    exact = A.T @ v
    limits = np.quantile(np.abs(exact), 0.9) * np.ones(200)
    found, complete = last.within(A, v[:, None], norms, limits)
    beyond = np.abs(exact) >= limits
    np.testing.assert_allclose(found[beyond, 0], exact[beyond], rtol=1e-10)
    assert np.all(np.abs(found[~beyond, 0]) < limits[~beyond])
    assert complete == (near == 1.0)
    assert last.within(A, u[:, None], norms, limits)[1]
    assert last.within(sp.csc_array(A), v[:, None], norms, limits)[1]
    last.computed(A, 0.0 * u)
    tiny, complete = last.within(A, 1e-170 * v[:, None], norms, 1e-170 * limits)  # its square vanishes
    np.testing.assert_allclose(tiny[:, 0], 1e-170 * exact)
    assert complete
    assert LastProduct().within(A, v[:, None], norms, limits)[1]


def test_the_dual_point_of_l1_is_complete_when_someone_looks_at_it():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 300))
    problem = csr.Problem(
        csr.Linear(X, intercept=False), csr.Gamma(rng.gamma(2.0, np.exp(X[:, 0] + 0.5 * X[:, 1]))) + 40.0 * csr.L1()
    )
    dual = problem.solve("working_set", tol=1e-6).certificate.dual
    assert isinstance(dual._separable, AbsorbedPull)
    np.testing.assert_allclose(dual.separable, -X.T @ dual.scores, rtol=1e-9, atol=1e-9)
    assert np.abs(dual.separable).max() <= 40.0
    copy = pickle.loads(pickle.dumps(dual))
    assert isinstance(copy._separable, np.ndarray)
    np.testing.assert_array_equal(copy.separable, dual.separable)


@pytest.mark.parametrize("tiny", [1.0, 1e-163, 1e-170, 1e-200])
def test_columns_whose_squares_vanish_are_not_taken_for_zero(tiny):
    rng = np.random.default_rng(0)
    few = rng.normal(size=(200, 2))
    y = few @ [3.0, 1.0] + 0.05 * rng.normal(size=200)
    lam = 0.5 * np.abs(few.T @ y).max()
    many = rng.normal(size=(200, 560))
    many *= 14.0 / np.linalg.norm(many, axis=0)  # asked for once, and never close to their strengths again
    late = few @ np.array([[-0.9], [2.7]]) + 0.3 * rng.normal(size=(200, 10))
    late -= np.outer(y, y @ late) / (y @ y)  # enter when the first two have weights
    X, strengths = np.hstack([few, many, late]), np.r_[np.ones(2), np.full(560, 1.8), np.full(10, 0.02)]
    scales = np.r_[np.ones(562), np.full(10, tiny)]
    loss = csr.Squared(y)
    plain = csr.Problem(csr.Linear(X, intercept=False), loss + lam * csr.L1(weights=strengths)).solve(tol=1e-9)
    scaled = csr.Problem(csr.Linear(X * scales, intercept=False), loss + lam * csr.L1(weights=strengths * scales))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        found = scaled.solve("working_set")
    assert found.certificate.lower_bound <= plain.objective * (1 + 1e-9)
    assert found.status == "optimal" or tiny < 1.0
    np.testing.assert_allclose(scaled.normal_form.column_norms, np.linalg.norm(X, axis=0) * scales)
