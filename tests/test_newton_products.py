"""Products with sparse Newton matrices leave out only what is zero."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.numerics.sparse_factor import Tridiagonal, factorised
from cvxstructreg.solvers.general import newton_products
from cvxstructreg.solvers.general.matrix_free import MatrixFreeLagrangian, NewtonOperator
from cvxstructreg.solvers.general.newton_products import BlockProduct

N, D = 40, 30
CHAIN = [(j, j + 1) for j in range(D - 1)]
SQUARES = [(j, j + 1) for j in range(D) if (j + 1) % 6] + [(j, j + 6) for j in range(D - 6)]


def problem(loss: str, graph: list[tuple[int, int]]) -> csr.Problem:
    rng = np.random.default_rng(3)
    X = sp.random_array((N, D), density=0.3, format="csr", rng=rng)
    two, three = rng.integers(0, 2, N), np.arange(N) % 3
    losses = {
        "hinge": csr.Hinge(two),
        "squared hinge": csr.SquaredHinge(two),
        "absolute": csr.Absolute(rng.normal(size=N)),
        "multinomial": csr.Multinomial(three),
        "multiclass hinge": csr.MulticlassHinge(three),
    }
    groups = csr.Groups([[0, 1, 2], [2, 3, 4]], n_features=D)
    penalty = csr.FusedLasso(graph) + 0.3 * csr.L1() + 0.1 * csr.Ridge() + csr.GroupLasso(groups)
    return csr.Problem(csr.Linear(X), losses[loss] + penalty)


def operator(loss: str, graph: list[tuple[int, int]]) -> NewtonOperator:
    """The Newton matrix at a point where some entries of each projection move and others do not."""
    function, rng = MatrixFreeLagrangian(problem(loss, graph)), np.random.default_rng(4)
    for term in function.rough:
        term.sigma, term.q = 2.0, term.dual_set.project(0.3 * rng.normal(size=term.q.shape))
    state = function.at(0.5 * rng.normal(size=(function.size, function.k)))
    H, _ = function.newton_matrix(state)
    for term, u in zip(function.rough, state.arguments, strict=True):
        moving = term.dual_set.slopes(u)[0] > 0
        assert moving.any() and (term.piece is None or not moving.all() or "blocks" in term.piece.atom.capabilities)
    return H


@pytest.mark.parametrize("graph", [CHAIN, SQUARES], ids=["chain", "grid"])
@pytest.mark.parametrize("loss", ["hinge", "squared hinge", "absolute", "multinomial", "multiclass hinge"])
def test_products_are_those_of_all_rows(loss, graph):
    H = operator(loss, graph)
    function, v = H.function, np.random.default_rng(5).normal(size=(H.function.size, H.function.k))
    expected = function.quadratic @ v + H.shift * v
    for term, h in zip(function.smooth, H.rows, strict=True):
        expected += BlockProduct(term.rows, h if h.ndim == 3 else h[:, :, None]) @ v
    for rough, u in zip(function.rough, H.state.arguments, strict=True):
        expected += rough.adjoint(rough.sigma * rough.dual_set.moved(u, rough.forward(v)))
    np.testing.assert_allclose(H.product(v), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("graph", [CHAIN, SQUARES], ids=["chain", "grid"])
def test_newton_systems_are_solved(graph):
    H = operator("hinge", graph)
    right = np.random.default_rng(6).normal(size=(H.function.size, 1))
    left = H.product(H.solve(right, accuracy=1e-10))
    np.testing.assert_allclose(left, right, atol=1e-6)


def test_tridiagonal_matrices_are_factorised_as_such():
    rng = np.random.default_rng(7)
    matrix = sp.diags_array([-np.ones(9), 3.0 + rng.random(10), -np.ones(9)], offsets=[-1, 0, 1]).tocsr()
    right = rng.normal(size=10)
    found = factorised(matrix)
    assert isinstance(found, Tridiagonal)
    np.testing.assert_allclose(matrix @ found.solve(right), right, atol=1e-12)


def test_a_wider_or_indefinite_matrix_is_factorised_by_pivots():
    wide = sp.csr_array(np.eye(4) * 3.0 + np.eye(4, k=2) + np.eye(4, k=-2))
    indefinite = sp.csr_array([[1.0, 2.0], [2.0, 1.0]])
    for matrix in (wide, indefinite):
        found, right = factorised(matrix), np.arange(1.0, matrix.shape[0] + 1.0)
        assert not isinstance(found, Tridiagonal)
        np.testing.assert_allclose(matrix @ found.solve(right), right, atol=1e-12)


def test_few_rows_are_kept():
    rows = sp.csr_array(np.ones((10, 3)))
    weights = np.zeros(10)
    weights[2] = 4.0
    product = newton_products.RowProduct(rows, weights)
    assert product.rows.shape == (1, 3)
    np.testing.assert_allclose(product @ np.ones((3, 1)), np.full((3, 1), 12.0))
