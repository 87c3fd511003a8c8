"""Problems without a minimiser: separated classes, and penalties that do not grow along the separating direction."""

from __future__ import annotations

import time

import cvxpy as cp
import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.certificates.directions.no_minimiser import escape


def separated(rng, n=20):
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "fista", "admm"])
def test_separable_data_without_a_penalty_have_no_minimiser(solver):
    X, y = separated(np.random.default_rng(0))
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y))
    with pytest.warns(csr.NoMinimiserWarning, match="features 0"):
        solution = problem.solve(solver, max_iter=200)
    assert solution.status == "no_minimiser"


def test_a_penalty_on_the_separating_direction_gives_a_minimiser():
    X, y = separated(np.random.default_rng(0))
    for penalty in (csr.L1(weights=[1.0, 0.0, 0.0]), csr.Ridge(weights=[1.0, 0.0, 0.0]), csr.Box(-1.0, 1.0)):
        assert csr.Problem(csr.Linear(X), csr.Logistic(y) + penalty).solve().status == "optimal"


def test_separable_data_have_no_minimiser_even_if_the_time_is_over():
    """The gap reaches the tolerance on the way, but nothing is optimal."""

    def wait(record):
        if record.certificate is not None and record.certificate.relative_gap < 1e-6:
            time.sleep(0.4)

    X, y = np.array([[-2.0], [-1.0], [1.0], [3.0]]), [0, 0, 1, 1]
    with pytest.warns(csr.NoMinimiserWarning, match="has no minimiser"):
        solution = csr.Problem(csr.Linear(X), csr.Logistic(y)).solve("newton", time_limit=0.3, callback=wait)
    assert solution.status == "no_minimiser" and solution.certificate.relative_gap < 1e-6


@pytest.mark.parametrize("function", [lambda w: cp.max(w) - cp.min(w), lambda w: cp.norm1(w[1:]) + cp.tv(w[1:])])
def test_an_expression_that_leaves_the_separating_direction_free_has_no_minimiser(function):
    X, y = separated(np.random.default_rng(0))
    if np.isclose(csr.FromExpression(function).value(np.ones((3, 1))), 0.0):  # equal weights are free
        X = np.column_stack([X[:, 0] - X[:, 1] - X[:, 2], X[:, 1:]])
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.FromExpression(function))
    with pytest.warns(csr.NoMinimiserWarning):
        solution = problem.solve(max_iter=2_000)
    assert solution.status == "no_minimiser"


def test_bounds_on_one_side_do_not_hold_the_other():
    X, y = separated(np.random.default_rng(0))
    up = csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.NonNegative())
    assert escape(up, np.zeros((3, 1)), np.zeros(1)) is not None
    down = csr.Problem(csr.Linear(-X), csr.Logistic(y) + csr.NonNegative())
    assert escape(down, np.zeros((3, 1)), np.zeros(1)) is None


def path_of(n):
    return csr.Graph.from_edges([[j, j + 1] for j in range(n - 1)], np.ones(n - 1), n)


@pytest.mark.parametrize(
    "case",
    [
        # all that changes a score costs something: only round-off separates
        (np.array([[0.7, -0.7, 0.4], [0.3, -0.2, 1.0]]), csr.Quadratic(matrix=[[5.7, 2.3], [2.3, 1.8]]).on_function()),
        # small eigenvalues: of a third power, of a squared design, and beside a large strength
        (np.linspace(-1.0, 1.0, 200)[None, :] * [[-1.0], [1.0]], csr.Laplacian(path_of(200), power=3)),
        (np.array([[-1.0, 1e7], [1.0, 1e7]]), csr.Quadratic(matrix=np.eye(2)).on_function()),
        (
            np.array([[-1.0, 0.0], [1.0, 0.0]]),
            1e10 * csr.Quadratic(matrix=np.diag([0.0, 1.0])) + 1e-6 * csr.Quadratic(factor=np.array([[1.0, 0.1]])),
        ),
    ],
    ids=["round-off", "power", "squared", "strength"],
)
def test_a_penalty_that_grows_slowly_gives_a_minimiser(case):
    X, penalty = case
    problem = csr.Problem(csr.Linear(X, intercept=False), csr.Logistic([0, 1]) + penalty)
    assert escape(problem, np.zeros((X.shape[1], 1)), np.zeros(1)) is None


def test_classes_of_the_multinomial_loss_that_are_separated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.argmax(X @ np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]), axis=1)
    with pytest.warns(csr.NoMinimiserWarning):
        assert csr.Problem(csr.Linear(X), csr.Multinomial(y)).solve(max_iter=200).status == "no_minimiser"
    overlapping = csr.Problem(csr.Linear(X), csr.Multinomial(rng.permutation(y)))
    assert overlapping.solve().status == "optimal"
