"""Plain CVXPY problems: recognised, solved and proved, or refused in words; never solved wrongly."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from plain_problems import CASES, REFUSED, data

import cvxstructreg as csr


@pytest.mark.filterwarnings("ignore:The problem includes expressions that don't support CPP backend")
@pytest.mark.parametrize("name", CASES)
def test_plain_problem_agrees_with_clarabel_within_its_certificate(name):
    prob = CASES[name](data())
    value = prob.solve(method="structreg")
    certificate = prob.solver_stats.extra_stats
    assert prob.status == cp.OPTIMAL and certificate.kind != "kkt"
    assert value == prob.value == prob.objective.value
    assert all(np.all(constraint.violation() <= 1e-7) for constraint in prob.constraints)
    reference = prob.solve(solver=cp.CLARABEL)
    assert abs(value - reference) <= certificate.gap + 1e-6 * (1.0 + abs(reference))


@pytest.mark.parametrize("name", CASES)
def test_the_objective_is_the_same_at_other_points(name):
    prob = CASES[name](data())
    problem = csr.from_cvxpy(prob)
    rng = np.random.default_rng(1)
    for _ in range(2):
        for variable in problem.layout.variables:
            variable.value = variable.project(rng.normal(size=variable.shape))
        found = problem.value(*problem.weights_at())
        auxiliary = len(prob.variables()) > len(problem.layout.variables)
        if np.isfinite(found) and not auxiliary:  # infinite: a constraint is violated
            expected = problem.sign * prob.objective.value - problem.constant
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", REFUSED)
def test_other_problems_are_refused_in_words(name):
    make, words = REFUSED[name]
    with pytest.raises(csr.UnrecognisedError, match=words) as refusal:
        csr.from_cvxpy(make(data()))
    assert "prob.solve()" in str(refusal.value)


def test_there_are_enough_cases():
    assert len(CASES) >= 60
    assert sum(name.startswith("textbook") for name in CASES) >= 15
