"""Problems with overlapping groups, of every kind that group_newton accepts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import cvxstructreg as csr
from random_problems import random_graph


def some_groups(rng, d, n_groups=12, largest=5, **options):
    members = [
        sorted(rng.choice(d, size=rng.integers(1, largest + 1), replace=False).tolist()) for _ in range(n_groups)
    ]
    return csr.Groups(members, n_features=d, **options)


def data(rng, n=30, d=12, sparse=False):
    X = rng.normal(size=(n, d))
    return sp.csr_array(X * (rng.random((n, d)) < 0.5)) if sparse else X


def labels(rng, n=30):
    return rng.permutation(np.arange(n) % 2)


def basic(rng, X, groups=None, lam=0.3, lam1=0.2, **model):
    groups = some_groups(rng, X.shape[1]) if groups is None else groups
    penalty = lam1 * csr.L1() + lam * csr.GroupLasso(groups)
    return csr.Problem(csr.Linear(X, **model), csr.Logistic(labels(rng)) + penalty)


def sample_weights(rng, X, groups):
    loss = csr.Logistic(labels(rng), sample_weight=rng.uniform(0.0, 2.0, size=30))
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups))


def rows(rng, X, groups):
    loss = csr.Logistic(labels(rng)[:20], rows=rng.permutation(30)[:20])
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups))


def no_l1(rng, X, groups):
    groups = csr.Groups([*groups, np.arange(12)], n_features=12)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 0.5 * csr.GroupLasso(groups))


def zero_l1_weights(rng, X, groups):
    groups = csr.Groups([*groups, np.arange(12)], n_features=12)
    weights = rng.choice([0.0, 1.0], size=12)
    penalty = csr.L1(weights=weights) + 0.2 * csr.GroupLasso(groups)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def unpenalised(rng, X, groups):
    weights = np.r_[0.0, 0.0, np.ones(10)]
    groups = csr.Groups([[3, 4], [4, 5, 6]], n_features=12)
    penalty = csr.L1(weights=weights) + 0.2 * csr.GroupLasso(groups)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def quadratic(rng, X, groups):
    penalty = 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups) + 0.05 * csr.Ridge()
    penalty = penalty + 0.4 * csr.Laplacian(random_graph(rng, 12, True))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def network(rng, X, groups):
    penalty = 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups) + 0.4 * csr.FeatureNetwork(random_graph(rng, 12, True))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def squared(rng, X, groups):
    return csr.Problem(csr.Linear(X), csr.Squared(rng.normal(size=30)) + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(groups))


def squared_hinge(rng, X, groups):
    loss = csr.SquaredHinge(labels(rng))
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(groups))


def multinomial(rng, X, groups):
    loss = csr.Multinomial(rng.permutation(np.arange(30) % 3))
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.3 * csr.GroupLasso(groups))


def without_intercept(rng, X, groups):
    return basic(rng, X, groups, intercept=False)


def disjoint(rng, X, groups):
    return basic(rng, X, csr.Groups.from_labels(np.arange(12) % 4))


def singletons(rng, X, groups):
    return basic(rng, X, csr.Groups([[j] for j in range(12)], n_features=12))


def free_groups(rng, X, groups):
    return basic(rng, X, groups.with_weights(rng.choice([0.0, 1.0, 2.0], size=len(groups))))


def few_features(rng, X, groups):
    return basic(rng, X, csr.Groups([[0, 1], [1, 2]], n_features=12))


def equal_groups(rng, X, groups):
    return basic(rng, X, csr.Groups([*groups, *groups, *groups], n_features=12), lam=0.1)


def two_terms(rng, X, groups):
    problem = basic(rng, X, groups)
    loss, l1, term = problem.terms
    return csr.Problem(problem.model, loss + l1 + term + 0.2 * csr.GroupLasso(some_groups(rng, 12)))


KINDS = (
    basic, sample_weights, rows, no_l1, zero_l1_weights, unpenalised, quadratic, network, squared, squared_hinge,
    multinomial, without_intercept, disjoint, singletons, free_groups, few_features, equal_groups, two_terms,
)  # fmt: skip


def build(kind, seed, sparse):
    rng = np.random.default_rng(seed)
    X = data(rng, sparse=sparse)
    return kind(rng, X, some_groups(rng, 12))


def assert_agree(solution, reference):
    """Either bound is below the other's objective."""
    slack = 1e-11 * abs(reference.objective)
    assert solution.certificate.kind == "duality_gap"
    assert solution.certificate.lower_bound <= reference.objective + slack
    assert reference.certificate.lower_bound <= solution.objective + slack
