"""Refusals are derived from what solvers declare, and asking costs no more than a pass over the data."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.core.model import Kernel
from cvxstructreg.numerics import semidefinite
from cvxstructreg.solvers import needs, registry

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 6)), np.arange(30) % 2
LINEAR, KERNEL = csr.Linear(X), csr.Kernel(X @ X.T + np.eye(30))
THREE = np.arange(30) % 3


@pytest.mark.parametrize(
    ("need", "met", "unmet", "words"),
    [
        (
            needs.KernelModel(),
            (KERNEL, csr.Logistic(Y) + csr.RKHSNorm()),
            (LINEAR, csr.Logistic(Y) + csr.Ridge()),
            "Kernel",
        ),
        (
            needs.LinearModel(),
            (LINEAR, csr.Logistic(Y) + csr.Ridge()),
            (KERNEL, csr.Logistic(Y) + csr.RKHSNorm()),
            "Linear",
        ),
        (
            needs.FunctionNorm(),
            (KERNEL, csr.Hinge(Y) + csr.RKHSNorm()),
            (KERNEL, csr.Hinge(Y) + csr.Ridge()),
            "is missing",
        ),
        (
            needs.FunctionNorm(),
            (KERNEL, csr.Hinge(Y) + csr.RKHSNorm() + 0.0 * csr.Ridge()),
            (KERNEL, csr.Hinge(Y) + csr.RKHSNorm() + csr.Ridge()),
            r"only term on the weights, but there is also Ridge\(\)",
        ),
        (
            needs.Outputs(most=1),
            (LINEAR, csr.Logistic(Y) + csr.Ridge()),
            (LINEAR, csr.Multinomial(THREE) + csr.Ridge()),
            "requires a single output, but the problem has 3",
        ),
        (
            needs.OneLoss(),
            (LINEAR, csr.Logistic(Y) + csr.Ridge()),
            (LINEAR, csr.Logistic(Y) + csr.Squared(X[:, 0]) + csr.Ridge()),
            "one loss",
        ),
        (needs.Quadratic(), (LINEAR, csr.Hinge(Y) + csr.Ridge()), (LINEAR, csr.Hinge(Y) + csr.L1()), "L1"),
        (
            needs.HoldsEveryWeight(),
            (LINEAR, csr.Hinge(Y) + csr.Ridge()),
            (LINEAR, csr.Hinge(Y) + csr.Ridge(weights=[1.0] * 5 + [0.0])),
            "penalises every weight",
        ),
        (
            needs.L1OrBounds(),
            (LINEAR, csr.Hinge(Y) + csr.Box(-1, 1)),
            (LINEAR, csr.Hinge(Y) + csr.Ridge()),
            "neither L1",
        ),
        (
            needs.L1OrBounds(bounds=False),
            (LINEAR, csr.Hinge(Y) + csr.L1()),
            (LINEAR, csr.Hinge(Y) + csr.L1() + csr.Box(-1, 1)),
            "bounds",
        ),
        (
            needs.GroupNorms(disjoint=True),
            (LINEAR, csr.Hinge(Y) + csr.GroupLasso(csr.Groups([[0, 1], [2]], n_features=6))),
            (LINEAR, csr.Hinge(Y) + csr.GroupLasso(csr.Groups([[0, 1], [1, 2]], n_features=6))),
            "overlap",
        ),
        (
            needs.Factorisable(4),
            (LINEAR, csr.Hinge(Y) + csr.Ridge()),
            (LINEAR, csr.Hinge(Y) + csr.Ridge().on_scores()),
            "4",
        ),
    ],
)
def test_a_need_states_itself_and_says_what_is_missing(need, met, unmet, words):
    assert str(need) and repr(need).startswith(type(need).__name__)
    assert need.missing(csr.Problem(*met)) is None
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(need.missing(csr.Problem(*unmet)))


def test_every_need_of_a_solver_has_words():
    for solver in registry.solvers():
        for need in solver.needs:
            assert isinstance(need, needs.Need)
            assert str(need) != repr(need), (solver, need)


def test_advice_in_refusals_names_no_solver():
    """Which other solvers accept is found out by asking them, not written into a refusal."""
    objectives = [
        csr.Hinge(Y) + csr.LatentGroupLasso(csr.Groups([[0, 1], [1, 2]], n_features=6)),
        csr.Logistic(Y) + csr.L1(),
    ]
    for objective in objectives:
        for reason in registry.refusals(csr.Problem(LINEAR, objective)).values():
            assert not any(f"'{name}'" in reason for name in registry.names())


def test_asking_factorises_no_gram_matrix(monkeypatch):
    """Neither the proof that gram is positive semidefinite nor its eigenvalues are needed for an answer."""

    def forbidden(*_args, **_named):
        raise AssertionError("a factorisation for a question")

    monkeypatch.setattr(Kernel, "_eigen", forbidden)
    monkeypatch.setattr(Kernel, "convex", forbidden)
    monkeypatch.setattr(semidefinite, "prove", forbidden)
    graph = csr.Graph.from_edges([(i, i + 1) for i in range(29)], n_nodes=30)
    for loss in (csr.Logistic(Y), csr.Hinge(Y), csr.MulticlassHinge(THREE), csr.Multinomial(THREE)):
        for penalty in (csr.RKHSNorm(), csr.RKHSNorm() + csr.Laplacian(graph).on_scores(), csr.L1()):
            problem = csr.Problem(KERNEL, loss + penalty)
            assert "cvxpy" in [solver.name for solver in registry.accepting(problem)]
            assert registry.refusals(problem)


def test_a_term_of_strength_zero_changes_nothing():
    """An L1 term of strength 0 is no term on the weights beside the function norm."""
    model, objective = csr.Kernel([[2.0, 1.0], [1.0, 2.0]], intercept=False), csr.Squared([1.0, -2.0]) + csr.RKHSNorm()
    plain = csr.Problem(model, objective).solve()
    with_zero = csr.Problem(model, objective + 0.0 * csr.L1()).solve()
    assert with_zero.solver == plain.solver
    assert np.allclose(with_zero.coef, plain.coef)
