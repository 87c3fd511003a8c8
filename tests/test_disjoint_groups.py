"""Disjoint groups by group_descent, against the reference and in awkward conditions."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.core.loss import Loss
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.groups import group_descent, plain_group_descent
from cvxstructreg.solvers.lasso.working_set import as_columns
from random_problems import random_graph

N, D = 30, 12


def data(rng, sparse=False, n=N, d=D):
    X = rng.normal(size=(n, d))
    return sp.csr_array(X * (rng.random((n, d)) < 0.5)) if sparse else X


def labels(rng, n=N):
    return rng.permutation(np.arange(n) % 2)


def mixed(rng, **options):
    """Groups of five, four, one and one features; the last feature is in none."""
    members = np.split(rng.permutation(D - 1), [5, 9, 10])
    return csr.Groups([sorted(group.tolist()) for group in members], n_features=D, **options)


def group_lasso(rng, X):
    groups = csr.Groups.from_labels(rng.permutation(D) // 4, weights=np.sqrt)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 0.8 * csr.GroupLasso(groups))


def sparse_group_lasso(rng, X):
    penalty = 0.3 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def weak_norms(rng, X):
    penalty = 0.8 * csr.L1() + 1e-3 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def weights(rng, X):
    groups = mixed(rng, weights=rng.uniform(0.2, 2.0, size=4))
    penalty = 0.3 * csr.L1(weights=rng.uniform(0.1, 2.0, size=D)) + 0.5 * csr.GroupLasso(groups)
    loss = csr.Logistic(labels(rng), sample_weight=rng.uniform(0.0, 2.0, size=N))
    return csr.Problem(csr.Linear(X), loss + penalty)


def rows(rng, X):
    loss = csr.Logistic(labels(rng)[:20], rows=rng.permutation(N)[:20])
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.3 * csr.GroupLasso(mixed(rng)))


def without_intercept(rng, X):
    penalty = 0.1 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X, intercept=False), csr.Logistic(labels(rng)) + penalty)


def squared(rng, X):
    penalty = 0.1 * csr.L1() + 1.5 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X), csr.Squared(3.0 + rng.normal(size=N)) + penalty)


def squared_hinge(rng, X):
    penalty = 0.1 * csr.L1() + 0.9 * csr.GroupLasso(mixed(rng))
    return csr.Problem(csr.Linear(X), csr.SquaredHinge(labels(rng)) + penalty)


def two_losses(rng, X):
    loss = csr.Logistic(labels(rng)[:20], rows=np.arange(20)) + 0.3 * csr.Squared(
        rng.normal(size=15), rows=np.arange(15, 30)
    )
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng)))


def ridge(rng, X):
    penalty = 0.1 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng)) + 0.2 * csr.Ridge()
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def some_ridge(rng, X):
    groups = csr.Groups.from_labels(rng.permutation(D) // 4)
    penalty = 0.5 * csr.GroupLasso(groups) + 0.2 * csr.Ridge(weights=np.arange(D) % 2)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def laplacian(rng, X):
    penalty = 0.1 * csr.L1() + 0.3 * csr.GroupLasso(mixed(rng)) + 0.4 * csr.Laplacian(random_graph(rng, D, True))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def network(rng, X):
    penalty = 0.1 * csr.L1() + 0.3 * csr.GroupLasso(mixed(rng)) + 0.4 * csr.FeatureNetwork(random_graph(rng, D, True))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def multinomial(rng, X):
    loss = csr.Multinomial(rng.permutation(np.arange(N) % 3))
    return csr.Problem(csr.Linear(X), loss + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng)))


def multinomial_rows(rng, X):
    """One group for each feature: rows of weights."""
    loss = csr.Multinomial(rng.permutation(np.arange(N) % 4))
    groups = csr.Groups.from_labels(np.arange(D))
    return csr.Problem(csr.Linear(X), loss + 1.2 * csr.GroupLasso(groups))


def multinomial_laplacian(rng, X):
    loss = csr.Multinomial(rng.permutation(np.arange(N - 5) % 3), rows=rng.permutation(N)[5:])
    penalty = 0.5 * csr.GroupLasso(mixed(rng)) + 0.1 * csr.L1() + 0.4 * csr.Laplacian(random_graph(rng, D, True))
    return csr.Problem(csr.Linear(X, intercept=False), loss + penalty)


def unpenalised(rng, X):
    groups = csr.Groups([[3, 4], [5, 6, 7, 8], [9, 10, 11]], n_features=D, weights=[1.0, 2.0, 1.0])
    penalty = 0.2 * csr.L1(weights=np.r_[0.0, 0.0, np.ones(10)]) + 0.5 * csr.GroupLasso(groups)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def free_groups(rng, X):
    penalty = 0.2 * csr.L1() + 0.5 * csr.GroupLasso(mixed(rng, weights=[0.0, 1.0, 0.0, 2.0]))
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def few_features(rng, X):
    """Most features are in no group."""
    groups = csr.Groups([[0, 3], [1]], n_features=D, weights=[1.0, 0.0])
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 0.2 * csr.L1() + 0.5 * csr.GroupLasso(groups))


def singletons(rng, X):
    groups = csr.Groups([[j] for j in range(D)], n_features=D)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 0.2 * csr.L1() + 0.5 * csr.GroupLasso(groups))


def one_group(rng, X):
    groups = csr.Groups([range(D)], n_features=D)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + 2.0 * csr.GroupLasso(groups))


def two_terms(rng, X):
    first, second = csr.Groups([[0, 1, 2]], n_features=D), csr.Groups([[3, 4], [7, 8, 9]], n_features=D)
    penalty = 0.2 * csr.L1() + 0.9 * csr.GroupLasso(first) + 0.4 * csr.GroupLasso(second)
    return csr.Problem(csr.Linear(X), csr.Logistic(labels(rng)) + penalty)


def duplicate_columns(rng, X):
    X = X[:, [0, 0, 0, 1, 1, 2, 3, 4, 5, 0, 1, 2]]
    return sparse_group_lasso(rng, X)


KINDS = (
    group_lasso, sparse_group_lasso, weak_norms, weights, rows, without_intercept, squared, squared_hinge, two_losses,
    ridge, some_ridge, laplacian, network, multinomial, multinomial_rows, multinomial_laplacian, unpenalised,
    free_groups, few_features, singletons, one_group, two_terms, duplicate_columns,
)  # fmt: skip


def build(kind, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    return kind(rng, data(rng, sparse))


def assert_agree(solution, reference):
    """Either bound is below the other's objective."""
    slack = 1e-11 * abs(reference.objective)
    assert solution.certificate.kind == "duality_gap"
    assert solution.certificate.lower_bound <= reference.objective + slack
    assert reference.certificate.lower_bound <= solution.objective + slack


@pytest.fixture
def compiled(monkeypatch):
    """Compiled passes whatever the size."""
    monkeypatch.setattr(group_descent, "PLAIN", 0)


@pytest.fixture
def plain(monkeypatch):
    """Passes in NumPy whatever the size."""
    monkeypatch.setattr(group_descent, "PLAIN", 10**9)
    monkeypatch.setattr(group_descent, "KERNELS", "not a module")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_the_reference(kind, sparse, compiled):
    problem = build(kind, 5, sparse)
    solution = problem.solve("group_descent", tol=1e-8)
    assert solution.status == "optimal"
    assert 0 <= solution.certificate.relative_gap <= 1e-8
    assert_agree(solution, problem.solve("cvxpy", tol=1e-5))


@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_the_reference_without_compiler(kind, plain):
    problem = build(kind, 6, True)
    solution = problem.solve("group_descent", tol=1e-8)
    assert solution.status == "optimal"
    assert_agree(solution, problem.solve("cvxpy", tol=1e-5))


@pytest.mark.parametrize("kind", [group_lasso, sparse_group_lasso, squared, multinomial_rows])
def test_zeros_are_exact(kind):
    problem = build(kind, 7)
    terms = [term if isinstance(term.atom, Loss) else 2.5 * term.scale * term.atom for term in problem.terms]
    problem = csr.Problem(problem.model, sum(terms[1:], terms[0]))
    solution, reference = problem.solve("group_descent", tol=1e-9), problem.solve("cvxpy", tol=1e-6)
    expected = np.abs(reference.coef) > 1e-4
    assert 0 < np.count_nonzero(expected) < expected.size
    np.testing.assert_array_equal(solution.coef != 0.0, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_strength_gives_zero(kind):
    problem = build(kind, 8)
    terms = [term if isinstance(term.atom, Loss) else 1e4 * term.atom for term in problem.terms]
    solution = csr.Problem(problem.model, sum(terms[1:], terms[0])).solve("group_descent")
    assert solution.status == "optimal"
    free = 2 if kind is unpenalised else 0
    assert not solution.coef[free:].any()
    assert np.count_nonzero(solution.coef) == free


def test_just_below_and_above_the_largest_strength():
    problem = build(group_lasso, 9)
    loss, term = problem.terms
    largest = csr.lambda_max(csr.Problem(problem.model, loss + term.atom))
    above = csr.Problem(problem.model, loss + 1.001 * largest * term.atom).solve("group_descent", tol=1e-10)
    below = csr.Problem(problem.model, loss + 0.97 * largest * term.atom).solve("group_descent", tol=1e-10)
    assert not above.coef.any()
    assert len(term.atom.selected(below.coef)) == 1


def test_no_strength_is_no_group_lasso():
    problem = build(sparse_group_lasso, 10)
    loss, l1, term = problem.terms
    without = csr.Problem(problem.model, loss + l1 + 0.0 * term.atom)
    assert registry.refusals(without)["group_descent"] == "there are no groups"
    assert_agree(without.solve(), csr.Problem(problem.model, loss + l1).solve())
    weightless = csr.GroupLasso(term.atom.groups.with_weights(0.0))
    costless = csr.Problem(problem.model, loss + l1 + weightless)
    assert_agree(costless.solve("group_descent", tol=1e-9), without.solve(tol=1e-9))


def test_single_features_are_a_lasso():
    problem = build(singletons, 11)
    loss = problem.terms[0]
    lasso = csr.Problem(problem.model, loss + 0.7 * csr.L1())
    solution, expected = problem.solve("group_descent", tol=1e-11), lasso.solve("working_set", tol=1e-11)
    np.testing.assert_allclose(solution.coef, expected.coef, atol=1e-5)


def test_one_group_of_all_features_and_orthogonal_columns():
    """min 1/2 ||y - Qw||^2 + lam ||w|| has the solution (1 - lam / ||Q'y||) Q'y."""
    rng = np.random.default_rng(12)
    Q, y = np.linalg.qr(rng.normal(size=(20, 6)))[0], rng.normal(size=20)
    groups = csr.Groups([range(6)])
    solution = csr.Problem(csr.Linear(Q, intercept=False), csr.Squared(y) + 0.4 * csr.GroupLasso(groups)).solve(
        "group_descent", tol=1e-12
    )
    z = Q.T @ y
    np.testing.assert_allclose(solution.coef, (1.0 - 0.4 / np.linalg.norm(z)) * z, atol=1e-7)


@pytest.mark.parametrize("loss", [csr.Logistic, csr.Squared, csr.SquaredHinge])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_of_very_different_scale(loss, sparse):
    rng = np.random.default_rng(13)
    X = data(rng) * 10.0 ** rng.permutation(np.linspace(-8, 8, D))
    X = sp.csc_array(X) if sparse else X
    y = labels(rng)
    problem = csr.Problem(csr.Linear(X), loss(y) + 0.3 * csr.GroupLasso(csr.Groups.from_labels(np.arange(D) // 3)))
    solution = problem.solve("group_descent")
    assert solution.status == "optimal"
    assert solution.certificate.kind == "duality_gap"


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_all_columns_of_one_scale(scale):
    rng = np.random.default_rng(14)
    X, y, groups = data(rng), labels(rng), mixed(rng)
    penalty = 0.3 * csr.L1() + 0.5 * csr.GroupLasso(groups)
    expected = csr.Problem(csr.Linear(X), csr.Logistic(y) + penalty).solve("group_descent", tol=1e-10)
    scaled = 0.3 * scale * csr.L1() + 0.5 * scale * csr.GroupLasso(groups)
    solution = csr.Problem(csr.Linear(scale * X), csr.Logistic(y) + scaled).solve("group_descent", tol=1e-10)
    np.testing.assert_allclose(scale * solution.coef, expected.coef, atol=1e-4)
    assert solution.objective == pytest.approx(expected.objective, rel=1e-9)


def test_empty_and_constant_columns(compiled):
    rng = np.random.default_rng(15)
    X = data(rng)
    X[:, 2] = 0.0
    X[:, 5] = 7.0
    problem = sparse_group_lasso(rng, X)
    solution = problem.solve("group_descent", tol=1e-9)
    assert solution.status == "optimal"
    assert solution.coef[2] == 0.0
    assert_agree(solution, problem.solve("cvxpy", tol=1e-5))
    groups = csr.Groups([[0, 1], [3, 4]], n_features=D)  # the empty column has no penalty at all
    problem = csr.Problem(csr.Linear(X), csr.Squared(rng.normal(size=N)) + 2.0 * csr.GroupLasso(groups))
    assert problem.solve("group_descent").status == "optimal"


@pytest.mark.parametrize("intercept", [False, True])
def test_one_sample_and_one_feature(intercept, compiled):
    one = csr.Groups([[0, 1], [2]], n_features=3)
    problem = csr.Problem(
        csr.Linear(np.array([[1.0, -2.0, 0.5]]), intercept=intercept), csr.Squared([3.0]) + 0.5 * csr.GroupLasso(one)
    )
    assert_agree(problem.solve("group_descent"), problem.solve("cvxpy", tol=1e-5))
    y, x = np.array([1.0, 2.0, 4.0]), np.array([[1.0], [2.0], [3.0]])
    problem = csr.Problem(
        csr.Linear(x, intercept=intercept), csr.Squared(y) + 0.5 * csr.GroupLasso(csr.Groups([[0]], n_features=1))
    )
    assert_agree(problem.solve("group_descent"), problem.solve("cvxpy", tol=1e-5))


def _variants(X):
    """The same matrix as users may hand it in."""
    wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]))
    wide[::2, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    long = sp.csr_array(X)
    long = sp.csr_array((long.data, long.indices.astype(np.int64), long.indptr.astype(np.int64)), shape=long.shape)
    return {
        "non-contiguous": wide[::2, ::2],
        "Fortran": np.asfortranarray(X),
        "read-only": frozen,
        "float32": X.astype(np.float32),
        "int64 indices": long,
        "csc": sp.csc_array(X),
        "coo matrix": sp.coo_matrix(X),
    }


@pytest.mark.parametrize("name", list(_variants(np.eye(2))))
def test_matrices_of_all_kinds(name, compiled):
    rng = np.random.default_rng(16)
    X = np.round(4.0 * data(rng)) / 4.0  # exact in single precision
    y, groups = labels(rng), mixed(rng)

    def solve(X):
        penalty = 0.2 * csr.L1() + 0.5 * csr.GroupLasso(groups)
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + penalty).solve("group_descent", tol=1e-9)

    given = _variants(X)[name]
    before = given.copy()
    solution = solve(given)
    assert solution.objective == pytest.approx(solve(X).objective, rel=1e-8)
    assert abs(before - given).sum() == 0.0


@pytest.mark.parametrize("kind", [sparse_group_lasso, multinomial, ridge])
def test_warm_starts(kind):
    problem = build(kind, 17)
    cold = problem.solve("group_descent")
    again = problem.solve("group_descent", warm_start=cold)
    assert again.n_iter == 1
    assert again.objective == pytest.approx(cold.objective, rel=1e-6)
    far = problem.solve("group_descent", warm_start=(np.full(cold.coef.shape, 50.0), cold.intercept))
    assert far.status == "optimal"
    assert_agree(far, cold)


def test_along_a_path_the_last_point_is_a_good_start():
    rng = np.random.default_rng(18)
    X = data(rng, n=60, d=40)
    y, groups = labels(rng, 60), csr.Groups.from_labels(np.arange(40) // 4)
    starts, cold = None, 0
    warm = 0
    for lam in (3.0, 2.5, 2.0, 1.6):
        problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + lam * csr.GroupLasso(groups))
        cold += problem.solve("group_descent").n_iter
        starts = problem.solve("group_descent", warm_start=starts)
        warm += starts.n_iter
    assert warm <= cold


@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 1e-9}])
def test_limits_leave_an_honest_gap(limit, monkeypatch):
    monkeypatch.setattr(group_descent, "SMALLEST_SET", 1)
    problem = build(sparse_group_lasso, 19)
    best = problem.solve("group_descent", tol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        stopped = problem.solve("group_descent", tol=1e-10, **limit)
    assert stopped.status == next(iter(limit))
    assert stopped.n_iter == 1
    assert stopped.certificate.gap >= stopped.objective - best.objective > 0.0


def test_an_impossible_tolerance_ends(compiled):
    problem = build(sparse_group_lasso, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)  # unless the gap is zero to the last digit
        solution = problem.solve("group_descent", tol=1e-300)
    assert solution.certificate.relative_gap <= 1e-10


@pytest.mark.parametrize("kind", [group_lasso, laplacian, multinomial])
def test_small_working_sets(kind, monkeypatch, compiled):
    monkeypatch.setattr(group_descent, "SMALLEST_SET", 1)
    monkeypatch.setattr(group_descent, "GROWTH", 1.0)
    problem = build(kind, 21)
    assert_agree(problem.solve("group_descent", tol=1e-9), problem.solve("cvxpy", tol=1e-5))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("lam1", [0.0, 0.5])
def test_it_agrees_with_group_newton_on_many_groups(sparse, lam1, compiled):
    rng = np.random.default_rng(29)
    X = sp.csr_array(rng.poisson(0.05, size=(150, 900)).astype(float)) if sparse else rng.normal(size=(150, 900))
    y = (X @ (rng.normal(size=900) * (rng.random(900) < 0.05)) > 0.0).astype(int)
    groups = csr.Groups.from_labels(rng.permutation(900) // 6, weights=np.sqrt)
    penalty = (0.4 if sparse else 4.0) * csr.GroupLasso(groups)
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + (penalty + lam1 * csr.L1() if lam1 else penalty))
    solution = problem.solve(tol=1e-8)
    assert (solution.solver, solution.status) == ("group_descent", "optimal")
    assert 100 < np.count_nonzero(solution.coef) < 900
    assert_agree(solution, problem.solve("group_newton", tol=1e-6))


def test_multipliers_say_which_groups_are_kept():
    problem = build(sparse_group_lasso, 5)
    loss, l1, term = problem.terms
    term = 3.0 * term.atom
    problem = csr.Problem(problem.model, loss + l1 + term)
    solution = problem.solve("group_descent", tol=1e-10)
    kept = term.atom.selected(solution.coef)
    assert 0 < len(kept) < len(term.atom.groups)
    np.testing.assert_array_equal(term.atom.selected(solution.coef, solution.dual[2], term.scale), kept)


def test_auto_takes_it_for_disjoint_groups_alone():
    problem = build(sparse_group_lasso, 23)
    names = [module.name for module in registry.accepting(problem)]
    assert names[0] == "group_descent"
    assert "group_newton" in names
    overlapping = csr.Groups([[0, 1, 2], [2, 3]], n_features=D)
    other = csr.Problem(problem.model, problem.terms[0] + 0.5 * csr.GroupLasso(overlapping) + 0.1 * csr.L1())
    assert "overlap" in registry.refusals(other)["group_descent"]
    assert registry.accepting(other)[0].name == "group_newton"


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (lambda: 0.3 * csr.GroupLasso(csr.Groups([[0, 1]], n_features=D)), "overlap"),
        (lambda: csr.Box(-1.0, 1.0), "bounds"),
        (lambda: csr.FusedLasso(csr.Graph.from_edges([[0, 1]], n_nodes=D)), "not a sum of norms"),
        (lambda: csr.Laplacian(csr.Graph.from_edges([[0, 1]], n_nodes=N)).on_scores(), "couples rows"),
    ],
)
def test_refusals(extra, reason):
    problem = build(sparse_group_lasso, 24)
    other = csr.Problem(problem.model, sum(problem.terms[1:], problem.terms[0]) + extra())
    assert reason in registry.refusals(other)["group_descent"]


def test_losses_without_curvature_are_refused():
    problem = build(sparse_group_lasso, 25)
    hinge = csr.Hinge(np.arange(N) % 2)
    other = csr.Problem(problem.model, hinge + sum(problem.terms[2:], problem.terms[1]))
    assert "no curvature for each row" in registry.refusals(other)["group_descent"]


# The kernels and their twins in NumPy.


def _layout(rng, starts, k, d):
    column = rng.permutation(d).astype(np.int64)
    radii = rng.uniform(0.0, 1.0, size=len(starts) - 1)
    radii[0] = 0.0
    sizes, lam = rng.uniform(0.5, 1.0, size=len(radii)), rng.uniform(0.0, 0.5, size=d * k)
    lam[: 2 * k] = 0.0
    return column, np.array(starts, dtype=np.int64), radii, sizes, lam


def _rows(rng, n, k):
    """The Hessians of the rows, and the inverse of their sum."""
    q = np.ascontiguousarray(rng.dirichlet(np.ones(k + 1), size=n)[:, :k]) if k > 1 else rng.uniform(size=(n, 1))
    between = np.diag(q.sum(axis=0)) - (q.T @ q if k > 1 else 0.0)
    return (q[:, 0], np.zeros(0), np.linalg.inv(between)) if k == 1 else (q, q.copy(), np.linalg.inv(between))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_compiled_passes_are_those_of_numpy(k, sparse):
    from cvxstructreg.solvers.groups import compiled_group_descent as compiled

    rng = np.random.default_rng(26)
    n, d = 15, 9
    dense = data(rng, n=n, d=d) * (rng.random((n, d)) < 0.6)
    dense[:, 1] = dense[:, 0]  # a block whose diagonal says too little
    X = as_columns(sp.csc_array(dense) if sparse else np.asfortranarray(dense))
    layout, hess = _layout(rng, [0, 1, 4, 8, 9], k, d), _rows(rng, n, k)
    chosen = np.array([0, 1, 2, 3])
    B = rng.normal(size=(4, d))
    matrix = sp.csr_array(B.T @ B)
    Q = (matrix.data, matrix.indices.astype(np.uint32), matrix.indptr.astype(np.int64))
    g = rng.normal(size=n) if k == 1 else rng.normal(size=(n, k))

    def run(module, X):
        slope, scores = np.zeros(d * k), np.zeros_like(g)
        module.slopes(X, layout, chosen[1:], g, k, slope)
        module.add_columns(X, layout, chosen[:3], slope, k, scores)
        curvature, centre = np.zeros(d * k), np.zeros(d * k * k)
        module.curvatures(X, layout, chosen, hess, k, matrix.diagonal(), np.full(d, 1e-3), curvature, centre)
        w, factors, r = np.zeros(d * k), np.ones(4), g.copy()
        Qw, total = np.zeros(d * k), np.atleast_1d(g.sum(axis=0))
        found = [module.descend(
            X, Q, layout, chosen, hess, k, curvature, centre, factors, total, r, w, Qw, 1e-9, passes
        ) for passes in (1, 3)]  # fmt: skip
        return [slope, scores, curvature, centre, w, factors, r, Qw, total, *map(np.array, found)]

    for one, other in zip(run(compiled, X), run(plain_group_descent, as_columns(dense)), strict=True):
        assert np.any(other)
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_passes_lower_the_model_and_keep_its_gradient():
    """r = g + HXd and Qw stay what they say, with the intercept at its minimum."""
    from cvxstructreg.solvers.groups import compiled_group_descent as compiled

    rng = np.random.default_rng(27)
    n, d = 40, 9
    X = data(rng, n=n, d=d)
    layout, hess = _layout(rng, [0, 1, 4, 8, 9], 1, d), _rows(rng, n, 1)
    column, starts, radii, _, lam = layout
    h, g, columns = hess[0], 5.0 * rng.normal(size=n), as_columns(np.asfortranarray(X))
    Q = (np.ones(d), np.arange(d, dtype=np.uint32), np.arange(d + 1))
    curvature, centre = np.zeros(d), np.zeros(d)
    compiled.curvatures(columns, layout, np.arange(4), hess, 1, np.ones(d), np.zeros(d), curvature, centre)
    w, Qw, r, total, factors = np.zeros(d), np.zeros(d), g.copy(), np.array([g.sum()]), np.ones(4)

    def value(w):
        z = X[:, column] @ w
        z = z - (g.sum() + h @ z) / h.sum()
        norms = np.sqrt(np.add.reduceat(w**2, starts[:-1]))
        return g @ z + 0.5 * h @ z**2 + 0.5 * w @ w + lam @ np.abs(w) + radii @ norms

    values = [value(w)]
    for _ in range(8):
        compiled.descend(
            columns, Q, layout, np.arange(4), hess, 1, curvature, centre, factors, total, r, w, Qw, 0.0, 1
        )  # fmt: skip
        np.testing.assert_allclose(r, g + h * (X[:, column] @ w), atol=1e-10)
        np.testing.assert_allclose(total, r.sum(), atol=1e-9)
        np.testing.assert_allclose(Qw, w, atol=1e-12)
        values.append(value(w))
    assert w.any()
    assert np.all(np.diff(values) <= 1e-12)


@pytest.mark.parametrize("spread", [0.0, 8.0])
def test_the_prox_of_a_block(spread):
    """Its optimality condition: bend x - a + radius x / ||x|| = 0, or x = 0 and ||a|| <= radius."""
    rng = np.random.default_rng(28)
    from cvxstructreg.solvers.groups import compiled_group_descent as compiled

    for _ in range(20):
        a, bend = rng.normal(size=5), 10.0 ** rng.uniform(-spread, spread, size=5)
        radius, x, twin = float(rng.uniform(0.0, 2.0)), np.empty(5), np.empty(5)
        compiled.block_prox(a, bend, radius, 5, x)
        plain_group_descent.block_prox(a, bend, radius, 5, twin)
        np.testing.assert_allclose(x, twin, rtol=1e-9, atol=1e-300)
        if np.linalg.norm(a) <= radius:
            assert not x.any()
        else:
            np.testing.assert_allclose(bend * x + radius * x / np.linalg.norm(x), a, atol=1e-7)


def test_small_problems_compile_none_of_its_kernels():
    code = """
import sys
import numpy as np
import cvxstructreg as csr
X = np.random.default_rng(0).normal(size=(20, 6))
groups = csr.Groups.from_labels([0, 0, 1, 1, 2, 2])
problem = csr.Problem(csr.Linear(X), csr.Logistic(np.arange(20) % 2) + 0.1 * csr.L1() + 0.5 * csr.GroupLasso(groups))
solution = problem.solve()
assert (solution.status, solution.solver) == ("optimal", "group_descent")
assert not [name for name in sys.modules if name.endswith(("compiled_group_descent", "compiled_columns"))]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
