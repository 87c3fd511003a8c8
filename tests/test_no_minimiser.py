"""Problems without a minimiser: separated classes, and penalties that do not grow along the separating direction."""

from __future__ import annotations

import time

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates.directions.gains import falls_along
from cvxstructreg.certificates.directions.no_minimiser import escape
from cvxstructreg.runtime import deadline


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


def many(kind, n=40, d=1100):
    """Problems with more weights without penalty than a linear program of their columns may have."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, n)
    if kind == "sparse":
        return csr.Problem(csr.Linear(sp.random_array((n, d), density=0.1, rng=1, format="csr")), csr.Logistic(y))
    if kind == "some weights":
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.L1(weights=np.arange(d) < 5))
    if kind == "some rows":
        return csr.Problem(csr.Linear(X), csr.Logistic(y[:30], rows=np.arange(5, 35)))
    if kind == "scales":
        return csr.Problem(csr.Linear(X * 10.0 ** rng.integers(-6, 7, d)), csr.Logistic(y))
    if kind == "cox":
        return csr.Problem(csr.Linear(X, intercept=False), csr.Cox(rng.exponential(size=n), event=y))
    loss = {
        "logistic": csr.Logistic(y),
        "poisson": csr.Poisson(y),
        "multinomial": csr.Multinomial(y + 2 * (X[:, 0] > 0)),
    }
    return csr.Problem(csr.Linear(X), loss[kind])


KINDS = ["logistic", "sparse", "some weights", "some rows", "scales", "cox", "poisson", "multinomial"]


@pytest.mark.parametrize("kind", KINDS)
def test_more_weights_than_a_linear_program_has(kind):
    problem = many(kind)
    with pytest.warns(csr.NoMinimiserWarning, match="no minimiser"):
        assert problem.solve().status == "no_minimiser"


@pytest.mark.parametrize("kind", KINDS)
def test_more_weights_than_rows_separate_from_any_point(kind):
    """The point is no such direction; the objective falls along the one found."""
    problem = many(kind)
    shape = problem.normal_form.shape
    found = escape(problem, np.zeros(shape), np.zeros(shape[1]))
    size = np.abs(problem.model.scores(found.theta, found.b)).max()
    values = [problem.value_at(t * found.theta / size, t * found.b / size) for t in (0.0, 1.0, 9.0)]
    assert values[2] < values[1] < values[0]


@pytest.mark.parametrize("seed", range(24))
def test_many_weights_have_the_answer_of_the_few_that_they_combine(seed):
    rng = np.random.default_rng(seed)
    n, q, kind = int(rng.integers(4, 14)), int(rng.integers(1, 6)), seed % 4
    X, mix = rng.integers(-2, 3, (n, q)).astype(float), rng.normal(size=(q, 1100))
    y = np.r_[0, 1, rng.integers(0, 2 + (kind == 1), n - 2)]
    losses = [csr.Logistic, csr.Multinomial, csr.Poisson, lambda y: csr.Cox(rng.integers(1, 5, n), event=y)]
    loss = losses[kind](y)
    found = []
    for columns in (X, X @ mix):
        problem = csr.Problem(csr.Linear(columns, intercept=kind != 3 and seed % 3 > 0), loss)
        shape = problem.normal_form.shape
        found.append(escape(problem, np.zeros(shape), np.zeros(shape[1])) is not None)
    assert found[0] == found[1]


def test_a_direction_is_claimed_only_if_it_keeps_bounds_and_penalties():
    problem = many("logistic")
    found = escape(problem, np.zeros((1100, 1)), np.zeros(1))
    assert falls_along(problem.normal_form, found.theta, found.b)
    for penalty in (
        csr.L1(),
        csr.Ridge(weights=np.arange(1100) > 0),
        csr.Box(-1.0, 1.0),
        csr.GroupLasso([range(1100)]),
    ):
        held = csr.Problem(problem.model, problem.terms[0] + penalty)
        assert not falls_along(held.normal_form, found.theta, found.b)
        assert escape(held, found.theta, found.b) is None


@pytest.mark.parametrize("d", [1, 1100])
def test_a_row_of_huge_values_does_not_hide_that_the_others_overlap(d):
    X = np.outer(np.r_[1e10, np.tile([1.0, -1.0], 20)], np.random.default_rng(0).normal(size=d))
    problem = csr.Problem(csr.Linear(X, intercept=False), csr.Logistic(np.r_[1, np.tile([1, 0, 0, 1], 10)]))
    assert escape(problem, np.zeros((d, 1)), np.zeros(1)) is None
    assert escape(problem, np.ones((d, 1)), np.zeros(1)) is None


def test_large_data_are_tried_along_the_last_point():
    """More rows and weights than any linear program here has."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 1100))
    problem = csr.Problem(csr.Linear(X), csr.Logistic((X[:, 0] > 0).astype(int)))
    with pytest.warns(csr.NoMinimiserWarning):
        assert problem.solve("lbfgs", max_iter=200).status == "no_minimiser"


def test_the_search_ends_with_the_time_limit():
    problem = many("logistic")
    with deadline.within(1e-9):
        assert escape(problem, np.zeros((1100, 1)), np.zeros(1)) is None


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (csr.Logistic([0, 0, 1, 1]), "direction of features 0 separates the classes"),
        (csr.Cox([4.0, 3.0, 2.0, 1.0]), "direction of features 0 ranks every event first"),
        (csr.Poisson([3, 3, 0, 0]), "loss falls forever along the direction of features 1"),
    ],
    ids=["classes", "events", "counts"],
)
def test_the_warning_speaks_of_what_the_loss_has(loss, words):
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 1.0], [4.0, 1.0]])
    X = X[:, :1] if "classes" in words or "event" in words else X[:, [1, 1]] * [0.0, 1.0]
    with pytest.warns(csr.NoMinimiserWarning, match=words) as caught:
        solution = csr.Problem(csr.Linear(X, intercept=not isinstance(loss, csr.Cox)), loss).solve()
    assert solution.reason in str(caught[0].message) and solution.reason.startswith("features")


def test_a_rare_feature_of_one_class_is_found_on_large_data():
    """Before any score is large, and without a linear program."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30_000, 8)), rng.integers(0, 2, 30_000)
    nothing = np.zeros((8, 1)), np.zeros(1)
    assert escape(csr.Problem(csr.Linear(X), csr.Logistic(y)), *nothing) is None
    X[:, 3] = 0.0
    X[np.flatnonzero(y == 0)[:3], 3] = 2.0
    found = escape(csr.Problem(csr.Linear(X), csr.Logistic(y)), *nothing)
    assert found.in_words(None) == "features 3" and found.theta[3] < 0
