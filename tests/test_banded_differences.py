"""Trend filtering by interior points: proved, equal to CVXPY, and taken by auto."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates.directions.free_directions import free_directions
from cvxstructreg.penalties.composed import differences
from cvxstructreg.solvers.denoising import banded_differences, interior_point
from cvxstructreg.solvers.denoising.banded_systems import NormalEquations, SaddlePoint
from cvxstructreg.solvers.denoising.interior_point import InteriorPoint

NAME = "banded_interior_point"
RNG = np.random.default_rng(0)
N = 24
Y = np.interp(np.arange(N), [0, 9, 16, 23], [0.0, 2.0, -1.0, 1.0]) + 0.2 * RNG.normal(size=N)
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(N - 1)], n_nodes=N)


def problem_of(penalty, y=Y, X=None, intercept=False, **loss):
    X = sp.eye_array(len(y), format="csr") if X is None else X
    return csr.Problem(csr.Linear(X, intercept=intercept), csr.Squared(y, **loss) + penalty)


def assert_equal_to_cvxpy(problem, solution):
    program = problem.to_cvxpy()
    program.solve("CLARABEL")
    size = max(abs(program.value), 1e-6)
    assert abs(solution.objective - program.value) <= 2e-6 * size
    assert solution.certificate.lower_bound <= program.value + 1e-7 * size


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("strength", [1e-3, 0.3, 30.0, 1e4])
def test_trends_of_all_orders_agree_with_cvxpy(order, strength):
    problem = problem_of(strength * csr.TrendFilter(order))
    solution = problem.solve(NAME, tol=1e-6)
    assert solution.status == "optimal"
    assert_equal_to_cvxpy(problem, solution)


CASES = {
    "sample weights": (csr.TrendFilter(2), {"sample_weight": RNG.uniform(0.1, 3.0, N)}),
    "several outputs": (0.5 * csr.TrendFilter(2), {"y": np.column_stack([Y, -2.0 * Y, np.zeros(N)])}),
    "diagonal": (csr.TrendFilter(3), {"X": np.diag(RNG.uniform(0.5, 2.0, N) * RNG.choice([-1, 1], N))}),
    "intercept": (csr.TrendFilter(2), {"intercept": True}),
    "far from zero": (csr.TrendFilter(2), {"y": Y + 1e5}),
    "constant": (csr.TrendFilter(2), {"y": np.full(N, 0.1)}),
    "zero": (csr.TrendFilter(3), {"y": np.zeros(N)}),
    "straight line": (csr.TrendFilter(2), {"y": 0.125 * np.arange(N)}),
    "ridge": (csr.TrendFilter(2) + 0.5 * csr.Ridge(), {}),
    "ridge and L1": (csr.TrendFilter(2) + 0.5 * csr.Ridge() + 0.3 * csr.L1(), {}),
    "L1 of some": (0.4 * csr.FusedLasso(CHAIN) + csr.L1(weights=np.arange(N) % 3), {}),
    "two orders": (0.3 * csr.TrendFilter(1) + 2.0 * csr.TrendFilter(2), {}),
    "composed": (csr.compose(csr.L1(weights=np.arange(N - 3) % 4), differences(N, 3)), {}),
    "empty row": (csr.compose(csr.L1(), sp.csr_array(np.diag(np.arange(N) > 3.0) - np.eye(N, k=1))), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_everything_of_this_shape_agrees_with_cvxpy(name):
    penalty, how = CASES[name]
    problem = problem_of(penalty, **how)
    solution = problem.solve(tol=1e-6)
    assert (solution.solver, solution.status) == (NAME, "optimal")
    assert_equal_to_cvxpy(problem, solution)


@pytest.mark.parametrize(("order", "strength"), [(2, 1e5), (3, 1e6), (4, 1e4)])
def test_long_signals_are_proved_although_the_normal_equations_fail(order, strength):
    n = 1_500
    y = np.interp(np.arange(n), np.linspace(0, n, 6), RNG.normal(size=6)) + 0.2 * RNG.normal(size=n)
    solution = problem_of(strength * csr.TrendFilter(order), y).solve(tol=1e-6)
    assert (solution.solver, solution.status) == (NAME, "optimal")


def test_above_the_largest_strength_the_fit_is_a_polynomial():
    solution = problem_of(1e5 * csr.TrendFilter(3)).solve(tol=1e-6)
    x = np.arange(N)
    assert np.allclose(solution.coef, np.polyval(np.polyfit(x, Y, 2), x), atol=1e-3)


def test_the_two_systems_give_the_same_steps():
    K = sp.csr_array(differences(12, 2))
    s, h, g = RNG.uniform(1, 2, 12), RNG.uniform(1, 2, 10), RNG.normal(size=10)
    normal, saddle = NormalEquations(K, s), SaddlePoint(K, s)
    assert normal.factorise(h)
    assert saddle.factorise(h)
    dw, dt = saddle.solve(np.zeros(12), g)
    assert np.allclose(dt, normal.solve(g))
    assert np.allclose(s * dw + K.T @ dt, 0.0)
    assert np.allclose(K @ dw - h * dt, -g)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_the_band_is_that_of_the_product(order):
    K = sp.csr_array(sp.diags_array(RNG.uniform(1, 2, 12 - order)) @ differences(12, order))
    s = RNG.uniform(1, 2, 12)
    for matrix in (K, K[[0, 2, 3]]):
        product = (matrix @ sp.diags_array(1 / s) @ matrix.T).toarray()
        band = NormalEquations(matrix, s).band
        for offset in range(len(product)):
            expected = np.diagonal(product, -offset)
            assert np.allclose(band[offset, : expected.size] if offset < len(band) else 0.0, expected)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_compiled_steps_are_the_steps(monkeypatch, order):
    y = np.cumsum(RNG.normal(size=60))
    K = sp.csr_array(differences(60, order))
    plain, compiled = (InteriorPoint(K, np.ones(60), y, 1e-6) for _ in range(2))
    for _ in range(4):
        plain.step()
    monkeypatch.setattr(interior_point, "COMPILE_FROM", 0)
    for _ in range(4):
        compiled.step()
    assert np.allclose(compiled.t, plain.t, rtol=1e-8, atol=1e-10)
    assert np.allclose(compiled.z, plain.z, rtol=1e-6, atol=1e-10)


def test_a_failing_factorisation_switches_to_pivots(monkeypatch):
    monkeypatch.setattr(NormalEquations, "factorise", lambda self, h: False)
    method = InteriorPoint(sp.csr_array(differences(N, 2)), np.ones(N), Y, 1e-6)
    assert isinstance(method.system, NormalEquations)
    while not method.done:
        assert method.step()
    assert isinstance(method.system, SaddlePoint)


def test_polynomials_are_the_free_directions_of_trends():
    for order in (2, 3, 4):
        problem = problem_of(csr.TrendFilter(order))
        basis = free_directions(problem.normal_form, np.zeros((N, 1)))
        assert basis.shape == (N, order)
        assert np.allclose(differences(N, order) @ basis, 0.0, atol=1e-12)
        assert np.allclose(basis.T @ basis, np.eye(order))


def test_other_problems_are_refused():
    trend, model = csr.TrendFilter(2), csr.Linear(np.eye(N), intercept=False)
    wide = csr.Graph.from_edges([(0, N - 1)], n_nodes=N)
    cases = {
        "diagonal design": csr.Problem(csr.Linear(np.eye(N) + np.eye(N, k=1)), csr.Squared(Y) + trend),
        "without zeros": csr.Problem(csr.Linear(np.diag(np.arange(N))), csr.Squared(Y) + trend),
        "intercept": problem_of(trend + csr.Ridge(), intercept=True),
        "squared loss": csr.Problem(model, csr.Logistic(Y > 0) + trend),
        "no other term": problem_of(trend + csr.GroupLasso(csr.Groups([[0, 1]], n_features=N))),
        "apart": problem_of(csr.FusedLasso(wide)),
        "ridge": problem_of(trend + csr.Laplacian(CHAIN)),
        "bounds": problem_of(trend + csr.NonNegative()),
    }
    for words, problem in cases.items():
        refusal = banded_differences.SOLVER.refusal(problem)
        assert refusal is not None, words
        assert words in refusal.reason, (words, refusal.reason)
