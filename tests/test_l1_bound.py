"""The quick bound for problems whose only term on the weights is L1, against the general search."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.certificates.bounds import score_duals
from cvxstructreg.certificates.dual_point import NO_PROOF
from cvxstructreg.certificates.l1_dual import l1_proof
from cvxstructreg.certificates.weight_dual import WeightDual

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 20))
Y = X[:, :3].sum(axis=1) + RNG.normal(size=60)
LOSSES = {
    "Squared": csr.Squared(Y),
    "Logistic": csr.Logistic((Y > 0).astype(int), sample_weight=RNG.uniform(0.0, 2.0, size=60)),
    "Gamma": csr.Gamma(np.exp(0.3 * Y), offset=0.1 * Y),
    "Multinomial": csr.Multinomial(np.digitize(Y, [-1.0, 1.0])),
}


def starts(problem, theta, b):
    parts = problem.normal_form
    scores = problem.model.scores(theta, b)
    objective = problem.value_at(theta, b, scores)
    found = [start for start in score_duals(parts, theta, b, scores, {}, objective) if start is not None]
    quadratic = parts.quadratic_value_and_grad(theta)
    return [(start, WeightDual(parts, start, {}, 50, (objective, 0.0), quadratic).best_proof()) for start in found]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_the_quick_bound_is_that_of_the_general_search(name, intercept):
    problem = csr.Problem(csr.Linear(X, intercept=intercept), 0.7 * LOSSES[name] + 2.0 * csr.L1())
    optimum = problem.solve(tol=1e-9)
    theta, b = problem.shaped(optimum.coef, optimum.intercept)
    for part in (1.0, 0.999, 0.5):
        for start, general in starts(problem, part * theta, b):
            quick = l1_proof(problem.normal_form, start)
            assert quick.bound <= optimum.objective
            assert quick.bound == pytest.approx(general.bound, rel=1e-10)
            assert np.abs(quick.dual.separable).max() <= 2.0
            pull = X.T @ np.asarray(quick.dual.scores)
            assert np.abs(pull + quick.dual.separable).max() <= 1e-12 * np.abs(X).sum()


FREE = csr.L1(weights=[0.0] + [1.0] * 19)


@pytest.mark.parametrize("penalty", [csr.L1() + csr.Ridge(), csr.L1() + csr.Box(-1.0, 1.0), csr.Ridge(), 2.0 * FREE])
def test_other_problems_have_no_quick_bound(penalty):
    problem = csr.Problem(csr.Linear(X, intercept=False), LOSSES["Squared"] + penalty)
    theta, b = np.full((20, 1), 0.1), np.zeros(1)
    (start, _), *_ = starts(problem, theta, b)
    assert l1_proof(problem.normal_form, start) == NO_PROOF
