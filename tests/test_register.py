"""Solvers of third parties, and former names of solvers."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.solvers import Iterate, Solver, registry
from cvxstructreg.solvers.needs import Quadratic, ScoresCan

X = np.random.default_rng(0).normal(size=(40, 5))
RIDGE = csr.Problem(csr.Linear(X), csr.Logistic(np.arange(40) % 2) + csr.Ridge())


def descend(problem, start, tol, step=0.02):
    theta, b, parts = start.theta, start.b, problem.normal_form
    while True:
        slope = parts.smooth_score_grad(problem.model.scores(theta, b))
        theta = theta - step * (problem.model.adjoint(slope) + parts.quadratic_grad(theta))
        b = b - step * slope.sum(axis=0)
        yield Iterate(theta, b)


def solver(name="descent", **fields):
    return Solver(name, descend, (ScoresCan((("grad",),), "gradient"), Quadratic()), **fields)


def test_a_registered_solver_is_one_of_them():
    with csr.solvers.register(solver()) as registered:
        assert registry.named("descent") is registered
        assert csr.solvers.names()[-2:] == ("descent", "cvxpy")
        found = RIDGE.solve("descent", tol=1e-8)
        assert (found.status, found.solver) == ("optimal", "descent")
        assert "descent" in {row.solver for row in csr.verify(RIDGE).rows}
        with pytest.raises(ValueError, match=r"'descent' does not accept.*L1"):
            csr.Problem(RIDGE.model, RIDGE.terms[0] + csr.L1()).solve("descent")
        with pytest.raises(TypeError, match="no option 'speed'; it has step"):
            RIDGE.solve("descent", speed=3)
    assert "descent" not in csr.solvers.names()
    with pytest.raises(ValueError, match="no solver 'descent'"):
        RIDGE.solve("descent")


def test_auto_considers_it_where_it_was_put():
    with csr.solvers.register(solver(), before="newton"):
        assert RIDGE.solve(tol=1e-4).solver == "descent"
    assert RIDGE.solve().solver == "newton"


def test_without_a_block_it_stays_until_it_is_removed():
    csr.solvers.register(solver())
    try:
        assert "descent" in csr.solvers.names()
    finally:
        csr.solvers.unregister("descent")
    assert "descent" not in csr.solvers.names()


def test_kernels_reach_it_in_linear_coordinates():
    gram = X @ X.T + np.eye(40)
    problem = csr.Problem(csr.Kernel(gram), csr.Logistic(np.arange(40) % 2) + csr.RKHSNorm())
    with csr.solvers.register(solver(coordinates=registry.REFERENCE.coordinates[:0])):
        pass  # no coordinates at all are allowed too
    with csr.solvers.register(solver()):
        found, expected = problem.solve("descent", tol=1e-6, step=0.005), problem.solve("newton", tol=1e-9)
    np.testing.assert_allclose(gram @ found.coef, gram @ expected.coef, atol=1e-2)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (lambda: descend, TypeError, r"wrap a function as Solver\(name, run\)"),
        (lambda: solver("newton"), ValueError, "solver 'newton' already exists"),
        (lambda: solver("splitting"), ValueError, "solver 'splitting' already exists"),
        (lambda: solver("auto"), ValueError, "other than 'auto'"),
        (lambda: Solver("mine", lambda problem: None), TypeError, "must be a function"),
    ],
)
def test_what_cannot_be_registered(given, error, words):
    before = csr.solvers.names()
    with pytest.raises(error, match=words):
        csr.solvers.register(given())
    assert csr.solvers.names() == before


def test_what_cannot_be_removed():
    with pytest.raises(ValueError, match="belongs to the library"):
        csr.solvers.unregister("newton")
    with pytest.raises(ValueError, match="is not registered"):
        csr.solvers.unregister(solver())
    with pytest.raises(ValueError, match="no solver 'decent'"):
        csr.solvers.unregister("decent")


@pytest.mark.parametrize(
    ("former", "present"),
    [("splitting", "douglas_rachford"), ("warped", "warped_kernel"), ("multipliers", "augmented_lagrangian")],
)
def test_former_names_work_with_a_note(former, present):
    with pytest.warns(FutureWarning, match=f"'{former}' is now called '{present}'"):
        assert registry.named(former).name == present


def test_a_wrong_name_gets_a_suggestion():
    with pytest.raises(ValueError, match="no solver 'newtno'; did you mean 'newton'"):
        RIDGE.solve("newtno")
    with pytest.raises(ValueError, match="no solver 'zzz'; choose from 'auto', "):
        RIDGE.solve("zzz")
