"""What the general Newton solver does between two augmented Lagrangians: its multipliers, and its last steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.solvers.general import row_system, semismooth_newton

N, D = 90, 60
TOL = 1e-6


def _problem(seed: int, kind: str) -> csr.Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    y = X[:, :5] @ rng.normal(size=5) + rng.normal(size=N)
    groups = csr.Groups([range(i, min(i + 8, D)) for i in range(0, D - 2, 5)], n_features=D)
    loss: Any = csr.Logistic(y > 0) if kind == "logistic" else csr.Absolute(y)
    return csr.Problem(csr.Linear(X), loss + 4.0 * csr.GroupLasso(groups))


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Of each augmented Lagrangian: its multipliers and sigmas, the part that ends it, and what was found."""
    seen: list[dict[str, Any]] = []
    minimised, dual_points = semismooth_newton._minimised, semismooth_newton._dual_points

    def starts(at: Any, tol: float, part: float) -> Any:
        terms = at.function.rough
        seen.append({"part": part, "q": [t.q.copy() for t in terms], "sigma": [t.sigma for t in terms], "terms": terms})
        found = minimised(at, tol, part)
        seen[-1]["accurate"] = found[3]
        return found

    def ends(*given: Any) -> Any:
        seen[-1]["found"] = dual_points(*given)
        return seen[-1]["found"]

    monkeypatch.setattr(semismooth_newton, "_minimised", starts)
    monkeypatch.setattr(semismooth_newton, "_dual_points", ends)
    return seen


def _is_outside(found: Any) -> bool:
    """Whether the complementarity is small enough and the multipliers are not: they are outside their sets."""
    return bool(found.complementarity <= TOL * found.scale < found.outside * found.scale)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_multipliers_outside_their_sets_are_kept_for_a_shorter_step(seed: int, rounds: list[dict[str, Any]]) -> None:
    """If nothing else is missing, the same augmented Lagrangian is minimised further: a shorter step stays inside."""
    assert _problem(seed, "logistic").solve("semismooth_newton", tol=TOL).status == "optimal"
    outside = 0
    for before, after in pairwise(rounds):
        if _is_outside(before["found"]) and before["accurate"]:
            outside += 1
            assert all(np.array_equal(p, q) for p, q in zip(before["q"], after["q"], strict=True))
            assert before["sigma"] == after["sigma"]
            assert after["part"] < before["part"]
            assert after["found"].outside < before["found"].outside
        else:
            for term, p, q in zip(before["terms"], before["found"].multipliers, after["q"], strict=True):
                assert np.array_equal(term.dual_set.project(p), q)
    assert outside > 0
    assert rounds[-1]["found"].outside <= TOL


@pytest.mark.parametrize("single", [True, False])
def test_a_last_step_in_single_precision_is_refined_twice(single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second refinement removes most of what the first one leaves of the imbalance."""
    left: list[float] = []
    refined, imbalance = semismooth_newton._refined, semismooth_newton._imbalance

    def watched(H: Any, at: Any, step: Any, rows: Any) -> Any:
        better = refined(H, at, step, rows)
        assert H.H.dtype == (np.float32 if single else np.float64)
        left.extend(np.max(np.abs(imbalance(at, one, rows))) for one in ((step, better) if not left else (better,)))
        return better

    monkeypatch.setattr(semismooth_newton, "_refined", watched)
    monkeypatch.setattr(row_system, "FEW_ROWS", 0.0)  # dense systems
    if not single:
        monkeypatch.setattr(semismooth_newton, "_in_single_range", lambda function: False)
    solution = _problem(1, "absolute").solve("semismooth_newton", tol=TOL)
    assert solution.status == "optimal" and len(solution.history) == 1
    assert len(left) == (3 if single else 2)
    if single:
        assert all(after < 0.1 * before for before, after in pairwise(left))
