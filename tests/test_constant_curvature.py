"""Gram matrices in place of products with X, for losses of constant curvature and several outputs."""

from __future__ import annotations

import numpy as np

import cvxstructreg as csr
from cvxstructreg.solvers.groups import constant_curvature
from cvxstructreg.solvers.groups.constant_curvature import WeightedGram

RNG = np.random.default_rng(3)
N, D, K = 60, 20, 3
X = RNG.normal(size=(N, D))
Y = X[:, :4] @ RNG.normal(size=(4, K)) + RNG.normal(size=(N, K))
GROUPS = csr.GroupLasso(csr.Groups([range(i, min(i + 6, D)) for i in range(0, D - 2, 4)], n_features=D))


def _gram(monkeypatch) -> WeightedGram:
    monkeypatch.setattr(constant_curvature, "LATE", 0.0)
    return WeightedGram(np.ascontiguousarray(X.T))


def test_products_equal_those_with_the_data(monkeypatch):
    gram, h = _gram(monkeypatch), RNG.uniform(0.5, 2.0, size=(N, 1))
    for features in (np.array([0, 3, 7, 19]), np.arange(D)):
        w, b = RNG.normal(size=(len(features), K)), RNG.normal(size=K)
        found = gram.of(np.tile(h, (1, K)), features)
        assert found is not None
        out, sums = found.product(w, b)
        scores = h * (X[:, features] @ w + b)
        np.testing.assert_allclose(out.reshape(-1, K), X[:, features].T @ scores, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(sums, scores.sum(axis=0), rtol=1e-5, atol=1e-4)


def test_a_curvature_that_changes_ends_the_use(monkeypatch):
    gram, h, features = _gram(monkeypatch), np.ones((N, K)), np.arange(D)
    assert gram.of(h, features) is not None
    assert gram.of(2.0 * h, features) is None
    assert gram.of(h, features) is None


def test_few_products_and_columns_of_different_sizes_are_left_to_the_data(monkeypatch):
    assert WeightedGram(X.T).of(np.ones((N, K)), np.arange(D)) is None
    monkeypatch.setattr(constant_curvature, "LATE", 0.0)
    assert WeightedGram((X * np.logspace(0, 6, D)).T).of(np.ones((N, K)), np.arange(D)) is None
    assert WeightedGram(X[:10].T).of(np.ones((10, K)), np.arange(D)) is None  # fewer rows than columns


def test_several_tasks_are_solved_with_it(monkeypatch):
    """The solver takes it, and proves the same optimum as without it, for weighted rows and an intercept."""
    loss = csr.MultiTask(Y, sample_weight=RNG.uniform(0.5, 2.0, size=N))
    problem = csr.Problem(csr.Linear(X), loss + 3.0 * GROUPS)
    plain = problem.solve("group_newton", tol=1e-8)
    used = []
    monkeypatch.setattr(constant_curvature, "LATE", 0.0)
    product = constant_curvature.RestrictedGram.product
    monkeypatch.setattr(
        constant_curvature.RestrictedGram, "product", lambda self, w, b: (used.append(1), product(self, w, b))[1]
    )
    found = csr.Problem(csr.Linear(X), loss + 3.0 * GROUPS).solve("group_newton", tol=1e-8)
    assert used and plain.status == found.status == "optimal"
    assert abs(found.objective - plain.objective) <= 2e-8 * plain.objective
