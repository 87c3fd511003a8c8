"""The working-set solver: against the reference, scikit-learn and liblinear, and in awkward conditions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso, LogisticRegression

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.objective import Objective
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.lasso import compiled_coordinate_descent, irls, working_set
from cvxstructreg.solvers.lasso.deferred_pull import LazyPull
from cvxstructreg.testing import check_solver
from random_problems import linear_problem, random_graph

LOSSES = ("Squared", "Logistic", "SquaredHinge")
PENALTIES = ("l1", "laplacian", "box", "nonnegative", "weighted l1")


def data(n=40, d=60, seed=0, density=0.4):
    """Features, labels and responses with a sparse truth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    w = np.zeros(d)
    w[:5] = rng.normal(size=5)
    target = X @ w + 0.5 * rng.normal(size=n) + 0.3
    return X, np.where(target > np.median(target), 1, -1), target


def lam_max(X, loss):
    """The smallest strength at which all weights are zero, with the intercept at its minimum."""
    problem = csr.Problem(csr.Linear(X), loss + 1e6 * csr.L1())
    b = problem.solve(solver="working_set", tol=1e-12).intercept
    return float(np.abs(X.T @ loss.grad(np.full((X.shape[0], 1), b))).max())


def solve(problem, tol=1e-8, **options):
    solution = problem.solve(solver="working_set", tol=tol, **options)
    assert solution.status == "optimal"
    return solution


def same_optimum(problem, other, tol=1e-6):
    """Two solutions whose certificates do not contradict each other."""
    mine = solve(problem, tol)
    theirs = problem.solve(solver=other, tol=tol)
    scale = objective_scale(problem, mine.objective)
    assert abs(mine.objective - theirs.objective) <= 2.0 * tol * scale
    return mine, theirs


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(LOSSES), st.sampled_from(PENALTIES), st.booleans(), st.booleans())
def test_reaches_the_reference(seed, loss, penalty, intercept, sparse):
    """Sample weights and a part of the rows are in all of these."""
    check_solver("working_set", linear_problem(seed, loss, penalty, intercept, sparse))


@settings(max_examples=20)
@given(
    st.integers(0, 10_000),
    st.sampled_from(LOSSES),
    st.sampled_from(("l1", "laplacian", "weighted l1")),
    st.booleans(),
)
def test_irls_reaches_the_reference(seed, loss, penalty, intercept):
    check_solver("irls", linear_problem(seed, loss, penalty, intercept, False))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["Logistic", "Squared", "SquaredHinge"])
def test_more_features_than_a_working_set(loss, sparse):
    X, y, target = data(n=80, d=400)
    X = sp.csr_array(X) if sparse else X
    term = getattr(csr, loss)(target if loss == "Squared" else y)
    graph = random_graph(np.random.default_rng(0), 400, True)
    objective = term + 0.1 * lam_max(X, term) * csr.L1() + 0.5 * csr.Laplacian(graph, normalized=True)
    mine, theirs = same_optimum(csr.Problem(csr.Linear(X), objective), "irls")
    assert 0 < np.count_nonzero(mine.coef) < 200
    np.testing.assert_allclose(mine.coef, theirs.coef, atol=1e-2)


def test_features_without_absolute_value_are_always_in():
    X, y, _ = data(n=60, d=300)
    weights = np.ones(300)
    weights[[3, 250]] = 0.0
    objective = csr.Logistic(y) + 2.0 * csr.L1(weights=weights)
    mine, _ = same_optimum(csr.Problem(csr.Linear(X), objective), "cvxpy")
    assert np.all(mine.coef[[3, 250]] != 0.0)


def test_large_strength_gives_exact_zeros():
    X, y, target = data()
    for loss in (csr.Logistic(y), csr.Squared(target), csr.SquaredHinge(y)):
        limit = lam_max(X, loss)
        for factor in (1.0 + 1e-6, 10.0, 1e9):
            solution = solve(csr.Problem(csr.Linear(X), loss + factor * limit * csr.L1()))
            assert not solution.coef.any()
        assert solve(csr.Problem(csr.Linear(X), loss + 0.9 * limit * csr.L1())).coef.any()


def test_agrees_with_the_lasso_of_scikit_learn():
    X, _, target = data()
    n = X.shape[0]
    peer = Lasso(alpha=0.05, tol=1e-12, max_iter=100_000).fit(X, target)
    solution = solve(csr.Problem(csr.Linear(X), csr.Squared(target) + 0.05 * n * csr.L1()), tol=1e-11)
    np.testing.assert_allclose(solution.coef, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(solution.intercept, peer.intercept_, atol=1e-5)
    np.testing.assert_array_equal(solution.coef != 0, peer.coef_ != 0)


def test_agrees_with_liblinear():
    X, y, _ = data()
    version = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
    kind = {"penalty": "l1"} if version < (1, 8) else {"l1_ratio": 1.0}
    peer = LogisticRegression(**kind, solver="liblinear", C=1.0, fit_intercept=False, tol=1e-10, max_iter=100_000)
    peer.fit(X, y)
    solution = solve(csr.Problem(csr.Linear(X, intercept=False), csr.Logistic(y) + csr.L1()), tol=1e-10)
    np.testing.assert_allclose(solution.coef, peer.coef_[0], atol=1e-4)


def test_warm_start_from_the_optimum_stays():
    X, y, _ = data()
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + 1.5 * csr.L1())
    first = solve(problem)
    again = solve(problem, warm_start=first)
    assert again.n_iter == 1
    assert again.objective <= first.objective * (1.0 + 1e-12)
    far = solve(problem, warm_start=(np.full(X.shape[1], 5.0), -3.0))
    np.testing.assert_allclose(far.objective, first.objective, rtol=1e-7)


def test_warm_start_outside_the_bounds_is_moved_inside():
    X, y, _ = data()
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.5 * csr.L1() + csr.Box(0.1, 0.3))
    solution = solve(problem, warm_start=(np.full(X.shape[1], 5.0), 0.0))
    assert solution.coef.min() >= 0.1
    assert solution.coef.max() <= 0.3


@pytest.mark.parametrize("sparse", [False, True])
def test_duplicate_constant_and_empty_columns(sparse):
    X, y, _ = data()
    X = np.column_stack([X, X[:, :5], np.ones(40), np.full(40, 1e6), np.zeros(40)])
    X = sp.csr_array(X) if sparse else X
    mine, _ = same_optimum(csr.Problem(csr.Linear(X), csr.Logistic(y) + 1.5 * csr.L1()), "cvxpy")
    assert not mine.coef[-3:].any()  # the intercept does the same for nothing


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_columns_of_extreme_scale(scale, sparse):
    X, y, _ = data()
    plain = solve(csr.Problem(csr.Linear(X), csr.Logistic(y) + 1.5 * csr.L1()))
    scales = np.where(np.arange(60) % 2 == 0, scale, 1.0)
    scaled = sp.csr_array(X * scales) if sparse else X * scales
    # the weights of the absolute values undo the scale
    problem = csr.Problem(csr.Linear(scaled), csr.Logistic(y) + 1.5 * csr.L1(weights=scales))
    np.testing.assert_allclose(solve(problem).objective, plain.objective, rtol=1e-7)
    check = csr.Problem(csr.Linear(scaled), csr.Logistic(y) + 1.5 * csr.L1())
    assert solve(check, tol=1e-6).certificate.relative_gap <= 1e-6


def variants(X):
    """The same matrix in other storage."""
    csr_array = sp.csr_array(X)
    wide = csr_array.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    unsorted = sp.csr_array((csr_array.data[::-1], csr_array.indices[::-1], csr_array.indptr), shape=X.shape)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(csr_array.indptr))
    unsorted = sp.csr_array(sp.coo_array((csr_array.data, (rows, csr_array.indices)), shape=X.shape))
    unsorted.indices[:2], unsorted.data[:2] = unsorted.indices[1::-1].copy(), unsorted.data[1::-1].copy()
    unsorted.has_sorted_indices = False
    twice = sp.csr_array(
        (np.tile(csr_array.data / 2, 2), (np.tile(rows, 2), np.tile(csr_array.indices, 2))), shape=X.shape
    )
    frozen = X.copy()
    frozen.flags.writeable = False
    strided = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    return {
        "csr": csr_array,
        "csc": sp.csc_array(X),
        "coo": sp.coo_matrix(X),
        "int64 indices": wide,
        "unsorted": unsorted,
        "duplicates": twice,
        "fortran": np.asfortranarray(X),
        "read-only": frozen,
        "not contiguous": strided,
        "reversed": X[::-1][::-1],
        "list": X.tolist(),
    }


@pytest.mark.parametrize("storage", list(variants(np.eye(2))))
def test_storage_does_not_matter(storage):
    X, y, _ = data()
    expected = solve(csr.Problem(csr.Linear(X), csr.Logistic(y) + 1.5 * csr.L1()))
    given_X = variants(X)[storage]
    solution = solve(csr.Problem(csr.Linear(given_X), csr.Logistic(y) + 1.5 * csr.L1()))
    np.testing.assert_allclose(solution.coef, expected.coef, atol=1e-4)


def test_float32_and_integers():
    X, y, _ = data()
    X = np.round(3 * X)
    expected = solve(csr.Problem(csr.Linear(X), csr.Logistic(y) + 1.5 * csr.L1()))
    for dtype in (np.float32, np.int8):
        for given_X in (X.astype(dtype), sp.csr_array(X.astype(dtype))):
            solution = solve(csr.Problem(csr.Linear(given_X), csr.Logistic(y) + 1.5 * csr.L1()))
            np.testing.assert_allclose(solution.objective, expected.objective, rtol=1e-7)


def test_the_data_stay_as_they_are():
    X, y, _ = data()
    sparse, dense = sp.csr_array(X), np.asfortranarray(X)
    kept = sparse.copy()
    for design in (sparse, dense):
        solve(csr.Problem(csr.Linear(design), csr.Logistic(y) + 1.5 * csr.L1()))
    assert (kept != sparse).nnz == 0
    assert dense.flags.writeable
    np.testing.assert_array_equal(dense, X)


def test_separable_classes_with_small_strength():
    X, y, _ = data(n=30, d=80)
    for strength in (1e-2, 1e-4):
        solve(csr.Problem(csr.Linear(X), csr.Logistic(y) + strength * csr.L1()), tol=1e-6)


def test_refusals_say_why():
    X, y, target = data()
    linear, groups = csr.Linear(X), csr.Groups([[0, 1], [1, 2]], n_features=60)
    virtual = csr.Graph.from_edges([(0, 60), (1, 60)], n_nodes=61, virtual=[60])
    cases = {
        "requires a single output, but the problem has 2": csr.Squared(np.column_stack([target, target])) + csr.L1(),
        "hess_diag": csr.Hinge(y) + csr.L1(),
        "separable": csr.Logistic(y) + csr.L1() + csr.GroupLasso(groups),
        "neither L1 nor a bound": csr.Logistic(y) + csr.Ridge(),
        "virtual": csr.Logistic(y) + csr.L1() + csr.Laplacian(virtual),
        "other term": csr.Logistic(y) + csr.L1() + csr.Ridge().on_scores(),
    }
    for words, objective in cases.items():
        for module in (working_set, irls):
            refusal = module.SOLVER.refusal(csr.Problem(linear, objective))
            assert refusal is not None
            assert words in refusal.reason
    bounded = csr.Problem(linear, csr.Logistic(y) + csr.L1() + csr.NonNegative())
    assert working_set.SOLVER.accepts(bounded)
    assert "bounds" in irls.SOLVER.refusal(bounded).reason


def test_a_large_dense_matrix_is_refused():
    d = 1001
    problem = csr.Problem(csr.Linear(np.ones((2, d))), csr.Squared([0.0, 1.0]) + csr.L1() + csr.Quadratic(np.eye(d)))
    assert "dense" in working_set.SOLVER.refusal(problem).reason


def test_the_curvature_is_that_of_hessp():
    rng = np.random.default_rng(0)
    for loss in (csr.Logistic, csr.Squared, csr.SquaredHinge):
        for atom, shape in loss.examples(rng):
            z, p = rng.normal(size=shape), rng.normal(size=shape)
            np.testing.assert_allclose(atom.hess_diag(z) * p, atom.hessp(z, p))


def test_columns_are_kept_for_a_model_and_its_rows():
    X, y, _ = data()
    model = csr.Linear(sp.csr_array(X))
    some, others = np.arange(0, 30), np.arange(10, 40)

    def columns(rows):
        loss = csr.Logistic(y if rows is None else y[rows], rows=rows)
        return working_set.design_columns(csr.Problem(model, loss + csr.L1()))[0]

    assert columns(some) is columns(some.copy())
    np.testing.assert_array_equal(columns(others).toarray(), X[others])
    np.testing.assert_array_equal(columns(None).toarray(), X)
    assert columns(None) is model.columns


@pytest.mark.parametrize("seed", range(5))
def test_remembered_gradients_are_exact_where_they_matter(seed):
    rng = np.random.default_rng(seed)
    X = sp.random_array((40, 60), density=0.2, format="csc", random_state=rng)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel())
    X = X if seed % 2 else np.asfortranarray(X.toarray())
    pull = LazyPull(working_set.as_columns(X), norms, X)
    threshold, always = rng.uniform(0.5, 8.0, 60), np.array([3, 17])
    g, old = rng.standard_normal(40), 0
    for _ in range(30):
        g = g + 0.02 * rng.standard_normal(40)
        shift = 0.1 * rng.standard_normal(60)
        found, exact = pull.at(compiled_coordinate_descent, g, shift, threshold, always), X.T @ g + shift
        same = np.isclose(found, exact, rtol=1e-12, atol=1e-12)
        assert same[always].all()
        assert same[np.abs(exact) >= threshold].all()
        assert np.all(np.abs(found[~same]) < threshold[~same])
        old += np.count_nonzero(~same)
    assert old > 0  # something was saved


@pytest.mark.parametrize("seed", range(10))
def test_a_singular_model_without_minimum_for_its_signs(seed):
    """One sample: along most directions the model is linear, and a jump would go to infinity."""
    rng = np.random.default_rng(seed)
    X, target = rng.normal(size=(1, 20)), 2.0 * rng.normal(size=1)
    solution = solve(csr.Problem(csr.Linear(X, intercept=False), csr.Squared(target) + 0.1 * csr.L1()))
    assert np.abs(solution.coef).max() < 10.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_dual_point_of_the_last_model_proves_the_gap(loss, sparse):
    X, y, target = data(n=80, d=300)
    X = sp.csr_array(X) if sparse else X
    term = getattr(csr, loss)(target if loss == "Squared" else y)
    problem = csr.Problem(csr.Linear(X), term + 0.2 * lam_max(X, term) * csr.L1())
    solution = solve(problem, tol=1e-7)
    assert set(solution.dual) == {0}
    (u,) = solution.dual.values()
    assert abs(u.sum()) <= 1e-9 * np.abs(u).sum()
    pull = np.abs(X.T @ u).max() / (0.2 * lam_max(X, term))
    assert pull <= 1.0 + 1e-5
    bound = -term.conj(u / max(1.0, pull))  # the objective has no other term that costs anything in the dual
    scale = objective_scale(problem, solution.objective)
    assert solution.objective - bound <= 1e-6 * scale
    assert solution.certificate.lower_bound <= solution.objective * (1.0 + 1e-12)  # round-off
    assert bound <= solution.objective * (1.0 + 1e-12)


def test_problems_of_one_model_are_solved_in_threads():
    X, y, _ = data()
    model = csr.Linear(sp.csr_array(X))
    problems = [csr.Problem(model, csr.Logistic(y) + strength * csr.L1()) for strength in np.geomspace(0.2, 3.0, 12)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda problem: problem.solve("working_set", tol=1e-9), problems))
    for problem, solution in zip(problems, together, strict=True):
        alone = csr.Problem(csr.Linear(sp.csr_array(X)), Objective(problem.terms)).solve("working_set", tol=1e-9)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(alone.objective, rel=2e-9)


def test_models_above_the_loss_are_solved_roughly():
    """The diagonal model of Cox is above the loss: accurate minima of it took four times as long on 500 x 5,000."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 100))
    losses = csr.Cox(rng.exponential(size=60), event=rng.random(60) < 0.7), csr.Logistic(rng.random(60) < 0.5)
    accuracies = []
    for loss in losses:
        problem = csr.Problem(csr.Linear(X, intercept=False), loss + csr.L1())
        weights = problem.solve(tol=1e-3).coef.reshape(-1, 1)
        state = working_set.State(problem, Iterate(weights, np.zeros(1)), 1e-8)
        state.evaluate(1e-8)
        accuracies.append(state.accuracy(1e-4, 1e-8) / 1e-4)
    assert accuracies[0] == working_set.INNER > 100.0 * accuracies[1]
