"""Penalties after a linear map: total variation and its relatives in one line."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom
from cvxstructreg.testing import check_atom, check_solver


def regression(d=12, n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    w = np.repeat([1.0, -1.0, 0.5], d // 3)
    return csr.Linear(X), X @ w + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize(
    "penalty",
    [
        csr.compose(csr.L1(), csr.differences(12)),
        csr.compose(csr.L1(), csr.differences(12, order=2)),
        csr.compose(csr.L1(), csr.differences(csr.Graph.from_edges([(i, i + 1) for i in range(11)]), order=2)),
        csr.compose(csr.BlockNorms.of_sizes([2] * 12), csr.differences((3, 4))),
        csr.compose(csr.GroupLasso(csr.Groups([[0, 1], [1, 2, 3]], n_features=11)), csr.differences(12)),
    ],
    ids=["tv", "trend", "graph trend", "isotropic", "groups of differences"],
)
def test_compositions_reach_the_second_order_solver_and_the_reference(penalty):
    model, y = regression()
    problem = csr.Problem(model, csr.Squared(y) + 2.0 * penalty)
    solution = problem.solve()
    assert solution.solver in ("interior_point", "semismooth_newton")
    check_solver("semismooth_newton", problem)


def test_total_variation_is_the_fused_lasso_of_a_chain():
    chain = csr.FusedLasso(csr.Graph.from_edges([(i, i + 1) for i in range(5)]))
    w = np.random.default_rng(0).normal(size=6)
    assert csr.compose(csr.L1(), csr.differences(6))(w) == pytest.approx(chain(w))
    assert csr.compose(csr.L1(), csr.differences(chain.graph))(w) == pytest.approx(chain(w))


def test_a_quadratic_penalty_after_a_map_stays_quadratic():
    K, w = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]), np.array([1.0, 2.0, 3.0])
    for outer in (csr.Ridge(weights=[1.0, 3.0]), csr.Quadratic(matrix=[[2.0, 1.0], [1.0, 1.0]])):
        penalty = csr.compose(outer, K)
        assert isinstance(penalty, csr.Quadratic)
        assert penalty(w) == pytest.approx(outer(K @ w))
        check_atom(penalty, (3, 1))


def test_a_strength_is_kept_and_sparse_maps_stay_sparse():
    term = csr.compose(3.0 * csr.L1(), csr.differences(4))
    assert term.scale == 3.0 and sp.issparse(term.atom.split()[1])
    assert term([0.0, 1.0, 1.0, 0.0]) == pytest.approx(6.0)


@pytest.mark.parametrize(
    "outer, K, message",
    [
        (csr.Logistic([0, 1]), np.eye(2), "penalty such as L1"),
        (lambda w: w, np.eye(2), "penalty such as L1"),
        (csr.NonNegative(), np.eye(2), "finite everywhere"),
        (csr.BlockNorms.of_sizes([3]), np.eye(2), "acts on 3 rows"),
        (csr.RKHSNorm(), np.eye(2), "on the weights"),
    ],
)
def test_what_does_not_fit_is_refused(outer, K, message):
    with pytest.raises((TypeError, ValueError), match=message):
        csr.compose(outer, K)


@pytest.mark.parametrize("on, order", [(1, 1), (2, 2), (4, 0), (4.5, 1), ((3, 0), 1), ((3, 3), 2), ("x", 1)])
def test_differences_of_nothing_are_refused(on, order):
    with pytest.raises(ValueError, match=r"differences|order"):
        csr.differences(on, order)


def test_blocks_are_checked():
    assert csr.BlockNorms.of_sizes([2, 1], weights=2.0)([3.0, 4.0, 1.0]) == pytest.approx(12.0)
    for indptr, weights in (([1, 2], None), ([0, 3, 2], None), ([0.0, 1.5], None), ([0, 2], [1.0, 2.0]), ([0, 2], -1)):
        with pytest.raises(ValueError, match=r"indptr|weights"):
            csr.BlockNorms(indptr, weights)
    with pytest.raises(ValueError, match="sizes"):
        csr.BlockNorms.of_sizes([1.5])


def test_the_grid_has_zero_differences_at_its_border():
    K = csr.differences((2, 3)).toarray()
    assert K.shape == (12, 6)
    image = np.array([[0.0, 1.0, 3.0], [10.0, 10.0, 10.0]])
    pairs = (K @ image.ravel()).reshape(2, 3, 2)
    assert np.array_equal(pairs[:, :, 0], [[10.0, 9.0, 7.0], [0.0, 0.0, 0.0]])
    assert np.array_equal(pairs[:, :, 1], [[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])


class Sizes(Atom):
    """c sum_j |w_j|, by its definition and prox alone."""

    def __init__(self, c=1.0):
        self.c = c

    def expr(self, z):
        return self.c * cp.sum(cp.abs(z))

    def value(self, z):
        return self.c * float(np.abs(z).sum())

    def prox(self, v, t):
        return np.sign(v) * np.maximum(np.abs(v) - self.c * t, 0.0)


class Bounded(Sizes):
    """The same with its dual norm."""

    def dual_norm(self, u):
        return float(np.abs(u).max(initial=0.0)) / self.c


@pytest.mark.parametrize("kind", [Sizes, Bounded])
@pytest.mark.parametrize("through", [lambda f: csr.compose(f, csr.differences(12)), lambda f: f])
def test_a_function_of_ones_own_has_the_form_of_its_expression(kind, through):
    model, y = regression()
    loss = csr.Hinge(np.sign(y)) + 0.1 * csr.Ridge()
    solution = csr.Problem(model, loss + 0.5 * through(kind(2.0))).solve()
    known = csr.Problem(model, loss + 1.0 * through(csr.L1())).solve()
    assert (solution.solver, solution.status, solution.n_iter) == (known.solver, "optimal", known.n_iter)
    assert solution.certificate.kind == "duality_gap" and solution.objective == pytest.approx(known.objective)
    check_atom(through(kind(2.0)), (12, 1))


def test_the_form_follows_a_function_that_changes_and_not_an_expression_that_says_something_else():
    model, y = regression()
    penalty = Sizes(1.0)
    for penalty.c in (1.0, 3.0):
        solution = csr.Problem(model, csr.Squared(y) + penalty).solve()
        expected = csr.Problem(model, csr.Squared(y) + penalty.c * csr.L1()).solve()
        assert solution.solver == expected.solver and solution.objective == pytest.approx(expected.objective)
    penalty.value = lambda z: 2.0 * float(np.abs(z).sum())
    (piece,) = csr.Problem(model, csr.Squared(y) + penalty).normal_form.weight_pieces
    assert piece.atom is penalty
    (piece,) = csr.Problem(model, csr.Squared(y) + csr.compose(penalty, csr.differences(12))).normal_form.weight_pieces
    assert piece.atom is penalty and piece.K.shape == (11, 12)
