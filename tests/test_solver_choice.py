"""Which solver ``auto`` takes, and how a solution says why."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.solvers import registry
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


def test_auto_takes_newton_steps_for_groups_of_many_features():
    X, Y = RNG.normal(size=(120, 60)), np.arange(120) % 2
    one, many = csr.Groups([list(range(60))], n_features=60), csr.Groups.singletons(60)
    taken = [
        registry.choice(csr.Problem(csr.Linear(X), csr.Logistic(Y) + csr.GroupLasso(g)), "auto") for g in (one, many)
    ]
    assert [choice.solver.name for choice in taken] == ["group_newton", "group_descent"]
    assert "one group holds 60 of 60 features" in taken[0].reason


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
