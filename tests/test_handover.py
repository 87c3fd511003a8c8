"""Hard small problems: ``auto`` hands them over from solver to solver, on record, and ends optimal where one does."""

from __future__ import annotations

import functools
import itertools
import warnings

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers import handover, reference, registry, run, sizes
from cvxstructreg.solvers.first_order import proximal_gradient
from cvxstructreg.solvers.general import interior_point, semismooth_newton
from cvxstructreg.solvers.iterate import Iterate, Refusal
from cvxstructreg.solvers.lasso import irls, working_set
from random_problems import kernel_problem, linear_problem


@pytest.fixture(autouse=True)
def left_out(monkeypatch):
    """Without the general second-order solvers, to which the problems of these tests are easy."""
    for solver in (interior_point.SOLVER, semismooth_newton.SOLVER, semismooth_newton.MATRIX_FREE):
        monkeypatch.setattr(solver, "refusal", lambda problem: Refusal("left out"))


LASSO = csr.Problem(
    csr.Linear(np.random.default_rng(0).normal(size=(30, 8))), csr.Logistic(np.arange(30) % 2) + 0.5 * csr.L1()
)


def overlapping(rng: np.random.Generator, d: int) -> csr.Groups:
    members = [sorted(rng.choice(d, size=int(rng.integers(2, 8)), replace=False).tolist()) for _ in range(8)]
    left = sorted(set(range(d)) - {j for group in members for j in group})
    return csr.Groups(members + ([left] if left else []), n_features=d, weights=np.sqrt)


def groups_with_pairs(seed: int) -> csr.Problem:
    """Overlapping groups, absolute values and dissimilar pairs of multiclass hinges."""
    rng = np.random.default_rng(5 + seed)
    n, d, k = 60, 30, 4
    X = 3.0 * rng.normal(size=(n, d))
    y = rng.permutation(np.arange(n) % k)
    pairs = rng.permutation(n)[:20].reshape(-1, 2)
    groups = 0.003 * csr.GroupLasso(overlapping(rng, d)) + 0.0012 * csr.L1()
    return csr.Problem(csr.Linear(X), csr.MulticlassHinge(y) + groups + 3.0 * csr.Dissimilarity(pairs))


def nine_classes(seed: int) -> csr.Problem:
    """Hinges of nine classes with absolute values and bounds."""
    rng = np.random.default_rng(seed)
    n, d = 42, 9
    X = rng.normal(size=(n, d))
    y = rng.permutation(np.arange(n) % 9)
    return csr.Problem(csr.Linear(X), csr.MulticlassHinge(y) + 0.1 * csr.L1() + csr.Box(-0.3, 0.2))


def heavy_rows(seed: int) -> csr.Problem:
    """A multinomial loss with sample weights of 1 and 1e4, and weak absolute values."""
    rng = np.random.default_rng(seed)
    n, d = 60, 20
    X = 3.0 * rng.normal(size=(n, d))
    y = rng.permutation(np.arange(n) % 3)
    weights = np.where(rng.random(n) < 0.5, 1e4, 1.0)
    return csr.Problem(csr.Linear(X), csr.Multinomial(y, sample_weight=weights) + 0.05 * csr.L1())


HARD = {"groups with pairs": groups_with_pairs, "nine classes": nine_classes, "heavy rows": heavy_rows}


@functools.cache
def solved(kind: str) -> tuple[csr.Problem, csr.Solution]:
    problem = HARD[kind](0)
    return problem, problem.solve()


@pytest.mark.parametrize("kind", HARD)
def test_auto_ends_optimal_where_the_first_solver_stalls(kind):
    problem, solution = solved(kind)
    assert solution.status == "optimal"
    assert solution.switches, "the first solver reaches the tolerance: the problem is no longer a hard one"
    first = registry.choose(problem, "auto").name
    assert solution.history[0].solver == first
    assert solution.switches[0].switch.startswith(f"{first} stalled at a relative gap of")
    assert all(switch.solver != before.solver for before, switch in _with_record_before(solution))
    assert solution.n_iter == solution.history[-1].n_iter
    assert solution.certificate.gap >= 0


def _with_record_before(solution):
    return [(a, b) for a, b in itertools.pairwise(solution.history) if b.switch]


def test_a_handover_can_be_repeated():
    def counts(solution):
        return [(record.n_iter, record.solver, record.switch) for record in solution.history]

    assert counts(solved("nine classes")[1]) == counts(nine_classes(0).solve())


def test_a_named_solver_stays_alone():
    with pytest.warns(csr.InaccurateWarning, match="admm ended with status 'max_iter' after 1500 iterations"):
        solution = nine_classes(0).solve("admm", max_iter=1500)
    assert {record.solver for record in solution.history} == {"admm"}
    assert solution.switches == ()


def test_max_iter_holds_over_all_solvers():
    with pytest.warns(csr.InaccurateWarning, match="max_iter"):
        solution = heavy_rows(0).solve(max_iter=1100)
    assert (solution.status, solution.n_iter) == ("max_iter", 1100)
    assert solution.switches


def failing(error):
    def run(problem, start, tol):
        yield Iterate(start.theta, start.b)
        raise error

    return run


def failing_at_once(error):
    def run(problem, start, tol):
        raise error
        yield

    return run


ERRORS = [
    np.linalg.LinAlgError("singular"),
    FloatingPointError("overflow"),
    ValueError("array must not contain infs or NaNs"),
]


@pytest.mark.parametrize("fails", [failing, failing_at_once])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_numerical_failure_hands_over(monkeypatch, fails, error, capsys):
    monkeypatch.setattr(working_set.SOLVER, "run", fails(error))
    seen = []
    solution = LASSO.solve(verbose=True, callback=seen.append)
    assert solution.status == "optimal"
    assert solution.solver != "working_set"
    assert str(error) in solution.switches[0].switch
    assert "working_set failed with" in capsys.readouterr().out
    assert tuple(seen) == solution.history


@pytest.mark.parametrize("fails", [failing, failing_at_once])
def test_a_numerical_failure_of_a_named_solver_is_an_inaccurate_solution(monkeypatch, fails):
    monkeypatch.setattr(working_set.SOLVER, "run", fails(np.linalg.LinAlgError("singular")))
    with pytest.warns(csr.InaccurateWarning, match="working_set failed with LinAlgError: singular"):
        solution = LASSO.solve("working_set")
    assert (solution.status, solution.solver) == ("inaccurate", "working_set")
    assert solution.certificate.gap > 0
    assert solution.objective == pytest.approx(LASSO.value_at(*LASSO.shaped(solution.coef, solution.intercept)))


def test_weights_that_are_no_numbers_are_a_failure(monkeypatch):
    def run(problem, start, tol):
        for _ in range(5):
            yield Iterate(np.full_like(start.theta, np.nan), start.b)

    monkeypatch.setattr(working_set.SOLVER, "run", run)
    solution = LASSO.solve()
    assert solution.status == "optimal"
    assert "the weights are not finite" in solution.switches[0].switch


def test_other_errors_of_a_solver_are_raised(monkeypatch):
    monkeypatch.setattr(working_set.SOLVER, "run", failing(KeyError("a bug")))
    with pytest.raises(KeyError, match="a bug"):
        LASSO.solve()


def test_the_reference_without_a_solution_says_so(monkeypatch):
    monkeypatch.setattr(reference, "_solved", lambda *_: False)
    with pytest.warns(csr.InaccurateWarning, match="CLARABEL found no solution"):
        solution = LASSO.solve("cvxpy")
    assert solution.status == "inaccurate"
    assert np.isfinite(solution.objective)


def test_solvers_that_stalled_go_on_when_nobody_else_gets_there(monkeypatch):
    """``auto`` reaches what the first solver reaches alone, if slowly."""
    for module in (working_set, irls):
        monkeypatch.setattr(module.SOLVER, "refusal", lambda problem: Refusal("not today"))
    monkeypatch.setattr(proximal_gradient.SOLVER, "patience", 2)
    monkeypatch.setattr(handover, "DOUBLINGS", 0)
    for module in registry.solvers():
        if module is not proximal_gradient.SOLVER:
            monkeypatch.setattr(module, "run", failing_at_once(np.linalg.LinAlgError("no")))
    solution = LASSO.solve()
    assert (solution.status, solution.solver) == ("optimal", "fista")
    assert "fista stalled" in solution.switches[0].switch
    assert "no solver is left, fista resumes" in solution.switches[-1].switch


def test_a_large_problem_keeps_its_solver_while_it_works(monkeypatch):
    monkeypatch.setattr(sizes, "SMALL", 10)
    monkeypatch.setattr(run, "DEFAULT_MAX_ITER", 1200)
    with pytest.warns(csr.InaccurateWarning, match="max_iter"):
        solution = heavy_rows(0).solve()
    assert solution.switches == ()


@pytest.mark.parametrize("rows", [200, 800])  # a small and a large problem
def test_columns_far_from_zero_without_intercept_go_to_newton_systems(monkeypatch, rows):
    monkeypatch.undo()  # the general solvers take part
    solution = far_columns(rows).solve()
    assert (solution.status, solution.solver) == ("optimal", "interior_point")
    assert "working_set stalled" in solution.switches[0].switch
    assert solution.n_iter < 80


def test_a_large_kernel_problem_keeps_its_solver(monkeypatch):
    monkeypatch.undo()
    problem = kernel_problem(3, "Squared", True, 0, 1)
    first = registry.choose(problem, "auto")
    assert any(solver.accepts(problem) for solver in handover.RESCUERS)
    assert not handover.has_rescuer(problem, first)
    assert handover.has_rescuer(far_columns(100), working_set.SOLVER)


def far_columns(n: int) -> csr.Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 80)) + 200.0
    y = X[:, 0] - X[:, 1] + X[:, 2] - X[:, 3] + 0.3 * rng.normal(size=n)
    return csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 5.5 * csr.L1())


def test_a_large_problem_is_handed_over_when_its_solver_fails_but_not_to_the_reference(monkeypatch):
    monkeypatch.setattr(sizes, "SMALL", 10)
    names = [module.name for module in handover.successors(LASSO, working_set.SOLVER)]
    assert names == ["fista", "admm", "split_newton"]
    monkeypatch.setattr(working_set.SOLVER, "run", failing(np.linalg.LinAlgError("singular")))
    solution = LASSO.solve()
    assert (solution.status, solution.solver) == ("optimal", "fista")


def test_a_kernel_problem_is_handed_over_between_coordinates(monkeypatch):
    problem = kernel_problem(3, "SquaredHinge", True, 0, 1)
    expected = problem.solve("cvxpy").objective
    first = registry.choose(problem, "auto")
    monkeypatch.setattr(first, "run", failing(np.linalg.LinAlgError("singular")))
    solution = problem.solve()
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(expected, rel=1e-5)


KINDS = {
    "fused": ("Squared", "Logistic"),
    "groups": ("Hinge",),
    "latent": ("Logistic",),
    "l1": ("Multinomial",),
    "box": ("MulticlassHinge",),
    "network": ("Multinomial",),
    "nonnegative": ("Hinge",),
    "weighted l1": ("SquaredHinge",),
}


@pytest.mark.parametrize(("loss", "penalty"), [(loss, name) for name, losses in KINDS.items() for loss in losses])
def test_auto_is_optimal_wherever_some_solver_is(loss, penalty):
    for seed in (11, 12):
        problem = linear_problem(seed, loss, penalty, intercept=True, sparse=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", csr.InaccurateWarning)
            solution = problem.solve(tol=1e-8)
            if solution.status != "optimal":
                alone = [problem.solve(m.name, tol=1e-8, max_iter=1000) for m in registry.accepting(problem)]
                assert not any(other.status == "optimal" for other in alone), (seed, solution)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_the_reference_is_as_accurate_at_every_scale_of_the_objective(factor):
    terms = csr.Objective.of(csr.Logistic(np.arange(30) % 2) + 0.5 * csr.L1()).terms
    scaled = sum((factor * term.scale * term.atom for term in terms[1:]), start=factor * terms[0].atom)
    problem = csr.Problem(LASSO.model, scaled)
    solution, plain = problem.solve("cvxpy", tol=1e-8), LASSO.solve("cvxpy", tol=1e-8)
    assert solution.status == plain.status == "optimal"
    assert solution.objective == pytest.approx(factor * plain.objective, rel=1e-7)


def test_the_clock_decides_nothing_but_the_time_limit(monkeypatch):
    """A clock that runs mad changes no iterate."""
    plain = LASSO.solve("admm")
    ticks = itertools.count(step=1e6)
    monkeypatch.setattr(deadline, "clock", lambda: float(next(ticks)))
    mad = LASSO.solve("admm")
    assert [record.n_iter for record in mad.history] == [record.n_iter for record in plain.history]
    assert np.array_equal(mad.coef, plain.coef)
