"""The working-set solver and its kernels: against the reference, a NumPy twin, scikit-learn, and bad input."""

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
from cvxstructreg.forms.separable import Separable
from cvxstructreg.solvers.lasso import compiled_coordinate_descent, compiled_jump, irls, working_set
from cvxstructreg.solvers.lasso.deferred_pull import LazyPull
from cvxstructreg.solvers.lasso.quadratic_model import Coefficients, QuadraticModel
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


# The kernels and their NumPy twins.


class Model:
    """A random quadratic model in the arrays of the kernels, and dense for the twin."""

    def __init__(self, seed, sparse, intercept, bounded=False):
        rng = np.random.default_rng(seed)
        self.n, self.d = 20, 12
        self.dense = rng.normal(size=(self.n, self.d)) * (rng.random((self.n, self.d)) < 0.6)
        self.dense[:, 3] = 0.0
        stored = sp.csc_array(self.dense) if sparse else np.asfortranarray(self.dense)
        self.X = working_set.as_columns(stored)
        N = rng.normal(size=(4, self.d)) * (rng.random((4, self.d)) < 0.5)
        self.dense_Q = N.T @ N
        self.Q, self.diagonal = (
            working_set.as_columns(sp.csr_array(self.dense_Q)),
            np.diag(self.dense_Q).copy(),
        )
        self.box = np.vstack([rng.uniform(0.5, 2.0, self.d), np.full(self.d, -np.inf), np.full(self.d, np.inf)])
        self.box[0, 5] = 0.0
        if bounded:
            self.box[1, ::3], self.box[2, ::2] = -0.05, 0.1
        self.intercept = intercept
        self.h, self.g = rng.uniform(0.1, 1.0, self.n), 3.0 * rng.normal(size=self.n)
        self.w = np.clip(rng.normal(size=self.d) * (rng.random(self.d) < 0.5), self.box[1], self.box[2])
        self.features = np.arange(self.d)
        self.mass = self.h.sum() if intercept else 0.0
        self.inverse = 1.0 / self.mass if intercept else 0.0
        self.centre = self.dense.T @ self.h if intercept else np.zeros(self.d)
        raw = (self.dense**2).T @ self.h
        self.curvature = np.maximum(raw - self.centre**2 * self.inverse, 1e-10 * raw) + self.diagonal

    def made(self):
        """The model as the solver makes it."""
        given = Coefficients(compiled_coordinate_descent, self.X, self.Q, self.diagonal, self.box, self.intercept)
        return QuadraticModel(given, self.features, self.h, self.g, self.w, self.dense_Q @ self.w)

    def hessian(self):
        H = self.dense.T @ (self.h[:, None] * self.dense) + self.dense_Q
        return H - np.outer(self.centre, self.centre) * self.inverse

    def value(self, w):
        """The model at w, minimised over the intercept, and the penalty."""
        move = self.dense @ (w - self.w)
        shift = -(self.g + self.h * move).sum() * self.inverse
        move = move + shift
        smooth = self.g @ move + 0.5 * move @ (self.h * move) + 0.5 * w @ self.dense_Q @ w
        return smooth + self.box[0] @ np.abs(w)


def twin_of_descend(model):
    """One pass with everything computed anew at every coordinate."""
    w, worst = model.w.copy(), 0.0
    for j in model.features:
        move = model.dense @ (w - model.w)
        r = model.g + model.h * move
        r = r - model.h * r.sum() * model.inverse
        slope = model.dense[:, j] @ r + model.dense_Q[j] @ w
        c, bend = model.box[0, j], model.curvature[j]
        if bend > 0:
            point = w[j] - slope / bend
            new = np.sign(point) * max(abs(point) - c / bend, 0.0)
        else:
            new = 0.0
        new = np.clip(new, model.box[1, j], model.box[2, j])
        worst = max(worst, abs(new - w[j]) * bend)
        w[j] = new
    return w, worst


models = st.builds(Model, st.integers(0, 10_000), st.booleans(), st.booleans(), st.booleans())


@settings(max_examples=40)
@given(models)
def test_descend_is_its_twin(model):
    made = model.made()
    worst = made.descend(model.features, 0.0, 1)
    expected, expected_worst = twin_of_descend(model)
    np.testing.assert_allclose(made.w, expected, atol=1e-10)
    np.testing.assert_allclose(worst, expected_worst, atol=1e-9)
    np.testing.assert_allclose(made.Qw, model.dense_Q @ made.w, atol=1e-10)
    np.testing.assert_allclose(made.r, model.g + model.h * (model.dense @ (made.w - model.w)), atol=1e-10)
    if model.intercept:
        np.testing.assert_allclose(made.total, made.r.sum(), atol=1e-10)


def test_passes_end_at_the_tolerance_or_the_limit():
    model = Model(0, True, True)
    made = model.made()
    assert made.descend(model.features, 0.0, 3) > 0.0
    assert made.passes == 3
    assert made.descend(model.features, 1e-8, 10_000) <= 1e-8
    assert made.passes < 10_000


@settings(max_examples=40)
@given(models)
def test_the_model_is_minimised(model):
    made = model.made()
    made.minimise(1e-10, 10_000)
    w, (change, shift) = made.w, made.change()
    np.testing.assert_allclose(change, model.dense @ (w - model.w) + shift, atol=1e-9)
    np.testing.assert_allclose(made.Qw, model.dense_Q @ w, atol=1e-9)
    expected, step = model.w.copy(), 1.0 / np.linalg.norm(model.hessian(), 2)
    for _ in range(3000):  # prox gradient steps, as plain as can be
        r = model.g + model.h * (model.dense @ (expected - model.w))
        r = r - model.h * r.sum() * model.inverse
        point = expected - step * (model.dense.T @ r + model.dense_Q @ expected)
        point = np.sign(point) * np.maximum(np.abs(point) - step * model.box[0], 0.0)
        expected = np.clip(point, model.box[1], model.box[2])
    assert model.value(w) <= model.value(expected) + 1e-9
    assert np.all((w >= model.box[1]) & (w <= model.box[2]))


@settings(max_examples=40)
@given(models)
def test_a_jump_changes_no_sign_and_goes_down(model):
    made = model.made()
    made.descend(model.features, 0.0, 1)
    before, residual = made.w.copy(), made.r.copy()
    made.jump(model.features, 1e-10)
    assert np.all((made.w * before >= 0.0) | (model.box[0] == 0.0))
    assert np.all((made.w >= model.box[1]) & (made.w <= model.box[2]))
    assert model.value(made.w) <= model.value(before) + 1e-10
    np.testing.assert_allclose(made.r, residual + model.h * (model.dense @ (made.w - before)), atol=1e-9)
    np.testing.assert_allclose(made.Qw, model.dense_Q @ made.w, atol=1e-9)
    if model.intercept:
        np.testing.assert_allclose(made.total, made.r.sum(), atol=1e-9)


@settings(max_examples=20)
@given(models)
def test_conjugate_gradients_solve_the_system(model):
    some = np.array([0, 1, 4, 7])
    slope = np.random.default_rng(0).normal(size=4)
    scratch = np.zeros(model.d)
    step, scores = compiled_jump.conjugate_gradients(
        model.X, model.Q, some, model.curvature, model.centre, model.h, model.inverse, slope, scratch, 1e-12
    )
    np.testing.assert_allclose(model.hessian()[np.ix_(some, some)] @ step, -slope, atol=1e-6)
    np.testing.assert_allclose(scores, model.dense[:, some] @ step, atol=1e-10)
    assert not scratch.any()


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_the_matrix_of_a_direct_solve_is_its_twin(seed, sparse, intercept):
    model = Model(seed, sparse, intercept)
    made, some = model.made(), np.array([0, 1, 4, 7, 9])
    expected = np.tril(model.hessian()[np.ix_(some, some)])
    np.testing.assert_allclose(np.tril(made._matrix(some, 1e6)), expected, atol=1e-10)
    assert not made.given.scratch.any()
    np.testing.assert_allclose(np.tril(made._known_matrix(some[1:4])), expected[1:4, 1:4], atol=1e-10)
    assert made._known_matrix(np.array([1, 5])) is None
    assert made._known_matrix(np.array([1, 11])) is None
    assert made._matrix(some, 1e-3) is None  # conjugate gradients would be less work


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_a_direct_solve_and_conjugate_gradients_agree(seed, sparse, intercept):
    model = Model(seed, sparse, intercept)
    made, some, slope = model.made(), np.array([0, 1, 4]), np.array([1.0, -0.5, 0.2])
    made._matrix(some, 1e6)
    step, scores = made._solved(some, slope, 1e-12)
    np.testing.assert_allclose(model.hessian()[np.ix_(some, some)] @ step, -slope, atol=1e-8)
    np.testing.assert_allclose(scores, model.dense[:, some] @ step, atol=1e-8)


def test_dependent_features_are_left_to_conjugate_gradients():
    model = Model(0, True, False)
    model.dense[:, 1] = model.dense[:, 0]
    model.X, model.Q = working_set.as_columns(sp.csc_array(model.dense)), working_set.as_columns(sp.csr_array((12, 12)))
    model.diagonal = np.zeros(12)
    made, some, slope = model.made(), np.array([0, 1, 4]), np.array([1.0, 1.0, -0.5])
    assert made._matrix(some, 1e6) is not None
    assert made._solved_directly(some, slope, 1e-9) is None
    step, _ = made._solved(some, slope, 1e-9)
    assert np.all(np.isfinite(step))
    assert step[0] == pytest.approx(step[1])


@settings(max_examples=20)
@given(models)
def test_gradients_columns_curvatures_and_violations_are_their_twins(model):
    slope, score = np.empty(model.d), np.empty(model.d)
    compiled_coordinate_descent.gradient_on(model.X, model.features, model.g, slope)
    np.testing.assert_allclose(slope, model.dense.T @ model.g, atol=1e-12)
    scores = np.ones(model.n)
    compiled_coordinate_descent.add_columns(model.X, model.features[2:], model.w[2:], scores)
    np.testing.assert_allclose(scores, 1.0 + model.dense[:, 2:] @ model.w[2:], atol=1e-12)
    made = model.made()
    np.testing.assert_allclose(made.given.curvature, model.curvature, atol=1e-12)
    if model.intercept:
        np.testing.assert_allclose(made.given.centre, model.centre, atol=1e-12)
    worst = compiled_coordinate_descent.violations(model.features, model.w, slope, model.box, score)
    c, lower, upper = model.box
    tiny = 1e-7  # a step that small decreases the function by its slope

    def change(step):
        return (slope * step + c * (np.abs(model.w + step) - np.abs(model.w))) / tiny

    up = np.where(model.w < upper, -change(tiny), -np.inf)
    down = np.where(model.w > lower, -change(-tiny), -np.inf)
    np.testing.assert_allclose(score, np.maximum(up, down), atol=1e-5)
    assert worst == max(0.0, score.max())


@settings(max_examples=20)
@given(models, st.booleans())
def test_the_dual_scale_is_that_of_the_separable_part(model, ridged):
    model.box[0] += 0.1  # features without penalty are not its business
    slope = model.dense.T @ model.g
    ridge = np.full(model.d, 0.5 if ridged else 0.0)
    s, excess_cost, taken_cost = compiled_coordinate_descent.dual_scale(model.w, slope, model.box, ridge)
    part = Separable(*model.box)
    taken = part.absorb(-s * slope)
    excess = -s * slope - taken
    np.testing.assert_allclose(taken_cost, part.conj(taken), rtol=1e-10, atol=1e-10)
    if ridged:
        assert s == 1.0
        np.testing.assert_allclose(excess_cost, model.w @ excess + (excess**2).sum() / 2.0, atol=1e-9)
    else:
        assert excess_cost == 0.0
        assert np.abs(excess).max() <= 1e-12
        larger = -1.001 * s * slope
        assert s == 1.0 or np.abs(larger - part.absorb(larger)).max() > 0.0


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
