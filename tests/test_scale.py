"""Results do not depend on the units of the objective and of the data, on their origin, nor on the order of rows."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from rescaled import in_units, with_rows_permuted

import cvxstructreg as csr
from cvxstructreg.core.solution import Solution
from cvxstructreg.reductions.centring import Centring
from cvxstructreg.reductions.reduction import Point
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.driver import InaccurateWarning
from random_problems import kernel_problem, linear_problem, random_graph

#: Losses and penalties that together call on every solver; the second number is of a random problem.
LINEAR = (
    ("Squared", "l1", 0),
    ("Squared", "network", 1),
    ("Squared", "latent", 0),
    ("Logistic", "ridge", 0),
    ("Logistic", "laplacian", 1),
    ("Logistic", "groups", 2),
    ("Logistic", "box", 0),
    ("Multinomial", "groups", 0),
    ("Multinomial", "network", 1),
    ("SquaredHinge", "weighted l1", 1),
    ("Hinge", "network", 0),
    ("Hinge", "fused", 1),
    ("MulticlassHinge", "ridge", 0),
)
KERNEL = (("Squared", 0, 1), ("Logistic", 0, 1), ("Hinge", 0, 1), ("MulticlassHinge", 2, 1), ("MulticlassHinge", 2, 2))
#: Powers of two change the exponents of all numbers and no digits: (objective, data, sample weights).
UNITS = ((2.0**-30, 1.0, 1.0), (2.0**30, 1.0, 1.0), (1.0, 2.0**-30, 1.0), (1.0, 2.0**30, 1.0), (1.0, 1.0, 2.0**-26))
#: Solvers that need many iterations; for them it is enough to look at the first ones.
SLOW = ("fista", "admm", "sentence_admm")


def _problem(case: tuple) -> csr.Problem:
    if len(case) == 3 and isinstance(case[1], str):
        return linear_problem(case[2], case[0], case[1], intercept=True, sparse=case[2] == 1)
    return kernel_problem(3, case[0], True, case[1], case[2])


@functools.cache
def _cases() -> list:
    found = []
    for case in LINEAR + KERNEL:
        for solver in registry.accepting(_problem(case)):
            if solver.name != "cvxpy":
                found.append(pytest.param(case, solver.name, id=f"{solver.name}-{'-'.join(map(str, case))}"))
    return found


def _solve(problem: csr.Problem, solver: str, **options: object) -> Solution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InaccurateWarning)
        return problem.solve(solver=solver, **options)


@functools.cache
def _solved(case: tuple, solver: str) -> tuple[csr.Problem, Solution]:
    """A problem in its own units, for all tests that change them."""
    problem = _problem(case)
    return problem, _solve(problem, solver)


def _assert_within_certificates(first: Solution, second: Solution, unit: float = 1.0, rounding: float = 1e-12) -> None:
    """The objectives, the second in another unit, differ by no more than is proved, and than the data were rounded."""
    difference, slack = second.objective / unit - first.objective, rounding * first.objective
    assert -first.certificate.gap - slack <= difference <= second.certificate.gap / unit + slack


@pytest.mark.parametrize(("case", "solver"), _cases())
def test_paths_are_the_same_in_other_units(case: tuple, solver: str) -> None:
    problem = _problem(case)
    options: dict = {"max_iter": 5 if solver in SLOW else 60}
    first = _solve(in_units(problem), solver, **options)
    for objective, data, costs in UNITS:
        if solver == "sentence_admm":  # whose rho is in the units of the objective, as published
            options["rho"] = objective * costs * data**2
        second = _solve(in_units(problem, objective, data, costs), solver, **options)
        unit = data**2 if problem.model.kernel is not None else data
        assert second.status == first.status
        assert abs(second.n_iter - first.n_iter) <= 1
        size = max(np.abs(first.coef).max(), np.abs(first.intercept).max())
        np.testing.assert_allclose(second.coef * unit, first.coef, rtol=0, atol=1e-6 * size)
        np.testing.assert_allclose(second.intercept, first.intercept, rtol=0, atol=1e-6 * size)
        np.testing.assert_allclose(second.objective / (objective * costs), first.objective, rtol=1e-9)


@pytest.mark.parametrize(("case", "solver"), [case for case in _cases() if case.values[1] not in SLOW])
def test_optima_are_the_same_in_other_units(case: tuple, solver: str) -> None:
    problem, first = _solved(case, solver)
    for objective, data in ((1e-9, 1.0), (1e9, 1.0), (1.0, 1e-9), (1.0, 1e9)):
        second = _solve(in_units(problem, objective, data), solver)
        assert second.status == first.status == "optimal"
        _assert_within_certificates(first, second, objective)


@pytest.mark.parametrize(("case", "solver"), [c for c in _cases() if c.values[1] not in SLOW and c.values[0] in LINEAR])
def test_optima_are_the_same_in_another_order_of_rows(case: tuple, solver: str) -> None:
    problem, first = _solved(case, solver)
    order = np.random.default_rng(0).permutation(problem.model.n_rows)
    second = _solve(with_rows_permuted(problem, order), solver)
    assert second.status == first.status == "optimal"
    _assert_within_certificates(first, second)


def _regression() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    return X, X @ np.array([1.0, -2.0, 3.0, 0.0, 0.0, 0.0, 0.5, 0.0]) + rng.normal(size=60)


PENALTIES = {
    "l1": 5.0 * csr.L1(),
    "ridge": 2.0 * csr.Ridge(),
    "groups": 3.0 * csr.GroupLasso(csr.Groups([[0, 1, 2], [2, 3], [4, 5, 6, 7]], n_features=8)) + csr.L1(),
    "fused": csr.FusedLasso(csr.Graph.from_edges([[j, j + 1] for j in range(7)], n_nodes=8)) + 0.5 * csr.Ridge(),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_a_constant_added_to_the_targets_changes_nothing_but_the_intercept(name: str) -> None:
    X, y = _regression()
    problem = csr.Problem(csr.Linear(X), csr.Squared(y) + PENALTIES[name])
    for solver in registry.accepting(problem):
        if solver.name in ("cvxpy", "sentence_admm"):
            continue
        first = _solve(problem, solver.name)
        for shift in (1e4, 1e7):
            moved = csr.Problem(csr.Linear(X), csr.Squared(y + shift) + PENALTIES[name])
            second = _solve(moved, solver.name)
            assert second.status == first.status == "optimal", (solver.name, shift)
            _assert_within_certificates(first, second, rounding=1e-15 * shift)
            np.testing.assert_allclose(second.coef, first.coef, rtol=0, atol=1e-2)
            assert abs(second.intercept - shift - first.intercept) < 1e-2


@pytest.mark.parametrize("loss", ["Squared", "Logistic", "Hinge"])
@pytest.mark.parametrize("name", PENALTIES)
def test_a_constant_added_to_columns_changes_nothing_but_the_intercept(loss: str, name: str) -> None:
    X, y = _regression()
    y = y if loss == "Squared" else (y > 0.0).astype(int)
    objective = getattr(csr, loss)(y) + PENALTIES[name]
    problem = csr.Problem(csr.Linear(X), objective)
    for solver in registry.accepting(problem):
        if solver.name in ("cvxpy", "sentence_admm") or (solver.name == "admm" and loss == "Hinge"):
            continue
        first = _solve(problem, solver.name)
        for shift in (1e4, 1e7):
            moved = X + shift * np.array([0.0, 1.0, 0.0, 0.0, -3.0, 0.0, 0.0, 0.0])
            second = _solve(csr.Problem(csr.Linear(moved), objective), solver.name)
            assert second.status == first.status == "optimal", (solver.name, shift)
            _assert_within_certificates(first, second, rounding=1e-15 * shift)
            np.testing.assert_allclose(second.coef, first.coef, rtol=0, atol=1e-2)


def test_centring_moves_the_intercept_and_no_score() -> None:
    X, y = _regression()
    X[:, 2] += 1e6
    problem = csr.Problem(csr.Linear(X), csr.Squared(y - 1e4) + csr.L1())
    centred = Centring.apply(problem)
    assert centred is not None
    assert np.flatnonzero(centred.columns).tolist() == [2]
    theta, b = np.random.default_rng(1).normal(size=(8, 1)), np.array([3.0])
    moved = centred.lower(Point(theta, b))
    lowered = moved.theta, moved.b
    np.testing.assert_allclose(centred.lift(moved).b, b, atol=1e-8)
    scores = centred.problem.model.scores(*lowered) + centred.targets
    np.testing.assert_allclose(scores, problem.model.scores(theta, b), rtol=1e-9)
    np.testing.assert_allclose(centred.problem.value_at(*lowered), problem.value_at(theta, b), rtol=1e-9)


def test_centring_leaves_what_it_must_not_move() -> None:
    X, y = _regression()
    far, y = X + 1e6, y + 1e6
    graph = random_graph(np.random.default_rng(0), 60, signed=True)
    ridge = csr.Ridge()
    assert Centring.apply(csr.Problem(csr.Linear(X), csr.Squared(y - 1e6) + ridge)) is None
    assert Centring.apply(csr.Problem(csr.Linear(far, intercept=False), csr.Squared(y) + ridge)) is None
    assert (
        Centring.apply(csr.Problem(csr.Linear(far), csr.Squared(y) + ridge + csr.Laplacian(graph).on_function()))
        is None
    )
    on_scores = Centring.apply(csr.Problem(csr.Linear(far), csr.Squared(y) + ridge + csr.Laplacian(graph).on_scores()))
    assert on_scores is not None and on_scores.columns.all() and not on_scores.targets.any()
    sparse = Centring.apply(csr.Problem(csr.Linear(sp.csr_array(far)), csr.Squared(y) + ridge))
    assert sparse is not None and not sparse.columns.any() and sparse.targets.all()


def test_warm_starts_of_centred_problems() -> None:
    X, y = _regression()
    problem = csr.Problem(csr.Linear(X + 1e5), csr.Squared(y + 1e5) + 5.0 * csr.L1())
    first = problem.solve()
    again = problem.solve(warm_start=first)
    assert again.n_iter <= 2 and again.status == "optimal"
    _assert_within_certificates(first, again)


@functools.cache
def _hopeless() -> dict[str, csr.Problem]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    z = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=40)
    y, three = (z > 0).astype(int), np.digitize(z, [-0.7, 0.7])
    far, mixed = X + 1e9, X * 10.0 ** np.array([-9, 9, 0, 0, 0, 0])
    on_features, on_rows = random_graph(rng, 6, True), random_graph(rng, 40, False)
    gram = np.exp(-0.5 * ((X[:, None, :2] - X[None, :, :2]) ** 2).sum(axis=2))
    found = {}
    for loss in (csr.Squared(z), csr.Logistic(y), csr.Hinge(y), csr.SquaredHinge(y), csr.MulticlassHinge(three)):
        terms = {
            "far columns": (csr.Linear(far), 1e-2 * csr.Ridge()),
            "far columns without intercept": (csr.Linear(far, intercept=False), 1e-2 * csr.Ridge()),
            "columns of many sizes": (csr.Linear(mixed), 1e-2 * csr.Ridge()),
            "strong graph": (csr.Linear(X), 1e12 * csr.Laplacian(on_features) + 1e-2 * csr.Ridge()),
            "small box": (csr.Linear(mixed), csr.Box(-1e-9, 2e-9) + 0.1 * csr.Ridge()),
            "far kernel": (csr.Kernel(far @ far.T, psd=True), 1e-2 * csr.RKHSNorm()),
            "strong graph of rows": (
                csr.Kernel(gram),
                1e12 * csr.Laplacian(on_rows).on_scores() + 1e-2 * csr.RKHSNorm(),
            ),
        }
        for name, (model, penalty) in terms.items():
            found[f"{type(loss).__name__}, {name}"] = csr.Problem(model, loss + penalty)
    return found


@pytest.mark.parametrize("of_conjugate_gradients", [4, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", _hopeless())
@pytest.mark.filterwarnings("ignore:.*graph.*:UserWarning")
def test_hopeless_conditioning_ends_with_a_certificate(name: str, of_conjugate_gradients: int) -> None:
    """Conjugate gradients take all the steps that they may on such systems: few iterations unless there is time."""
    problem = _hopeless()[name]
    for solver in registry.accepting(problem):
        if solver.name not in ("cvxpy", *SLOW):
            limit = of_conjugate_gradients if solver.name == "semismooth_cg" else 30
            solution = _solve(problem, solver.name, max_iter=limit)
            assert np.isfinite(solution.objective), solver.name
            assert not solution.certificate.gap < 0.0, solver.name


@pytest.mark.parametrize("loss", ["Squared", "Logistic", "Hinge", "SquaredHinge", "MulticlassHinge", "Multinomial"])
@pytest.mark.parametrize("size", [3e-8, 1e4, 1e8])
def test_sample_weights_are_the_strength_of_the_loss(loss: str, size: float) -> None:
    X, z = _regression()
    y = z if loss == "Squared" else np.digitize(z, [-1.0, 1.0]) if loss.startswith("Multi") else (z > 0.0).astype(int)
    atom = getattr(csr, loss)
    first = _solve(csr.Problem(csr.Linear(X), size * atom(y) + size * csr.Ridge()), "auto")
    second = _solve(csr.Problem(csr.Linear(X), atom(y, sample_weight=np.full(60, size)) + size * csr.Ridge()), "auto")
    assert first.status == second.status == "optimal"
    _assert_within_certificates(first, second)


@pytest.mark.parametrize("loss", ["Squared", "Logistic", "Hinge", "SquaredHinge", "MulticlassHinge", "Multinomial"])
def test_rows_of_weight_zero_count_nothing(loss: str) -> None:
    X, z = _regression()
    y = z if loss == "Squared" else np.digitize(z, [-1.0, 1.0]) if loss.startswith("Multi") else (z > 0.0).astype(int)
    atom, kept = getattr(csr, loss), np.arange(60) % 3 > 0
    weighted = csr.Problem(csr.Linear(X), atom(y, sample_weight=kept.astype(float)) + csr.Ridge())
    without = csr.Problem(csr.Linear(X[kept]), atom(y[kept]) + csr.Ridge())
    second = _solve(without, "auto")
    for solver in registry.accepting(weighted):
        if solver.name not in ("cvxpy", *SLOW):
            first = _solve(weighted, solver.name)
            assert first.status == second.status == "optimal"
            _assert_within_certificates(first, second)
