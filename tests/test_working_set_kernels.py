"""The compiled loops of the working-set solver against their NumPy twins."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxstructreg.forms.separable import Separable
from cvxstructreg.solvers.lasso import compiled_coordinate_descent, compiled_jump, working_set
from cvxstructreg.solvers.lasso.quadratic_model import Coefficients, QuadraticModel


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
    worst, _, _ = made.descend(model.features, 0.0, 1)
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
    assert made.descend(model.features, 0.0, 3)[1] > 0.0
    assert made.passes == 3
    assert made.descend(model.features, 1e-8, 10_000)[1] <= 1e-8
    assert made.passes < 10_000


@settings(max_examples=20)
@given(models)
def test_narrow_passes_are_over_the_features_that_move_on(model):
    made, twin = model.made(), model.made()
    first, last, moving = made.descend(model.features, 0.0, 3, narrow=True)
    expected, _, _ = twin.descend(model.features, 0.0, 1)
    kept = model.features[(twin.w != 0.0) | (model.box[0] == 0.0)]
    assert first == expected
    np.testing.assert_array_equal(moving, kept)
    _, expected, _ = twin.descend(kept, 0.0, 2)
    assert last == expected
    np.testing.assert_array_equal(made.w, twin.w)
    assert made.passes == twin.passes


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
    made.descend(some, 0.0, 1)  # computes the centres
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
    made.descend(some, 0.0, 1)  # computes the centres
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
    moves = np.ones(model.n)
    compiled_coordinate_descent.add_moves(model.X, model.features, model.w, 2.0 * model.w, moves)
    np.testing.assert_allclose(moves, 1.0 + model.dense @ model.w, atol=1e-12)
    Qw = model.dense_Q @ model.w
    terms = compiled_coordinate_descent.weight_terms(model.features[2:], model.w, Qw, model.box)
    np.testing.assert_allclose(terms, (model.box[0] * np.abs(model.w) + 0.5 * model.w * Qw)[2:].sum(), atol=1e-12)
    made = model.made()
    made.descend(model.features, 0.0, 1)
    known = made.given.curvature >= 0.0
    assert np.all(known[made.w != 0.0])
    if model.intercept:
        assert known.all()
        np.testing.assert_allclose(made.given.centre, model.centre, atol=1e-12)
    np.testing.assert_allclose(made.given.curvature[known], model.curvature[known], atol=1e-12)
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


def test_a_curvature_that_is_needed_late_leaves_the_largest_step_of_the_first_pass():
    X, y = np.array([[-1.0, 1.0], [-1.0, 0.0], [-0.5, 1.0]]), np.array([4.0, -4.0, 0.0])  # the first slope is zero
    box = np.array([[0.0, 0.0], [-np.inf, -np.inf], [np.inf, np.inf]])
    nothing = working_set.as_columns(sp.csr_array((2, 2)))
    shared = Coefficients(
        compiled_coordinate_descent, working_set.as_columns(np.asfortranarray(X)), nothing, np.zeros(2), box, False
    )

    def model():
        return QuadraticModel(shared, np.arange(2), np.ones(3), -y, np.zeros(2), np.zeros(2))

    first, _, _ = model().descend(np.arange(2), 1e-12, 3, narrow=True)
    assert first == 4.0
    solved = model()
    solved.minimise(1e-10, 1000)
    np.testing.assert_allclose(solved.w, np.linalg.lstsq(X, y)[0], rtol=1e-9)
