"""The five methods, by every solver that accepts them, against the reference."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.instances import METHODS
from cvxstructreg.solvers import registry
from random_problems import LOSSES, PENALTIES, kernel_problem, linear_problem

FIRST_ORDER = [module.name for module in registry.solvers() if module.name != "cvxpy"]


@pytest.fixture(scope="module", params=list(METHODS))
def report(request):
    """The verification of one method."""
    problem = METHODS[request.param]()
    return csr.verify(problem, method=request.param)


def test_all_solvers_agree_within_one_millionth(report):
    assert report.agrees, str(report)
    for row in report.rows:
        assert 0 <= row.relative_gap <= 1e-6
        assert abs(row.distance) <= 1e-6
        assert row.certificate == "duality_gap"


def test_the_published_admm_takes_part():
    problem = METHODS["sentence-group-lasso"]()
    assert "sentence_admm" in [solver.name for solver in registry.accepting(problem)]


def test_a_solver_that_is_not_cvxpy_solves_it(report):
    assert set(FIRST_ORDER) & {row.solver for row in report.rows}


@functools.cache
def solved_linear_problem(loss, name):
    """The problem and its reference, for all solvers; they come one after the other."""
    problem = linear_problem(11, loss, name, True, True)
    return problem, problem.solve("cvxpy", tol=1e-5)


def agree(problem, solver, reference=None):
    """The solver's point and the reference's lie within their certificates."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution, reference = problem.solve(solver, tol=1e-5), reference or problem.solve("cvxpy", tol=1e-5)
    assert solution.certificate.kind == reference.certificate.kind == "duality_gap"
    assert 0 <= solution.certificate.relative_gap <= 1e-5
    slack = 1e-12 * abs(reference.objective)
    assert solution.certificate.lower_bound <= reference.objective + slack
    assert reference.certificate.lower_bound <= solution.objective + slack


def stay_valid(problem, solver, optimum):
    """However far the solver gets in few iterations, its bounds hold the optimum between them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        solution = problem.solve(solver, max_iter=300)
    slack = 1e-10
    assert solution.certificate.kind == "duality_gap"
    assert solution.certificate.lower_bound <= optimum.objective * (1 + slack) + slack
    assert solution.objective >= optimum.certificate.lower_bound * (1 - slack) - slack
    assert (solution.status == "optimal") == (solution.certificate.relative_gap <= 1e-6)


# absolute values on a hinge are a linear program, on which a first-order method has no business
LINEAR_PROGRAMS = {(loss, name) for loss in ("Hinge", "MulticlassHinge") for name in PENALTIES} - {
    (loss, name) for loss in ("Hinge", "MulticlassHinge") for name in ("ridge", "network", "nonnegative", "weighted l1")
}


@pytest.mark.parametrize("solver", FIRST_ORDER)
@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_linear_problems(loss, name, solver):
    problem, reference = solved_linear_problem(loss, name)
    answer = dict(registry.refusals(problem)).get(solver)
    if answer is not None:
        with pytest.raises(ValueError, match="does not accept"):
            problem.solve(solver)
    elif (loss, name) not in LINEAR_PROGRAMS:
        agree(problem, solver, reference)
    else:
        stay_valid(problem, solver, reference)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_kernel_problems(loss, intercept, power):
    agree(kernel_problem(5, loss, intercept, 2, power), "admm")


def test_admm_beyond_the_factorised_size(monkeypatch):
    from cvxstructreg.solvers.first_order import admm

    monkeypatch.setattr(admm, "FACTORISE", 2)
    agree(linear_problem(11, "Logistic", "groups", True, True), "admm")
    agree(kernel_problem(5, "Hinge", True, 2, 1), "admm")


def test_the_reference_solves_with_other_solvers():
    problem = linear_problem(3, "Hinge", "ridge", True, False)
    optimum = problem.solve("cvxpy").objective
    for name in ("SCS", "ECOS", "OSQP"):
        solution = problem.solve("cvxpy", tol=1e-4, cvxpy_solver=name)
        assert solution.objective == pytest.approx(optimum, rel=1e-4)


def test_the_text_instance_selects_words_exactly():
    problem = METHODS["sentence-group-lasso"]()
    solution = problem.solve()
    assert 0 < np.count_nonzero(solution.coef) < solution.coef.size
