"""The proportional odds model for given cut points as two logistic losses, as in docs/estimators.md."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr


def test_two_logistic_losses_are_the_likelihood_of_proportional_odds():
    rng = np.random.default_rng(0)
    X, cuts = rng.normal(size=(80, 4)), np.array([-1.0, 0.0, 1.5])
    y = np.searchsorted(cuts, X[:, 0] + rng.logistic(size=80))
    not_first, not_last = np.flatnonzero(y > 0), np.flatnonzero(y < 3)
    above = csr.Logistic(np.ones(len(not_first)), not_first, classes=(0, 1), offset=-cuts[y[not_first] - 1])
    below = csr.Logistic(np.zeros(len(not_last)), not_last, classes=(0, 1), offset=-cuts[y[not_last]])
    problem = csr.Problem(csr.Linear(X), above + below + 2.0 * csr.L1())
    edges = np.concatenate([[-np.inf], cuts, [np.inf]])

    def likelihood(w, b):
        below, above = (1.0 / (1.0 + np.exp(X @ w + b - edges[y + step])) for step in (1, 0))
        return -np.sum(np.log(below - above)) + 2.0 * np.abs(w).sum()

    points = [(np.zeros(4), 0.0), *((rng.normal(size=4), rng.normal()) for _ in range(3))]
    constants = [likelihood(w, b) - problem.value_at(w[:, None], np.array([b])) for w, b in points]
    assert np.ptp(constants) <= 1e-10
    solution = problem.solve()
    assert solution.status == "optimal" and solution.certificate.kind == "duality_gap"
    best = likelihood(solution.coef, solution.intercept)
    assert best == pytest.approx(solution.objective + constants[0])
    assert all(best <= likelihood(solution.coef + step, solution.intercept) for step in 0.05 * rng.normal(size=(20, 4)))
