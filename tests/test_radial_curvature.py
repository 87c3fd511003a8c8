"""How group_newton starts and keeps curvature of groups, against a few lines of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.solvers.groups import group_newton, group_steps, group_subproblem
from cvxstructreg.solvers.groups.radial_curvature import RadialCurvature
from cvxstructreg.solvers.iterate import Iterate

RANGES = [range(i, min(i + 4, 20)) for i in range(0, 18, 3)]


@pytest.fixture
def huber():
    """Two groups of two and three coordinates, far outside and inside their balls at w = (1, 1, 0.1, 0.1)."""
    indptr, indices = np.array([0, 2, 5]), np.array([0, 1, 1, 2, 3], dtype=np.uint32)
    indices.flags.writeable = False
    return indptr, indices, np.array([1.0, 9.0]), np.array([4.0, 2.0]), np.array([0.6, 0.0, 1.0, 2.0, 2.0])


def test_a_group_that_turns_keeps_curvature_along_itself(huber):
    curvature, position = RadialCurvature(huber), np.arange(4, dtype=np.int32)
    a = np.array([4.6, 4.0])
    expected = (0.6 * a[0] / np.linalg.norm(a)) ** 2  # y / c = (0.6, 0)
    np.testing.assert_allclose(curvature.agreement(np.array([1.0, 1.0, 0.1, 0.1]), position), [expected])
    assert curvature.agreement(np.array([-1.0, 0.0, 0.1, 0.1]), position) == [0.0]  # opposite to y
    one_free = np.array([0, -1, 1, 2], dtype=np.int32)
    assert not curvature.agreement(np.array([1.0, 1.0, 0.1, 0.1]), one_free).size


def test_dual_variables_follow_their_linearised_equation(huber):
    indptr, indices, radii, sigma, y = huber
    w, step, length = np.array([1.0, 1.0, 0.1, 0.1]), np.array([0.1, -0.2, 0.3, 0.1]), 0.5
    curvature = RadialCurvature(huber)
    curvature.agreement(w, np.arange(4, dtype=np.int32))
    curvature.follow(step, length)
    for g in range(2):
        part = slice(indptr[g], indptr[g + 1])
        q, a, dw = y[part] / radii[g], y[part] + sigma[g] * w[indices[part]], step[indices[part]]
        norm = np.linalg.norm(a)
        u, da = a / max(norm, radii[g]), sigma[g] * dw / max(norm, radii[g])
        moved = q + length * (u + da - q - (q * (u @ da) if norm > radii[g] else 0.0))
        np.testing.assert_allclose(curvature.q[part], moved / max(1.0, np.linalg.norm(moved)))
    curvature.follow(np.zeros(4), 1.0)  # without a step they become the projections
    np.testing.assert_allclose(curvature.agreement(w, np.arange(4, dtype=np.int32)), [1.0])


def dense_problem(part):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 20))
    loss = csr.Squared(X @ rng.normal(size=20) + rng.normal(size=6000))
    model, groups = csr.Linear(X, intercept=False), csr.GroupLasso(csr.Groups(RANGES, n_features=20))
    return csr.Problem(model, loss + part * csr.lambda_max(csr.Problem(model, loss + groups)) * groups)


@pytest.mark.parametrize(("part", "strong"), [(0.02, True), (0.9, False)])
def test_all_features_join_at_once_if_the_pull_is_strong(part, strong):
    problem = dense_problem(part)
    start = Iterate(np.zeros((20, 1)), np.zeros(1))
    state = group_newton._State(problem, start, problem.value_at(start.theta, start.b))
    state.grow(state.repair(1e-6, prove=False)[1], 0.0)
    assert bool(state.inside.all()) == strong
    assert (state.widths.relative == group_subproblem.WIDE_STRONG) == strong
    solution = problem.solve("group_newton", tol=1e-8)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(problem.solve("cvxpy").objective, rel=1e-6)


def test_small_weights_of_zero_groups_start_at_zero_where_that_is_lower():
    problem = dense_problem(0.5)
    start = Iterate(np.zeros((20, 1)), np.zeros(1))
    state = group_newton._State(problem, start, problem.value_at(start.theta, start.b))
    state.inside[:] = True
    state.improve(1e-2)
    newton = group_subproblem.Newton(state.sub, 1e6 * state.sub.norms.radii, state.radius)
    w = state.theta.ravel() + 1e-3
    marked = (np.abs(w) == np.abs(w).min()).astype(np.uint8)
    nothing = np.zeros_like(marked)
    at, lower = (group_subproblem.lower_start(newton, w, state.b, zero) for zero in (nothing, marked))
    np.testing.assert_array_equal(at.w, w)
    assert lower.value < at.value
    np.testing.assert_array_equal(lower.w, np.where(marked != 0, 0.0, w))
    every = np.ones_like(marked)
    kept = group_subproblem.lower_start(newton, state.theta.ravel(), state.b, every)
    np.testing.assert_array_equal(kept.w, state.theta.ravel())  # zeros everywhere would be higher


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_the_last_features_are_kept_and_all_rows_are_not_copied(sparse):
    X = np.random.default_rng(0).normal(size=(30, 20))
    model = csr.Linear(sp.csr_array(X) if sparse else X)
    parts = csr.Problem(
        model, csr.Multinomial(np.arange(30) % 3) + csr.GroupLasso(csr.Groups(RANGES, n_features=20))
    ).normal_form
    design = group_subproblem.Design(parts)
    every, some = np.arange(20), np.array([1, 3, 4])
    assert design.chosen_rows(every).Xt is design.transposed
    assert design.chosen_rows(every).single is design.single
    chosen = design.chosen_rows(some)
    assert design.chosen_rows(some.copy()) is chosen
    for expected, features in ((X.T[some], some), (X.T, every)):
        found = design.chosen_rows(features)
        np.testing.assert_array_equal(sp.csr_array(found.Xt).toarray(), expected)
        np.testing.assert_allclose(found.squares @ np.ones(30), np.sum(expected**2, axis=1), rtol=1e-5)


@pytest.mark.parametrize("loss", ["cox", "huber"])
def test_multipliers_start_with_the_scores_loss_and_pull_of_the_last_point(monkeypatch, loss):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 20)), rng.exponential(size=40)
    model = csr.Linear(X, intercept=loss == "huber")
    its = csr.Cox(y) if loss == "cox" else csr.Huber(y)
    problem = csr.Problem(model, its + 0.5 * csr.GroupLasso(csr.Groups(RANGES, n_features=20)))
    steps, seen = group_steps.PlainSteps, []
    at, of_scores = steps.at, steps.of_scores

    def checked(self, w, b, known=None):
        point = at(self, w, b, known)
        anew = at(self, w, b)
        assert point.value == pytest.approx(anew.value, rel=1e-12)
        np.testing.assert_allclose(point.slope, anew.slope, rtol=1e-9, atol=1e-9)
        seen.append(known is not None)
        return point

    monkeypatch.setattr(steps, "at", checked)
    assert problem.solve("group_newton", tol=1e-9).status == "optimal"
    assert sum(seen) > 0.5 * len(seen)
    monkeypatch.setattr(steps, "at", at)
    found: list = []

    def kept(self, *given):
        found.append(of_scores(self, *given).scores)
        return of_scores(self, *given)

    monkeypatch.setattr(steps, "of_scores", kept)
    start = Iterate(np.zeros((20, 1)), np.zeros(1))
    state = group_newton._State(problem, start, problem.value_at(start.theta, start.b))
    state.inside[:] = True
    state.improve(1e-8)
    assert len(found) > 5
    assert not any(np.array_equal(found[i], found[i - 1]) for i in range(1, len(found)))


def test_dense_columns_are_those_that_the_model_keeps():
    model = csr.Linear(np.random.default_rng(0).normal(size=(30, 20)))
    parts = csr.Problem(
        model, csr.Huber(np.arange(30.0)) + csr.GroupLasso(csr.Groups(RANGES, n_features=20))
    ).normal_form
    design = group_subproblem.Design(parts)
    assert np.shares_memory(design.transposed, model.columns)
    assert design.transposed.flags.c_contiguous
