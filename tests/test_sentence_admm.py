"""Overlapping groups by the published ADMM, against the reference."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from overlapping_group_problems import assert_agree, basic, build, multinomial, no_l1, quadratic, two_terms

import cvxstructreg as csr
from cvxstructreg.solvers.groups import group_newton, sentence_admm
from cvxstructreg.solvers.iterate import Iterate


@pytest.mark.parametrize("kind", [basic, no_l1, quadratic, multinomial, two_terms])
def test_sentence_admm_converges(kind):
    problem = build(kind, 11, True)
    solution = problem.solve("sentence_admm", tol=1e-5)
    assert 0 <= solution.certificate.relative_gap <= 1e-5
    assert_agree(solution, problem.solve("cvxpy"))


def test_sentence_admm_truncated_has_an_honest_gap():
    problem = build(basic, 12, False)
    optimum = problem.solve("group_newton", tol=1e-9).objective
    gaps = []
    for max_iter in (1, 5, 50):
        with pytest.warns(csr.InaccurateWarning):
            solution = problem.solve("sentence_admm", tol=1e-12, max_iter=max_iter, rho=10.0)
        assert solution.objective == pytest.approx(problem.value(solution.coef, solution.intercept))
        assert solution.certificate.gap >= solution.objective - optimum - 1e-9
        gaps.append(solution.objective - optimum)
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2] > 0


def test_sentence_admm_stops_by_its_own_rule():
    problem = build(basic, 13, False)
    with pytest.warns(csr.InaccurateWarning, match="inaccurate"):
        stopped = problem.solve("sentence_admm", tol=1e-12, stop=True)
    assert 1 < stopped.n_iter < 1000
    with pytest.raises(ValueError, match="rho"):
        problem.solve("sentence_admm", rho=0.0)


def test_sentence_admm_stops_by_the_change_of_w():
    problem = build(basic, 15, False)
    start = Iterate(np.zeros((problem.model.n_weights, 1)), np.zeros(1))
    before, changes = start.theta, []
    for iterate in islice(sentence_admm.run(problem, start, 1e-12, change=1e-2), 500):
        changes.append(np.linalg.norm(iterate.theta - before) / np.linalg.norm(iterate.theta))
        before = iterate.theta
        if iterate.exhausted:
            break
    assert iterate.exhausted and len(changes) > 1
    assert changes[-1] <= 1e-2 < min(changes[:-1])
    with pytest.raises(ValueError, match="change must be positive"):
        problem.solve("sentence_admm", change=0.0)


def test_sentence_admm_starts_from_a_solution():
    problem = build(basic, 14, False)
    solution = problem.solve("group_newton", tol=1e-8)
    assert problem.solve("sentence_admm", tol=1e-5, warm_start=solution).n_iter == 1
    assert sentence_admm.SOLVER.needs == group_newton.SOLVER.needs
