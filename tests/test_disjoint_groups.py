"""Disjoint groups by group_descent, against the reference and in awkward conditions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from disjoint_group_problems import (
    KINDS,
    D,
    N,
    assert_agree,
    build,
    data,
    group_lasso,
    labels,
    laplacian,
    mixed,
    multinomial,
    multinomial_rows,
    ridge,
    singletons,
    sparse_group_lasso,
    squared,
    unpenalised,
)

import cvxstructreg as csr
from cvxstructreg.core.loss import Loss
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.groups import group_descent


@pytest.fixture
def compiled(monkeypatch):
    """Compiled passes whatever the size."""
    monkeypatch.setattr(group_descent, "FEW_NUMBERS", 0)


@pytest.fixture
def plain(monkeypatch):
    """Passes in NumPy whatever the size."""
    monkeypatch.setattr(group_descent, "FEW_NUMBERS", 10**9)
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


def test_single_features_with_dependent_columns():
    """Norms of single features have no curvature, so the model is flat along w = (1, -1, 1, 0)."""
    X = np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    penalty = 0.0035772012700085168 * csr.GroupLasso(csr.Groups([[0], [1], [2], [3]], n_features=4))
    problem = csr.Problem(csr.Linear(X, intercept=False), csr.Logistic([1, 1, -1]) + penalty)
    assert problem.solve("group_descent", tol=1e-6).status == "optimal"  # warnings are errors: no overflow
