"""Products with sparse Newton matrices leave out only what is zero."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.numerics.regions import Regions, RegionSolver
from cvxstructreg.numerics.sparse_factor import Tridiagonal, factorised
from cvxstructreg.solvers.general import matrix_free, newton_products
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


@pytest.mark.parametrize("loss", ["squared hinge", "multinomial", "multiclass hinge"])
def test_the_curvature_of_regions_is_that_of_the_products(loss):
    """The third region is a single intercept or weight; unknowns without a region have the label -1."""
    H = operator(loss, SQUARES)
    k, size = H.function.k, H.function.size
    labels = np.full((size, k), -1)
    labels[:10, 0], labels[10:25, k - 1], labels[size - 1, 0] = 0, 1, 2
    regions, parts = Regions(labels), [part for part in H._parts if hasattr(part, "row_blocks")]
    found = regions.curvature(np.zeros(3), [part.row_blocks() for part in parts])
    ones = [(labels == number).astype(float) for number in range(3)]
    expected = [[sum(np.vdot(v, part @ w) for part in parts) for w in ones] for v in ones]
    assert parts and np.diag(found).min() > 0
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_system_on_regions_is_exact_and_leaves_out_flat_directions():
    regions = Regions(np.array([[0], [0], [1], [-1], [2]]))
    curvature = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1e-12]])
    z = np.ones((5, 1))
    RegionSolver(regions, curvature, np.ones(3)).add_to(z, np.array([[1.0], [2.0], [4.0], [8.0], [16.0]]))
    steps = np.linalg.solve(curvature[:2, :2], [3.0, 4.0])
    np.testing.assert_allclose(z[:, 0], 1.0 + np.array([steps[0], steps[0], steps[1], 0.0, 0.0]))


def test_regions_of_tied_weights_take_few_products(monkeypatch):
    """Without the system on regions, this takes three times the products."""
    rng, side, counts = np.random.default_rng(0), 20, []
    X = sp.random_array((200, side**2), density=0.05, format="csr", rng=rng, data_sampler=rng.standard_normal)
    w = np.zeros((side, side))
    w[:8, :8], w[12:, 12:] = 1.0, -1.0
    z, at = X @ w.ravel(), np.arange(side**2).reshape(side, side)
    pairs = [*zip(at[:, :-1].flat, at[:, 1:].flat, strict=True), *zip(at[:-1].flat, at[1:].flat, strict=True)]
    penalty = 0.9 * csr.FusedLasso(csr.Graph.from_edges(pairs, n_nodes=side**2)) + 0.3 * csr.L1()
    made = csr.Problem(csr.Linear(X), csr.MulticlassHinge(np.digitize(z, np.quantile(z, [1 / 3, 2 / 3]))) + penalty)
    product = NewtonOperator.product
    monkeypatch.setattr(NewtonOperator, "product", lambda self, v: counts.append(1) or product(self, v))
    assert made.solve("semismooth_cg", tol=1e-4).status == "optimal"
    few = len(counts)
    monkeypatch.setattr(matrix_free, "MOST_REGIONS", 0)
    assert made.solve("semismooth_cg", tol=1e-4).status == "optimal"
    assert len(counts) - few > 2 * few
