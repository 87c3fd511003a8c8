"""The products, preconditioners and compiled loops of truncated Newton against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from newton_problems import SMOOTH, text_like_problem

import cvxstructreg as csr
from cvxstructreg.solvers.smooth import conjugate_gradients, matrix_products, preconditioners, smooth_objective
from cvxstructreg.solvers.smooth.curvature import Curvature
from random_problems import random_graph


@pytest.fixture
def compiled(monkeypatch):
    """Small problems take the compiled path and triangular coordinates too."""
    monkeypatch.setattr(matrix_products, "COMPILE_FROM", 0)
    monkeypatch.setattr(preconditioners, "MOST_REST", np.inf)


@pytest.mark.parametrize("k", [1, 3])
def test_coordinates_multiply_as_they_should(k, compiled):
    """Products, solves and norms of the triangular coordinates against dense matrices."""
    rng = np.random.default_rng(4)
    d, n = 12, 9
    X = sp.csr_array(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5))
    y = np.arange(n) % max(k, 2)
    signed = csr.FeatureNetwork(random_graph(rng, d, True))
    loss = csr.Logistic(y) if k == 1 else csr.Multinomial(y)
    problem = csr.Problem(csr.Linear(X), loss + 3.0 * signed + 0.1 * csr.Ridge())
    objective = smooth_objective.SmoothObjective(problem)
    curvature = Curvature(objective, objective.state(rng.normal(size=(d, k)), rng.normal(size=k)))
    H = _dense(curvature.times, d, k)
    triangular = preconditioners.Triangular(curvature, objective.quadratic.pivoted)
    for space in (preconditioners.Diagonal(curvature), triangular):
        inverse = _dense(space.to_weights, d, k)
        np.testing.assert_allclose(_dense(space.pull, d, k), inverse.T, atol=1e-12)
        np.testing.assert_allclose(_dense(space.times, d, k), inverse.T @ H @ inverse, atol=1e-10)
        v = rng.normal(size=(d, k))
        np.testing.assert_allclose(space.residual(v).ravel(), np.linalg.solve(inverse.T, v.ravel()), rtol=1e-8)
    assert objective.quadratic.rest is not None  # dissimilar neighbours have rows of their own


def _dense(function, d, k):
    return np.column_stack([function(e).ravel() for e in np.eye(d * k).reshape(-1, d, k)])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_intercepts_follow_the_weights(loss, intercept, compiled):
    """The Hessian with the intercepts minimised out is a Schur complement; gradient and step belong to it."""
    rng = np.random.default_rng(14)
    model = csr.Linear(sp.csr_array(rng.normal(size=(15, 4))), intercept=intercept)
    labels = rng.normal(size=15) if loss == "Squared" else np.arange(15) % (3 if loss == "Multinomial" else 2)
    graph = csr.Laplacian(random_graph(rng, 15, False)).on_scores()
    problem = csr.Problem(model, getattr(csr, loss)(labels) + 0.5 * csr.Ridge() + 0.1 * graph)
    objective = smooth_objective.SmoothObjective(problem)
    k = problem.n_outputs
    at = objective.state(rng.normal(size=(4, k)), rng.normal(size=k))
    curvature = Curvature(objective, at)

    def whole(x):
        scores = model.design @ x[:-1] + (x[-1] if intercept else 0.0)
        bent = problem.normal_form.smooth_score_hessp(at.scores, scores)
        return np.vstack([model.design.T @ bent + 1.0 * x[:-1], bent.sum(axis=0) if intercept else 0.0 * x[-1]])

    H = _dense(whole, 5, k)
    own = np.arange(4 * k)
    other = np.arange(4 * k, 5 * k)
    inverse = np.linalg.pinv(H[np.ix_(other, other)], rcond=1e-10)
    expected = H[np.ix_(own, own)] - H[np.ix_(own, other)] @ inverse @ H[np.ix_(other, own)]
    np.testing.assert_allclose(_dense(curvature.times, 4, k), expected, atol=1e-10)
    gradient, slope = objective.gradient(at)
    reduced, slope_b = curvature.gradient(at)
    np.testing.assert_allclose(reduced.ravel(), gradient.ravel() - H[np.ix_(own, other)] @ inverse @ slope, atol=1e-10)
    step = curvature.step(np.linalg.lstsq(expected, -reduced.ravel())[0].reshape(4, k), slope_b)
    left = whole(np.vstack([step.theta, step.b])) + np.vstack([gradient, slope])
    np.testing.assert_allclose(left, 0.0, atol=1e-8)


def test_products_by_blocks_of_rows_are_products(monkeypatch):
    """Dense data, with blocks that do not divide the rows, and as a whole."""
    rng = np.random.default_rng(16)
    X = rng.normal(size=(23, 4))
    problem = csr.Problem(csr.Linear(X), csr.Logistic(np.arange(23) % 2) + 0.3 * csr.Ridge())
    objective = smooth_objective.SmoothObjective(problem)
    bending = Curvature(objective, objective.state(rng.normal(size=(4, 1)), np.ones(1)))
    rows = bending.rows[:, 0]
    centred = X - (rows @ X) / rows.sum()
    expected = centred.T @ (rows[:, None] * centred) + 0.6 * np.eye(4)
    for size, least in ((160, 1), (160, 16)):
        monkeypatch.setattr(matrix_products, "BLOCK", size)
        monkeypatch.setattr(matrix_products, "LEAST_ROWS", least)
        np.testing.assert_allclose(_dense(bending.times, 4, 1), expected, atol=1e-12)
        single = np.column_stack([bending.times(e[:, None]) for e in np.eye(4, dtype=np.float32)])
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, atol=1e-5)


@pytest.mark.parametrize("most_rest", [0.0, np.inf])
def test_the_compiled_loop_is_the_loop_in_numpy(most_rest, monkeypatch):
    """The same steps, and a smoothed residual that is that of the average and never grows."""
    monkeypatch.setattr(matrix_products, "COMPILE_FROM", 0)
    monkeypatch.setattr(preconditioners, "MOST_REST", most_rest)
    objective = smooth_objective.SmoothObjective(text_like_problem(10.0, 0.1, n=60, d=200))
    at = objective.state(np.zeros((200, 1)), np.zeros(1))
    curvature = Curvature(objective, at)
    gradient = curvature.gradient(at)[0]
    sizes = []
    for steps in (1, 5, 12, 25):
        compiled, plain = (conjugate_gradients.NewtonStep(curvature, steps) for _ in range(2))
        assert isinstance(plain.space, preconditioners.Diagonal if most_rest == 0 else preconditioners.Triangular)
        assert plain.space.compiled is not None
        plain.space.compiled = None
        monkeypatch.setattr(conjugate_gradients, "AT_ONCE", 1 if steps == 5 else 10**8)
        found, expected = compiled.solve(gradient, 1e-30, 0.0), plain.solve(gradient, 1e-30, 0.0)
        assert compiled.steps == plain.steps == steps
        assert compiled.decrease == pytest.approx(plain.decrease)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(compiled.average(), plain.average(), rtol=1e-6, atol=1e-9)
        left = curvature.times(compiled.average()) + gradient
        sizes.append(np.linalg.norm(left if most_rest == 0 else compiled.space.pull(left)))
        if most_rest == 0:
            assert compiled.size == pytest.approx(sizes[-1]) == pytest.approx(plain.size)
        assert sizes[-1] <= np.linalg.norm(curvature.times(found) + gradient) or most_rest > 0
    assert sizes == sorted(sizes, reverse=True)


def test_a_compiled_loop_ends_at_the_accuracy_asked_for(compiled):
    objective = smooth_objective.SmoothObjective(text_like_problem(100.0, 0.1, n=60, d=200))
    at = objective.state(np.zeros((200, 1)), np.zeros(1))
    curvature = Curvature(objective, at)
    gradient = curvature.gradient(at)[0]
    accuracy = 1e-3 * np.linalg.norm(gradient)
    for plain in (False, True):
        solver = conjugate_gradients.NewtonStep(curvature, 1000)
        if plain:
            solver.space.compiled = None
        solver.solve(gradient, accuracy, 0.0)
        assert 0.05 * accuracy < np.linalg.norm(curvature.times(solver.average()) + gradient) <= 1.001 * accuracy


def test_the_gram_kernel_equals_numpy():
    from cvxstructreg.solvers.smooth.compiled_newton import add_gram_product

    rng = np.random.default_rng(5)
    A = sp.csr_array(rng.normal(size=(7, 5)) * (rng.random((7, 5)) < 0.5))
    weights, p, out = rng.random(7), rng.normal(size=5), rng.normal(size=5)
    u = weights * (A @ p + 0.3)
    expected = out + A.T @ u
    total = add_gram_product(A.indptr.astype(np.uint32), A.indices.astype(np.uint32), A.data, weights, p, 0.3, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13)
    assert total == pytest.approx(u.sum())


def test_the_triangular_kernels_equal_numpy():
    from cvxstructreg.solvers.smooth import compiled_newton

    rng = np.random.default_rng(6)
    order = rng.permutation(6).astype(np.uint32)
    U = np.triu(rng.normal(size=(6, 6)) * (rng.random((6, 6)) < 0.6), 1)  # in order
    inverse, shift, x = 1.0 / rng.uniform(2, 3, size=6), rng.random(6), rng.normal(size=6)
    P = np.eye(6)[order]  # P x is x in order
    rows = sp.csr_array(U @ P)  # rows in order, columns as they are
    arrays = (rows.indptr.astype(np.uint32), rows.indices.astype(np.uint32), rows.data, order)
    G = P.T @ U @ P + np.diag(1.0 / inverse)
    solved, transposed, product = x.copy(), x.copy(), np.zeros(6)
    compiled_newton.solve_upper(*arrays, inverse, solved)
    compiled_newton.solve_upper_transposed(*arrays, inverse, transposed)
    compiled_newton.multiply_upper_transposed(*arrays, inverse[:, None], x[:, None], product[:, None])
    np.testing.assert_allclose(solved, np.linalg.solve(G, x), rtol=1e-12)
    np.testing.assert_allclose(transposed, np.linalg.solve(G.T, x), rtol=1e-12)
    np.testing.assert_allclose(product, G.T @ x, rtol=1e-12, atol=1e-14)
    L = P.T @ U @ P - np.diag(shift)
    u, out, theta = rng.normal(size=6), rng.normal(size=6), rng.normal(size=6)
    expected_u = u + L @ theta
    expected_out = out + L.T @ expected_u
    compiled_newton.add_lower_product(*arrays, shift, theta, u, out)
    np.testing.assert_allclose(u, expected_u, rtol=1e-12)
    np.testing.assert_allclose(out, expected_out, rtol=1e-12, atol=1e-14)


def test_the_block_kernels_equal_those_of_single_columns():
    from cvxstructreg.solvers.smooth import compiled_newton

    rng = np.random.default_rng(7)
    order = rng.permutation(6).astype(np.uint32)
    rows = sp.csr_array(np.triu(rng.normal(size=(6, 6)), 1) @ np.eye(6)[order])
    arrays = (rows.indptr.astype(np.uint32), rows.indices.astype(np.uint32), rows.data, order)
    inverse, shift, *vectors = (rng.uniform(0.2, 0.5, size=(6, 2)) for _ in range(7))
    blocks = [x.copy() for x in vectors]
    compiled_newton.solve_upper_block(*arrays, inverse, blocks[0])
    compiled_newton.solve_upper_transposed_block(*arrays, inverse, blocks[1])
    compiled_newton.add_lower_product_block(*arrays, shift, *blocks[2:])
    for j in range(2):
        single = [x[:, j].copy() for x in vectors]
        compiled_newton.solve_upper(*arrays, inverse[:, j].copy(), single[0])
        compiled_newton.solve_upper_transposed(*arrays, inverse[:, j].copy(), single[1])
        compiled_newton.add_lower_product(*arrays, shift[:, j].copy(), *single[2:])
        for block, column in zip(blocks, single, strict=True):
            np.testing.assert_allclose(block[:, j], column, rtol=1e-12)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_the_product_kernel_equals_numpy(dtype, rtol):
    from cvxstructreg.solvers.smooth.compiled_newton import add_product_block

    rng = np.random.default_rng(9)
    A = sp.csr_array(rng.normal(size=(7, 5)) * (rng.random((7, 5)) < 0.5)).astype(dtype)
    p, out = rng.normal(size=(5, 3)).astype(dtype), rng.normal(size=(7, 3)).astype(dtype)
    expected = out + dtype(0.7) * (A @ p)
    add_product_block(A.indptr.astype(np.uint32), A.indices.astype(np.uint32), A.data, dtype(0.7), p, out)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, expected, rtol=rtol, atol=rtol)


def test_the_diagonal_product_equals_numpy():
    from cvxstructreg.solvers.smooth.compiled_newton import diagonal_product

    rng = np.random.default_rng(10)
    A, N = (sp.csr_array(rng.normal(size=(m, 5)) * (rng.random((m, 5)) < 0.6)) for m in (7, 4))
    weights, inverse, ridge, v = rng.random(7), rng.random(5), rng.random(5), rng.normal(size=5)
    theta, out = np.empty(5), np.empty(5)
    arrays = [(B.indptr.astype(np.uint32), B.indices.astype(np.uint32), B.data) for B in (A, N)]
    total = diagonal_product(arrays[0], weights, arrays[1], (inverse, ridge), v, 0.3, theta, out)
    u = weights * (A @ (inverse * v) + 0.3)
    expected = inverse * (A.T @ u + 2.0 * (N.T @ (N @ (inverse * v))) + ridge * inverse * v)
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    assert total == pytest.approx(u.sum())


def test_rows_of_the_hessian_are_its_products():
    rng = np.random.default_rng(11)
    loss = csr.Multinomial([0, 2, 1, 0, 1], sample_weight=[1.0, 2.0, 0.5, 0.0, 3.0])
    z, p = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    direct, root = loss.hess_rows(z)
    by_rows = direct * p - root * np.sum(root * p, axis=1, keepdims=True)
    np.testing.assert_allclose(by_rows, loss.hessp(z, p), atol=1e-14)


@pytest.mark.parametrize("kind", ["network", "ridge"])
def test_single_precision_inside_and_double_precision_outside(kind, compiled, monkeypatch):
    """Many classes: conjugate gradients may use single precision, the answer is as accurate as asked for."""
    monkeypatch.setattr(preconditioners, "MOST_REST", 0.0)
    rng = np.random.default_rng(12)
    X = sp.csr_array(rng.poisson(0.3, size=(120, 40)).astype(float))
    penalty = csr.FeatureNetwork(random_graph(rng, 40, True)) if kind == "network" else csr.Quadratic(np.eye(40))
    problem = csr.Problem(csr.Linear(X), csr.Multinomial(np.arange(120) % 6) + 1.0 * penalty + 0.1 * csr.Ridge())
    objective = smooth_objective.SmoothObjective(problem)
    assert Curvature(objective, objective.state(np.zeros((40, 6)), np.zeros(6))).in_single_precision
    solution = problem.solve("newton", tol=1e-10)
    monkeypatch.setattr(conjugate_gradients, "LEAST_SINGLE", np.inf)
    monkeypatch.setattr(conjugate_gradients, "LEAST_PATIENCE", np.inf)
    double = problem.solve("newton", tol=1e-10)
    assert solution.status == double.status == "optimal"
    assert solution.coef.dtype == np.float64
    np.testing.assert_allclose(solution.coef, double.coef, atol=1e-4)
