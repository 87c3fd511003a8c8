"""Newton systems by the rows at a kink."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.solvers.general import dense_system, semismooth_newton
from cvxstructreg.solvers.general import row_system as by_rows
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian
from cvxstructreg.solvers.general.row_system import RowSystem

RNG = np.random.default_rng(4)
N, D = 90, 60
X = RNG.normal(size=(N, D))
Y = X[:, :5] @ RNG.normal(size=5) + RNG.normal(size=N)
GROUPS = csr.GroupLasso(csr.Groups([range(i, min(i + 8, D)) for i in range(0, D - 2, 5)], n_features=D))


def _system(loss, intercept=True, extra=None):
    terms = loss + 2.0 * GROUPS if extra is None else loss + 2.0 * GROUPS + extra
    function = AugmentedLagrangian(csr.Problem(csr.Linear(X, intercept=intercept), terms))
    rng = np.random.default_rng(1)
    for term in function.rough:
        term.q, term.sigma = term.dual_set.project(rng.normal(size=term.q.shape)), 3.0 if term.of_scores else 1.3
    at = function.at(rng.normal(size=(function.size, 1)))
    return function, at, function.newton_matrix(at)[0]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("extra", [None, 0.1 * csr.L1()])
def test_steps_equal_those_of_the_dense_matrix(intercept, extra):
    function, at, system = _system(csr.Absolute(Y), intercept, extra)
    assert isinstance(system, RowSystem) and 0 < len(system.rows) < D / 3 and len(system.V) > 0
    right = RNG.normal(size=(function.size, 1))
    dense = function.dense_system(at)[0]
    H = dense.whole
    dx = system.direction(right, typical=1e3)
    assert system.dense is None
    np.testing.assert_allclose(system.product(right), H @ right, atol=1e-10)
    np.testing.assert_allclose(dx, dense.direction(right, typical=1e3), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(H @ system.solve(right), right, atol=1e-7)


def test_an_inaccurate_step_is_left_to_the_dense_matrix(monkeypatch):
    function, at, system = _system(csr.Absolute(Y))
    monkeypatch.setattr(by_rows, "RESIDUAL", -1.0)
    right = RNG.normal(size=(function.size, 1))
    dx = system.direction(right, typical=1e3)
    assert system.dense is not None
    np.testing.assert_array_equal(dx, function.dense_system(at)[0].direction(right, typical=1e3))


def test_other_problems_keep_the_dense_matrix():
    for loss, extra in ((csr.Squared(Y), None), (csr.Absolute(Y), csr.Ridge()), (csr.MulticlassHinge(Y > 0), None)):
        terms = loss + GROUPS if extra is None else loss + GROUPS + extra
        assert not AugmentedLagrangian(csr.Problem(csr.Linear(X), terms)).by_rows


@pytest.mark.parametrize("loss", [csr.Hinge(Y > 0), csr.Absolute(Y), csr.Quantile(Y, quantile=0.8)])
def test_solutions_are_those_of_the_dense_matrix(loss, monkeypatch):
    problem = csr.Problem(csr.Linear(X), loss + 4.0 * GROUPS)
    found = problem.solve("semismooth_newton", tol=1e-8)
    monkeypatch.setattr(AugmentedLagrangian, "by_rows", False)
    dense = csr.Problem(csr.Linear(X), loss + 4.0 * GROUPS).solve("semismooth_newton", tol=1e-8)
    assert found.status == dense.status == "optimal"
    assert abs(found.objective - dense.objective) <= 2e-8 * dense.objective


def test_single_precision_gives_nearly_the_same_step():
    function, at, _ = _system(csr.Absolute(Y))
    right = RNG.normal(size=(function.size, 1))
    steps = []
    for single in (False, True):
        function.single = single
        system = function.dense_system(at)[0]
        assert system.H.dtype == (np.float32 if single else np.float64)
        steps.append(system.direction(1e-50 * right, typical=1e3))
    assert function.single
    np.testing.assert_allclose(steps[1], steps[0], rtol=1e-3, atol=1e-3 * np.max(np.abs(steps[0])))
    assert np.any(steps[1] != steps[0])


def test_dense_systems_of_single_precision_are_preferred_to_middling_ones_by_rows(monkeypatch):
    function, at, system = _system(csr.Absolute(Y))
    function.single = True
    monkeypatch.setattr(by_rows, "FEW_SINGLE", (len(system.rows) + len(system.V)) / D)
    assert isinstance(function.newton_matrix(at)[0], RowSystem)
    monkeypatch.setattr(by_rows, "FEW_SINGLE", (len(system.rows) + len(system.V) - 0.5) / D)
    assert not isinstance(function.newton_matrix(at)[0], RowSystem)


def test_a_matrix_without_factor_ends_single_precision():
    function, at, _ = _system(csr.Absolute(Y))
    function.single = True
    system = function.dense_system(at)[0]
    system.diagonal[0] = -1.0
    assert np.all(np.isfinite(system.direction(np.ones((function.size, 1)), typical=1e3)))
    assert not function.single


@pytest.mark.parametrize(("unit", "expected"), [(1.0, {"float32", "float64"}), (1e12, {"float64"})])
def test_systems_are_in_single_precision_far_from_the_solution(monkeypatch, unit, expected):
    seen = []
    first = dense_system.DenseSystem.__init__
    monkeypatch.setattr(
        dense_system.DenseSystem, "__init__", lambda *args: seen.append(args[2].dtype.name) or first(*args)
    )
    monkeypatch.setattr(by_rows, "FEW_ROWS", 0.0)  # dense systems to the end
    problem = csr.Problem(csr.Linear(unit * X), csr.Absolute(Y) + 4.0 * unit * GROUPS)
    solution = problem.solve("semismooth_newton", tol=1e-9)
    assert solution.status == "optimal"
    assert set(seen) == expected
    assert seen == sorted(seen)  # never back to single precision
    assert semismooth_newton.SINGLE_GAP > 1e-9
