"""Problems with disjoint groups, of every kind that group_descent accepts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import cvxstructreg as csr
from random_problems import random_graph

N, D = 30, 12


def data(rng, sparse=False, n=N, d=D):
    X = rng.normal(size=(n, d))
    return sp.csr_array(X * (rng.random((n, d)) < 0.5)) if sparse else X


def labels(rng, n=N):
    return rng.permutation(np.arange(n) % 2)


def mixed(rng, **options):
    """Groups of five, four, one and one features; the last feature is in none."""
    members = np.split(rng.permutation(D - 1), [5, 9, 10])
    return csr.Groups([sorted(group.tolist()) for group in members], n_features=D, **options)


def group_lasso(rng, X):
    groups = csr.Groups.from_labels(rng.permutation(D) // 4, weights=np.sqrt)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 0.8 * csr.GroupLasso(groups))


def sparse_group_lasso(rng, X):
    penalty = 0.3 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def weak_norms(rng, X):
    penalty = 0.8 * csr.L1() + 1e-3 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def weights(rng, X):
    groups = mixed(rng, weights=rng.uniform(0.2, 2.0, size=4))
    penalty = 0.3 * csr.L1(weights=rng.uniform(0.1, 2.0, size=D)) + 0.5 * csr.GroupLasso(groups)
    loss = csr.Logistic(labels(rng), sample_weight=rng.uniform(0.0, 2.0, size=N))
    return csr.Problem(csr.Linear(X), loss + penalty)


def rows(rng, X):
    loss = csr.Logistic(labels(rng)[:20], rows=rng.permutation(N)[:20])
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.3 * csr.GroupLasso(mixed(rng)))


def without_intercept(rng, X):
    penalty = 0.1 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X, intercept=False), csr.Logistic(labels(rng)) + penalty)


def squared(rng, X):
    penalty = 0.1 * csr.L1() + 1.5 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X), csr.Squared(3.0 + rng.normal(size=N)) + penalty)


def squared_hinge(rng, X):
    penalty = 0.1 * csr.L1() + 0.9 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X), csr.SquaredHinge(labels(rng)) + penalty)


def two_losses(rng, X):
    loss = csr.Logistic(labels(rng)[:20], rows=np.arange(20)) + 0.3 * csr.Squared(
        rng.normal(size=15), rows=np.arange(15, 30)
    )
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng)))


def ridge(rng, X):
    penalty = 0.1 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng)) + 0.2 * csr.Ridge()
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def some_ridge(rng, X):
    groups = csr.Groups.from_labels(rng.permutation(D) // 4)
    penalty = 0.5 * csr.GroupLasso(groups) + 0.2 * csr.Ridge(weights=np.arange(D) % 2)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def laplacian(rng, X):
    penalty = 0.1 * csr.L1() + 0.3 * csr.GroupLasso(mixed(rng)) + 0.4 * csr.Laplacian(random_graph(rng, D, True))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def network(rng, X):
    penalty = 0.1 * csr.L1() + 0.3 * csr.GroupLasso(mixed(rng)) + 0.4 * csr.FeatureNetwork(random_graph(rng, D, True))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def multinomial(rng, X):
    loss = csr.Multinomial(rng.permutation(np.arange(N) % 3))
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng)))


def multinomial_rows(rng, X):
    """One group for each feature: rows of weights."""
    loss = csr.Multinomial(rng.permutation(np.arange(N) % 4))
    groups = csr.Groups.from_labels(np.arange(D))
    return csr.Problem(csr.Linear(X), loss + 1.2 * csr.GroupLasso(groups))


def multinomial_laplacian(rng, X):
    loss = csr.Multinomial(rng.permutation(np.arange(N - 5) % 3), rows=rng.permutation(N)[5:])
    penalty = 0.5 * csr.GroupLasso(mixed(rng)) + 0.1 * csr.L1() + 0.4 * csr.Laplacian(random_graph(rng, D, True))
    return csr.Problem(csr.Linear(X, intercept=False), loss + penalty)


def unpenalised(rng, X):
    groups = csr.Groups([[3, 4], [5, 6, 7, 8], [9, 10, 11]], n_features=D, weights=[1.0, 2.0, 1.0])
    penalty = 0.2 * csr.L1(weights=np.r_[0.0, 0.0, np.ones(10)]) + 0.5 * csr.GroupLasso(groups)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def free_groups(rng, X):
    penalty = 0.2 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng, weights=[0.0, 1.0, 0.0, 2.0]))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def few_features(rng, X):
    """Most features are in no group."""
    groups = csr.Groups([[0, 3], [1]], n_features=D, weights=[1.0, 0.0])
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 0.2 * csr.L1() + 0.5 * csr.GroupLasso(groups))


def singletons(rng, X):
    groups = csr.Groups([[j] for j in range(D)], n_features=D)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 0.2 * csr.L1() + 0.5 * csr.GroupLasso(groups))


def one_group(rng, X):
    groups = csr.Groups([range(D)], n_features=D)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 2.0 * csr.GroupLasso(groups))


def two_terms(rng, X):
    first, second = csr.Groups([[0, 1, 2]], n_features=D), csr.Groups([[3, 4], [7, 8, 9]], n_features=D)
    penalty = 0.2 * csr.L1() + 0.9 * csr.GroupLasso(first) + 0.4 * csr.GroupLasso(second)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def duplicate_columns(rng, X):
    X = X[:, [0, 0, 0, 1, 1, 2, 3, 4, 5, 0, 1, 2]]
    return sparse_group_lasso(rng, X)


KINDS = (
    group_lasso, sparse_group_lasso, weak_norms, weights, rows, without_intercept, squared, squared_hinge, two_losses,
    ridge, some_ridge, laplacian, network, multinomial, multinomial_rows, multinomial_laplacian, unpenalised,
    free_groups, few_features, singletons, one_group, two_terms, duplicate_columns,
)  # fmt: skip


def build(kind, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    return kind(rng, data(rng, sparse))


def assert_agree(solution, reference):
    """Either bound is below the other's objective."""
    slack = 1e-11 * abs(reference.objective)
    assert solution.certificate.kind == "duality_gap"
    assert solution.certificate.lower_bound <= reference.objective + slack
    assert reference.certificate.lower_bound <= solution.objective + slack
