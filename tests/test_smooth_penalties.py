"""Smooth penalties are used as such: by newton, lbfgs and fista, and beside nonsmooth terms."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom
from cvxstructreg.testing import check_atom, check_solver


class LogCosh(Atom):
    """sum_j log(1 + exp(w_j)) + log(1 + exp(-w_j)), a smooth absolute value."""

    def expr(self, z):
        return cp.sum(cp.logistic(z) + cp.logistic(-z))

    def value(self, z):
        return float(np.sum(np.logaddexp(0.0, z) + np.logaddexp(0.0, -z)))

    def grad(self, z):
        return np.tanh(0.5 * z)

    def hessp(self, z, p):
        return 0.5 * p / np.cosh(0.5 * z) ** 2

    def lipschitz(self):
        return 0.5


def data(n=60, d=8, sparse=False, k=1):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.6)
    y = (X @ np.linspace(-1, 1, d) + rng.normal(size=n) > 0).astype(int)
    y = y if k == 1 else (np.arange(n) + y) % k
    return csr.Linear(sp.csr_array(X) if sparse else X), csr.Logistic(y) if k == 1 else csr.Multinomial(y)


def given(w):
    return cp.sum(cp.logistic(w) + cp.logistic(-w))


FORMULAS = {"grad": LogCosh().grad, "hessp": LogCosh().hessp, "lipschitz": 0.5}
PENALTIES = {
    "huber": csr.HuberPenalty(0.3),
    "huber of differences": csr.compose(csr.HuberPenalty(0.3), csr.differences(8)),
    "expression with formulas": csr.FromExpression(given, **FORMULAS),
    "recognised huber": csr.FromExpression(lambda w: cp.sum(cp.huber(cp.diff(w), 0.3))),
}


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "fista", "cvxpy"])
@pytest.mark.parametrize("name", PENALTIES)
def test_smooth_penalties_are_solved_and_certified(name, solver):
    model, loss = data()
    check_solver(solver, csr.Problem(model, loss + 2.0 * PENALTIES[name]))


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "fista"])
def test_with_sparse_data_several_outputs_and_quadratic_terms(solver):
    for sparse, k in ((True, 1), (False, 3), (True, 3)):
        model, loss = data(sparse=sparse, k=k)
        quadratic = csr.Quadratic(factor=csr.differences(8))
        check_solver(solver, csr.Problem(model, loss + 2.0 * csr.HuberPenalty(0.3) + 0.1 * csr.Ridge() + quadratic))


def test_a_smooth_penalty_without_conjugate_is_certified_by_strong_convexity():
    check_atom(LogCosh(), (4, 2))
    model, loss = data()
    problem = csr.Problem(model, loss + 2.0 * LogCosh() + 0.5 * csr.Ridge())
    reference = problem.to_cvxpy().solve(solver="CLARABEL")
    for solver in ("newton", "lbfgs", "fista"):
        solution = problem.solve(solver)
        assert solution.certificate.kind == "strong_convexity" and solution.status == "optimal"
        assert abs(solution.objective - reference) <= solution.certificate.gap + 1e-6 * reference


def test_auto_prefers_the_newton_methods():
    model, loss = data()
    assert csr.Problem(model, loss + csr.HuberPenalty()).solve().solver == "newton"
    mixed = csr.Problem(model, loss + csr.compose(csr.HuberPenalty(0.2), csr.differences(8)) + 0.5 * csr.L1())
    assert mixed.solve().solver == "interior_point"
    for solver in ("semismooth_newton", "fista", "admm"):
        check_solver(solver, mixed)


def test_a_gradient_without_second_derivatives_is_enough_for_fista_and_lbfgs():
    model, loss = data()
    formulas = {name: FORMULAS[name] for name in ("grad", "lipschitz")}
    problem = csr.Problem(model, loss + 2.0 * csr.FromExpression(given, **formulas))
    assert "hessp" in csr.solvers.refusals(problem)["newton"]
    check_solver("fista", problem)
    check_solver("lbfgs", problem)
