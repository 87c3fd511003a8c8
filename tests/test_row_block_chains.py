"""Chains of overlapping groups in blocks of rows: the dual points of neighbouring groups depend on each other."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr


def chain(n, d, l1, strength, seed):
    """Frequent and rare features in groups of eight, each of which shares six features with the next."""
    rng = np.random.default_rng(seed)
    weights = np.zeros(d)
    weights[:20] = rng.normal(size=20)
    sums = np.cumsum(1.0 / np.arange(1, d + 1) ** 0.6)
    columns = np.searchsorted(sums / sums[-1], rng.random((n, 20))).clip(0, d - 1).ravel()
    X = sp.csr_array((rng.random(20 * n), columns, np.arange(0, 20 * n + 1, 20)), shape=(n, d))
    X.sum_duplicates()
    y = np.where(X @ weights - X.sum(axis=1) * weights.mean() + rng.logistic(size=n) > 0, 1, -1)
    groups = csr.Groups([range(i, min(i + 8, d)) for i in range(0, d, 2)], n_features=d)
    return X, csr.Logistic(y) + l1 * n * csr.L1() + strength * n * csr.GroupLasso(groups)


@pytest.mark.parametrize("solver", ["working_columns", "gram_columns"])
@pytest.mark.parametrize("l1", [1e-3, 0.0])
def test_chains_of_groups_are_proved(solver, l1):
    X, objective = chain(600, 100, l1, 4e-3, seed=2)
    memory = csr.Problem(csr.Linear(X), objective).solve()
    blocks = csr.RowBlocks([X[:200], X[200:]], engine="serial")
    found = csr.Problem(csr.Linear(blocks), objective).solve(solver)
    assert memory.status == found.status == "optimal" and found.n_passes <= 12
    assert abs(found.objective - memory.objective) <= max(found.certificate.gap, memory.certificate.gap)
