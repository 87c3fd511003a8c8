"""Alternating steps before Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.solvers.general import semismooth_newton
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian
from cvxstructreg.solvers.general.matrix_free import MatrixFreeLagrangian
from cvxstructreg.solvers.general.starts import alternating
from cvxstructreg.solvers.general.starts.first_penalties import set_penalties

RNG = np.random.default_rng(6)
N, D = 120, 60
X = RNG.normal(size=(N, D))
Y = X[:, :5] @ RNG.normal(size=5) + RNG.normal(size=N)
GROUPS = csr.GroupLasso(csr.Groups([range(i, min(i + 8, D)) for i in range(0, D - 2, 5)], n_features=D))
LOSSES = {"hinge": csr.Hinge(Y > 0), "absolute": csr.Absolute(Y), "pinball": csr.Quantile(Y, quantile=0.8)}


def _function(loss: csr.Loss, intercept: bool = True) -> AugmentedLagrangian:
    function = AugmentedLagrangian(csr.Problem(csr.Linear(X, intercept=intercept), loss + 1.5 * GROUPS + csr.L1()))
    set_penalties(function)
    return function


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [True, False])
def test_steps_equal_those_of_plain_numpy(loss: str, intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternating, "STEPS", 7)
    function, a = _function(LOSSES[loss], intercept), alternating.RELAXATION
    x = RNG.normal(size=(function.size, 1))
    maps = [np.asarray(t.rows if t.of_scores else t.rows.toarray()) for t in function.rough]
    sigmas = [t.sigma for t in function.rough]
    offsets, sets = [t.dual_set.offset for t in function.rough], [t.dual_set for t in function.rough]
    q, z, plain = [t.q for t in function.rough], [K @ x for K in maps], x
    H = sum(s * K.T @ K for s, K in zip(sigmas, maps, strict=True))
    for _ in range(7):  # with the copies z of K x and the multipliers q
        p = [B.project(v + s * (w - o)) for B, v, s, w, o in zip(sets, q, sigmas, z, offsets, strict=True)]
        z = [w + (v - u) / s for w, v, u, s in zip(z, q, p, sigmas, strict=True)]
        q = p
        plain = np.linalg.solve(H, sum(K.T @ (s * w - v) for K, s, w, v in zip(maps, sigmas, z, q, strict=True)))
        z = [a * (K @ plain) + (1.0 - a) * w for K, w in zip(maps, z, strict=True)]
    p = [B.project(v + s * (w - o)) for B, v, s, w, o in zip(sets, q, sigmas, z, offsets, strict=True)]
    found = alternating.alternating_start(function, x)
    np.testing.assert_allclose(found, plain, atol=1e-4 * np.max(np.abs(plain)))
    for term, multiplier, sigma in zip(function.rough, p, sigmas, strict=True):
        np.testing.assert_allclose(term.q, multiplier, atol=1e-3 * np.max(np.abs(multiplier)))
        np.testing.assert_allclose(term.q, term.dual_set.project(term.q), rtol=1e-14)
        assert term.q.dtype == np.float64
        assert term.sigma == sigma * (alternating.AFTER_SCORES if term.of_scores else alternating.AFTER_WEIGHTS)


@pytest.mark.parametrize("fault", ["no factor", "no number"])
def test_steps_that_fail_change_nothing(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = _function(LOSSES["hinge"])
    x, first = np.zeros((function.size, 1)), [term.sigma for term in function.rough]
    if fault == "no factor":
        function.capacity = np.full(function.size, -1e9)
    else:
        monkeypatch.setattr(alternating, "strsv", lambda factor, right, **how: np.full_like(right, np.nan))
    assert alternating.alternating_start(function, x) is x
    assert [term.sigma for term in function.rough] == first
    assert not any(term.q.any() for term in function.rough)


@pytest.mark.parametrize("loss", LOSSES)
def test_newton_steps_are_saved_and_the_solution_is_the_same(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, newton_matrix = [0, 0], AugmentedLagrangian.newton_matrix

    def counting(number: int) -> object:
        def counted(self: AugmentedLagrangian, state: object) -> object:
            counts[number] += 1
            return newton_matrix(self, state)

        return counted

    objectives = []
    for number, strong in enumerate((0.0, np.inf)):
        monkeypatch.setattr(semismooth_newton, "STRONG", strong)
        monkeypatch.setattr(AugmentedLagrangian, "newton_matrix", counting(number))
        solution = csr.Problem(csr.Linear(X), LOSSES[loss] + 1.5 * GROUPS).solve("semismooth_newton", tol=1e-8)
        assert solution.status == "optimal"
        objectives.append(solution.objective)
    assert counts[0] < counts[1]
    assert objectives[0] == pytest.approx(objectives[1], rel=2e-8)


def test_steps_are_left_out_beside_strong_penalties_and_near_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(semismooth_newton, "alternating_start", lambda function, x: calls.append(1) or x)
    model, loss = csr.Linear(X), LOSSES["hinge"]

    def count(objective: Any, start: csr.Solution | None = None) -> int:
        calls.clear()
        csr.Problem(model, objective).solve("semismooth_newton", warm_start=start)
        return len(calls)

    assert count(loss + 0.5 * GROUPS) == 1
    assert count(loss + 60.0 * GROUPS) == 0
    assert count(loss + csr.Ridge()) == 0  # no Newton systems by rows
    solution = csr.Problem(model, loss + 0.5 * GROUPS).solve("semismooth_newton")
    assert count(loss + 0.5 * GROUPS, solution) == 0
    assert count(loss + 0.4 * GROUPS, solution) == 1


def test_systems_solved_by_products_need_no_dense_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semismooth_newton, "alternating_start", lambda function, x: pytest.fail("a dense start"))
    problem = csr.Problem(csr.Linear(sp.csr_array(X)), LOSSES["hinge"] + 0.5 * GROUPS)
    assert problem.solve("semismooth_cg").status == "optimal"


@pytest.mark.parametrize(
    ("extra", "expected"), [(None, True), (csr.Laplacian(csr.Graph.from_edges([(0, 1)], n_nodes=D)), False)]
)
def test_quadratic_terms_are_told_apart_from_none(extra: Any, expected: bool) -> None:
    terms = LOSSES["hinge"] + GROUPS if extra is None else LOSSES["hinge"] + GROUPS + extra
    for kind in (AugmentedLagrangian, MatrixFreeLagrangian):
        function = kind(csr.Problem(csr.Linear(X), terms))
        assert function.by_rows == expected and function.has_quadratic != expected


@pytest.mark.parametrize("solver", ["semismooth_newton", "admm", "auto"])
@pytest.mark.parametrize("size", [10.0, 1e6])
def test_a_warm_start_that_is_worse_than_zero_weights_takes_no_longer_than_none(solver: str, size: float) -> None:
    def problem() -> csr.Problem:
        return csr.Problem(csr.Linear(X), LOSSES["hinge"] + 1.5 * GROUPS)

    cold = problem().solve(solver)
    start = size * np.random.default_rng(0).normal(size=D), 0.0
    found = problem().solve(solver, warm_start=start)
    assert (found.status, found.n_iter) == ("optimal", cold.n_iter)
    assert found.objective == pytest.approx(cold.objective)


def test_starts_outside_of_bounds_and_solutions_of_the_same_model_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[Any] = []
    run = semismooth_newton._warm_start
    monkeypatch.setattr(semismooth_newton, "_warm_start", lambda f, start, x: (starts.append(start), run(f, start, x)))
    problem = csr.Problem(csr.Linear(X), LOSSES["hinge"] + 1.5 * GROUPS + csr.Box(-0.1, 0.1))
    outside = np.full(D, 0.2)
    problem.solve("semismooth_newton", warm_start=(outside, 0.0))
    assert np.array_equal(starts[-1].theta[:, 0], outside)
    stronger = csr.Problem(problem.model, LOSSES["hinge"] + 1e4 * GROUPS)
    weaker = csr.Problem(problem.model, LOSSES["hinge"] + 0.1 * GROUPS).solve("semismooth_newton")
    stronger.solve("semismooth_newton", warm_start=weaker)
    assert np.array_equal(starts[-1].theta[:, 0], weaker.coef)
