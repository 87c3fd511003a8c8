"""Certificates of terms whose prox comes from a cone solver: an inaccurate or missing prox must not fool them."""

from __future__ import annotations

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.core import default_prox
from cvxstructreg.core.atom import Atom
from cvxstructreg.runtime.quiet_problem import QuietProblem


class Largest(Atom):
    """max_j |z_j|, by its definition alone."""

    def expr(self, z):
        return cp.max(cp.abs(z))


def largest_problem(strength):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    y = X @ [3.0, -2.0, 1.0] + rng.normal(size=12)
    return csr.Problem(csr.Linear(X), csr.Squared(y) + strength * Largest() + 0.5 * csr.Ridge())


class Rough(default_prox._ProxProblem):
    """A solver that is wrong by 1e-3 in its own units and says so."""

    def minimiser(self, v, t):
        found = super().minimiser(v, t)
        self.accurate = False
        return found + 1e-3 * self.size


def test_an_inaccurate_prox_is_charged_to_the_bound(monkeypatch):
    problem = largest_problem(strength=200.0)  # the optimal weights are zero
    optimum = problem.solve("cvxpy", tol=1e-9)
    exact = csr.certify(problem, [0.0, 0.0, 0.0], optimum.intercept)
    assert exact.kind == "strong_convexity"
    assert exact.relative_gap < 1e-8
    monkeypatch.setattr(default_prox, "_ProxProblem", Rough)
    default_prox._IDLE.clear()
    rough = csr.certify(problem, [0.0, 0.0, 0.0], optimum.intercept)
    default_prox._IDLE.clear()
    assert rough.kind == "kkt" or rough.lower_bound <= exact.objective


def test_a_wrong_residual_is_not_stationary(monkeypatch):
    problem = csr.Problem(csr.Linear(np.eye(3)), csr.Squared([3.0, -2.0, 1.0]) + 0.5 * Largest())
    optimum = problem.solve("cvxpy", tol=1e-8)
    assert csr.certify(problem, optimum.coef, optimum.intercept).residual < 1e-6
    monkeypatch.setattr(default_prox, "_ProxProblem", Rough)
    default_prox._IDLE.clear()
    assert csr.certify(problem, optimum.coef, optimum.intercept).residual > 1e-4
    default_prox._IDLE.clear()


def test_the_error_of_a_prox():
    v = np.array([[300.0], [-200.0], [100.0]])
    assert default_prox.prox_with_error(csr.L1(), v, 1.0)[1] < 1e-14
    x, error = default_prox.prox_with_error(Largest(), v, 10.0)
    assert x.ravel() == pytest.approx([290.0, -200.0, 100.0], rel=1e-7)
    assert default_prox.LEAST_ERROR <= error < 1e-6


@pytest.mark.parametrize("intercept", [500.0, 869.0])
def test_a_point_that_the_cone_solver_cannot_reach_has_a_certificate(intercept):
    """The gradient of the loss is above 1e70, and Clarabel finds no prox in the search for dual points."""
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(3, 2))
    gram = 1e-7 * np.exp(-((Z[:, None] - Z) ** 2).sum(axis=-1))
    loss = csr.Tweedie(9.0 * rng.random(3), power=1.5)
    power = csr.FromExpression(lambda w: cp.sum(cp.power(cp.abs(w), 1.5)))
    problem = csr.Problem(csr.Kernel(gram), loss + 1e-7 * csr.RKHSNorm() + 7e-7 * power)
    certificate = csr.certify(problem, 200.0 * rng.normal(size=3), [intercept], search=False)
    assert certificate.status(1e-6) is None


def test_a_rough_point_outside_a_term_of_strength_zero_gives_no_warning():
    """CVXPY evaluates the objective where a solver was stopped: here 0 times infinity."""
    x = cp.Variable()
    outside = cp.Parameter(nonneg=True, value=0.0) * cp.transforms.indicator([x <= 1.0])
    problem = QuietProblem(cp.Minimize(outside + (x - 5.0) ** 2))
    stopped = SimpleNamespace(
        status=cp.settings.USER_LIMIT, primal_vars={x.id: np.array(3.0)}, dual_vars={}, opt_val=4.0, attr={}
    )
    problem.unpack_results(None, SimpleNamespace(invert=lambda *_: stopped), None)
    assert x.value == 3.0
