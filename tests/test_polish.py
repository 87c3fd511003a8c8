"""Polished conic solutions: the support of the fast solver, exact zeros, and a certificate that is no worse."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 15))
Y = X[:, 0] - 2.0 * X[:, 4] + 1.5 * X[:, 5] + 0.5 * RNG.normal(size=60) + 1.0
GROUPS = csr.Groups([[0, 1, 2], [2, 3], [4, 5, 6], [7, 8, 9, 10], [11, 12, 13, 14]])
PENALTIES = {
    "l1": 8.0 * csr.L1(),
    "elastic net": 5.0 * csr.L1() + 1.0 * csr.Ridge(),
    "groups": 8.0 * csr.GroupLasso(GROUPS),
    "sparse groups": 3.0 * csr.L1() + 5.0 * csr.GroupLasso(GROUPS),
    "nonnegative": 2.0 * csr.L1() + csr.NonNegative(),
    "box": csr.Box(-0.5, 0.5) + 1.0 * csr.L1(),
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["Squared", "Logistic"])
def test_the_support_is_that_of_an_accurate_solution(penalty, loss):
    atom = csr.Squared(Y) if loss == "Squared" else csr.Logistic(Y > 1.0)
    problem = csr.Problem(csr.Linear(X), atom + PENALTIES[penalty])
    plain, polished = problem.solve("cvxpy"), problem.solve("cvxpy", polish=True)
    accurate = problem.solve(tol=1e-11) if "groups" not in penalty else problem.solve(tol=1e-9)
    assert polished.status == "optimal" and polished.solver == "cvxpy"
    assert polished.certificate.gap <= max(plain.certificate.gap, 1e-6 * plain.objective)
    assert polished.objective <= plain.objective + 1e-9 * abs(plain.objective)
    clear = np.abs(accurate.coef) > 1e-5
    assert np.array_equal(polished.coef != 0, clear)
    assert polished.coef == pytest.approx(accurate.coef, abs=2e-5)
    assert len(polished.history) == len(plain.history) + 1


def test_weights_at_a_bound_are_exact():
    problem = csr.Problem(csr.Linear(X), csr.Squared(Y) + csr.Box(-0.5, 0.5))
    coef = problem.solve("cvxpy", polish=True).coef
    assert {coef[0], coef[4], coef[5]} == {0.5, -0.5}


def test_smooth_penalties_need_no_polish():
    problem = csr.Problem(csr.Linear(X), csr.Squared(Y) + csr.Ridge())
    assert np.array_equal(problem.solve("cvxpy", polish=True).coef, problem.solve("cvxpy").coef)


def test_several_outputs():
    problem = csr.Problem(csr.Linear(X), csr.Multinomial(np.digitize(Y, [0.0, 2.0])) + 3.0 * csr.L1())
    polished = problem.solve("cvxpy", polish=True)
    accurate = problem.solve(tol=1e-9)
    assert polished.status == "optimal"
    assert np.array_equal(polished.coef != 0, np.abs(accurate.coef) > 1e-5)


def test_other_solvers_and_solvers_of_cvxpy():
    problem = csr.Problem(csr.Linear(X), csr.Squared(Y) + 8.0 * csr.L1())
    with pytest.raises(ValueError, match="polish=True is for solver='cvxpy'"):
        problem.solve("fista", polish=True)
    scs = problem.solve("cvxpy", cvxpy_solver="SCS", polish=True)
    assert np.array_equal(scs.coef != 0, problem.solve(tol=1e-9).coef != 0)
