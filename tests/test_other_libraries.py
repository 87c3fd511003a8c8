"""Problems that scikit-learn and SciPy solve too."""

import numpy as np
import pytest
import scipy.optimize
import sklearn
from known_problems import KERNEL, KINDS, LABELS, N, X, Y, centred, solved
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model, svm

import cvxstructreg as csr


class TestOtherLibraries:
    def test_elastic_net(self):
        alpha, ratio = 0.1, 0.7
        model = linear_model.ElasticNet(alpha=alpha, l1_ratio=ratio, tol=1e-12, max_iter=100_000).fit(X, Y)
        penalty = N * alpha * ratio * csr.L1() + 0.5 * N * alpha * (1 - ratio) * csr.Ridge()
        solution = solved(csr.Linear(X), csr.Squared(Y) + penalty)
        assert_allclose(solution.coef, model.coef_, atol=1e-4)
        assert_allclose(solution.intercept, model.intercept_, atol=1e-4)
        assert_array_equal(solution.coef == 0, model.coef_ == 0)

    def test_ridge(self):
        model = linear_model.Ridge(alpha=3.0).fit(X, np.column_stack([Y, X[:, 0] ** 2]))
        solution = solved(csr.Linear(X), csr.Squared(np.column_stack([Y, X[:, 0] ** 2])) + 1.5 * csr.Ridge())
        assert_allclose(solution.coef, model.coef_.T, atol=1e-4)
        assert_allclose(solution.intercept, model.intercept_, atol=1e-4)

    @pytest.mark.parametrize("norm", ["l1", "l2"])
    def test_logistic_regression(self, norm):
        new = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
        which = {"l1_ratio": float(norm == "l1")} if new else {"penalty": norm}
        model = linear_model.LogisticRegression(C=0.4, solver="saga", tol=1e-10, max_iter=200_000, **which)
        model.fit(X, LABELS)
        penalty = csr.L1() * 2.5 if norm == "l1" else csr.Ridge() * 1.25
        solution = solved(csr.Linear(X), csr.Logistic(LABELS) + penalty)
        assert_allclose(solution.coef, model.coef_[0], atol=1e-4)
        assert_allclose(solution.intercept, model.intercept_[0], atol=1e-4)

    def test_multinomial_regression(self):
        model = linear_model.LogisticRegression(C=0.4, tol=1e-10, max_iter=10_000).fit(X, KINDS)
        solution = solved(csr.Linear(X), csr.Multinomial(KINDS) + 1.25 * csr.Ridge())
        assert_allclose(solution.coef, model.coef_.T, atol=1e-4)
        assert_allclose(centred(solution.scores), centred(model.decision_function(X)), atol=1e-4)

    def test_support_vector_machine(self):
        lam = 0.25
        model = svm.SVC(kernel="precomputed", C=1.0 / (2.0 * lam), tol=1e-9).fit(KERNEL, LABELS)
        problem = csr.Problem(csr.Kernel(KERNEL), csr.Hinge(LABELS) + lam * csr.RKHSNorm())
        solution = problem.solve(tol=1e-9)
        theta = np.zeros(N)
        theta[model.support_] = model.dual_coef_[0]
        assert_allclose(problem.value(theta, model.intercept_[0]), solution.objective, rtol=1e-7)
        assert_allclose(solution.scores, model.decision_function(KERNEL), atol=1e-4)

    def test_linear_support_vector_machine(self):
        model = svm.LinearSVC(C=0.7, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, LABELS)
        solution = solved(csr.Linear(X, intercept=False), csr.SquaredHinge(LABELS) + csr.Ridge() * (0.5 / 0.7))
        assert_allclose(solution.coef, model.coef_[0], atol=1e-4)

    def test_bounded_least_squares(self):
        nonnegative = solved(csr.Linear(X, intercept=False), csr.Squared(Y) + csr.NonNegative())
        assert_allclose(nonnegative.coef, scipy.optimize.nnls(X, Y)[0], atol=1e-4)
        boxed = solved(csr.Linear(X, intercept=False), csr.Squared(Y) + csr.Box(-0.7, 0.3))
        assert_allclose(boxed.coef, scipy.optimize.lsq_linear(X, Y, (-0.7, 0.3)).x, atol=1e-4)
        assert boxed.coef.min() == -0.7 and boxed.coef.max() == 0.3
