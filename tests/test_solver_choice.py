"""Which solver ``auto`` takes, and how a solution says why."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.groups import group_newton
from cvxstructreg.solvers.kinds import kind_of
from cvxstructreg.solvers.needs import Need

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 6))
Z = X @ np.arange(6.0) + RNG.normal(size=40)
Y = (Z > 0).astype(int)
GRAM = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1) / 6.0)
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(5)], n_nodes=6)


def test_a_solution_says_why_its_solver_was_taken(capsys):
    problem = csr.Problem(csr.Linear(X), csr.Hinge(Y) + csr.FusedLasso(CHAIN))
    solution = problem.solve(verbose=True)
    reason = solution.solver_choice
    assert reason.startswith(f"{solution.solver} is the first solver")
    assert "before it does not: " in reason
    assert reason in capsys.readouterr().out
    named = csr.Problem(csr.Linear(X), csr.Squared(Z) + csr.L1()).solve("fista", verbose=True)
    assert named.solver_choice == "fista was asked for by name"
    assert "asked for" not in capsys.readouterr().out


def test_the_choice_names_solvers_that_took_over():
    def fail(problem, start, tol):
        raise np.linalg.LinAlgError("no factor")
        yield

    problem = csr.Problem(csr.Linear(X), csr.Squared(Z) + csr.L1())
    with csr.solvers.register(csr.solvers.Solver("fails", fail), before=registry.names()[0]):
        solution = problem.solve()
    assert solution.status == "optimal"
    assert f"; {solution.solver} took over: fails failed" in solution.solver_choice


def test_auto_takes_a_later_solver_that_is_expected_to_be_faster():
    class Never(Need):
        def missing(self, problem):
            return "this is a test"

    def stay(problem, start, tol):
        yield start

    problem = csr.Problem(csr.Linear(X), csr.Squared(Z) + csr.L1())
    slow = csr.solvers.Solver("slow", stay, fastest_if=(Never(),))
    with csr.solvers.register(slow, before=registry.names()[0]):
        choice = registry.choice(problem, "auto")
        assert choice.solver.name == "working_set"
        assert "slow accepts it but is expected to be slower: this is a test" in choice.reason
        assert registry.choose(problem, "slow") is slow


@pytest.mark.parametrize("shape", [(120, 60), (60, 120)])
def test_auto_takes_newton_steps_for_groups_of_many_features(shape):
    X, Y = RNG.normal(size=shape), np.arange(shape[0]) % 2
    one, many = csr.Groups([list(range(shape[1]))], n_features=shape[1]), csr.Groups.singletons(shape[1])
    taken = [
        registry.choice(csr.Problem(csr.Linear(X), csr.Logistic(Y) + csr.GroupLasso(g)), "auto") for g in (one, many)
    ]
    assert [choice.solver.name for choice in taken] == ["group_newton", "group_descent"]
    assert f"one group holds {shape[1]} of {shape[1]} features" in taken[0].reason


def test_auto_needs_no_compiled_loops_for_one_group_of_few_data():
    one = csr.GroupLasso(csr.Groups([list(range(6))], n_features=6))
    losses = csr.Squared(Z), csr.Logistic(Y), csr.Poisson(Y), csr.Huber(Z)
    taken = [registry.choice(csr.Problem(csr.Linear(X), loss + one), "auto") for loss in losses]
    assert {choice.solver.name for choice in taken} == {"semismooth_newton"}
    assert "40 x 6 data are too few for compiled loops" in taken[0].reason
    overlapping = csr.GroupLasso(csr.Groups([[0, 1, 2, 3], [3, 4, 5]], n_features=6))
    assert registry.choose(csr.Problem(csr.Linear(X), csr.Squared(Z) + overlapping), "auto").name == "group_newton"
    classes = csr.Problem(csr.Linear(X), csr.Multinomial(np.arange(40) % 3) + one)
    assert registry.choose(classes, "auto").name == "group_descent"
    wide = csr.Problem(csr.Linear(RNG.normal(size=(10, 400))), csr.Squared(np.arange(10.0)) + csr.GroupLasso(
        csr.Groups([list(range(400))], n_features=400)))  # fmt: skip
    assert registry.choose(wide, "auto").name == "group_descent"


def test_one_group_joins_the_working_set_of_group_newton_at_once(monkeypatch):
    sizes = []
    improve = group_newton._State.improve
    monkeypatch.setattr(group_newton._State, "improve", lambda s, t: sizes.append(s.inside.sum()) or improve(s, t))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 400))
    one = csr.GroupLasso(csr.Groups([list(range(400))], n_features=400))
    largest = csr.lambda_max(csr.Problem(csr.Linear(X), csr.Squared(X[:, 0]) + one))
    assert csr.Problem(csr.Linear(X), csr.Squared(X[:, 0]) + 0.8 * largest * one).solve().status == "optimal"
    assert len(set(sizes)) <= 2 and sizes[-1] == 400


def test_a_quadratic_with_the_gram_matrix_is_the_function_norm():
    for loss in (csr.Hinge(Y), csr.Logistic(Y)):
        norm = csr.Problem(csr.Kernel(GRAM), loss + 0.3 * csr.RKHSNorm()).solve()
        matrix = csr.Problem(csr.Kernel(GRAM), loss + 0.3 * csr.Quadratic(matrix=GRAM)).solve()
        assert matrix.solver == norm.solver
        assert matrix.objective == pytest.approx(norm.objective, rel=2e-6)
    other = csr.Problem(csr.Kernel(GRAM), csr.Logistic(Y) + 0.3 * csr.Quadratic(matrix=2.0 * np.eye(40)))
    assert isinstance(other.terms[1].atom, csr.Quadratic)
    linear = csr.Problem(csr.Linear(GRAM), csr.Logistic(Y) + 0.3 * csr.Quadratic(matrix=GRAM))
    assert isinstance(linear.terms[1].atom, csr.Quadratic)
    on_scores = csr.Problem(csr.Kernel(GRAM), csr.Logistic(Y) + csr.Quadratic(matrix=GRAM).on_scores() + csr.RKHSNorm())
    assert on_scores.terms[1].target == "scores"
    assert isinstance(on_scores.terms[1].atom, csr.Quadratic)


@pytest.mark.parametrize(
    "model",
    [csr.Linear(X), csr.Kernel(GRAM), csr.Linear([X[:20], X[20:]])],
    ids=["linear", "kernel", "in blocks of rows"],
)
@pytest.mark.parametrize("terms", [csr.L1(), csr.Ridge(), csr.RKHSNorm()], ids=repr)
def test_auto_leaves_out_only_solvers_that_refuse_models_of_the_kind(model, terms):
    if isinstance(terms, csr.RKHSNorm) and model.kernel is None:
        return
    problem = csr.Problem(model, csr.Squared(Z) + terms)
    kind = kind_of(model)
    left_out = [solver for solver in registry.solvers() if kind not in solver.kinds]
    assert left_out and not any(solver.accepts(problem) for solver in left_out)
    assert registry.choose(problem, "auto") not in left_out
