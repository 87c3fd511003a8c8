"""Directions without penalty whose scores nearly cancel: dual points in balance, and how far weights may be."""

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.certificates.directions.free_directions import free_directions, free_reach, linearised, refit


def nearly_parallel(seed):
    """A Gram matrix whose columns nearly repeat each other, and a penalty that leaves all directions but one free."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=7)
    gram = np.exp(-0.1 * (x[:, None] - x) ** 2)
    pair = csr.Graph.from_edges([(3, 5)], n_nodes=7)
    loss = csr.Squared(1e5 * rng.normal(size=7))
    return csr.Problem(csr.Kernel(gram, intercept=False, psd=True), loss + 3.0 * csr.Laplacian(pair))


@pytest.mark.parametrize("seed", range(3))
def test_dual_points_are_in_balance_along_weak_combinations(seed):
    parts = nearly_parallel(seed).normal_form
    theta = np.zeros(parts.shape)
    directions = free_directions(parts, theta)
    assert directions.shape == (7, 6)
    theta, _, scores = refit(parts, theta, np.zeros(1), np.zeros((7, 1)), directions)
    u = linearised(parts, theta, scores, directions)[2][0]
    basis, lengths, _ = np.linalg.svd(parts.model.design @ directions, full_matrices=False)
    assert lengths[-1] < 1e-7 * lengths[0]  # so that the squares of a Newton system would lose it
    assert np.abs(basis.T @ u).max() <= 1e-3 * np.linalg.norm(u)
    assert np.abs(basis[:, :-1].T @ u).max() <= 1e-8 * np.linalg.norm(u)


@pytest.mark.parametrize("seed", range(4))
def test_the_reach_is_that_of_the_weakest_combination(seed):
    parts = nearly_parallel(seed).normal_form
    theta = np.zeros(parts.shape)
    directions = free_directions(parts, theta)
    weakest = np.linalg.svd(parts.model.design @ directions, compute_uv=False)[-1]
    reach = free_reach(parts, theta)
    np.testing.assert_allclose(np.linalg.norm(reach), 1.0 / weakest, rtol=1e-2)
    assert reach.max() > 1e5 / parts.column_norms.min()  # a single column would suggest far less


def test_held_weights_reach_nowhere():
    X = np.random.default_rng(0).normal(size=(8, 3))
    problem = csr.Problem(csr.Linear(X), csr.Squared(X[:, 0]) + csr.L1(weights=[0.0, 1.0, 1.0]))
    reach = free_reach(problem.normal_form, np.zeros((3, 1)))
    assert reach[0] > 0 and not reach[1:].any()


def test_a_map_of_zeros_takes_no_part_of_the_dual_point():
    X = np.random.default_rng(1).normal(size=(12, 2))
    nothing = csr.compose(csr.HuberPenalty(), np.zeros((3, 2)))
    problem = csr.Problem(csr.Linear(X), csr.MulticlassHinge(np.arange(12) % 3) + nothing + 0.1 * csr.L1())
    assert problem.solve("admm", tol=1e-4, max_iter=2000).status == "optimal"


def test_isotropic_total_variation_leaves_exact_constants_free():
    """Inexact ones would differ from the intercept by round-off, along which weights seem to be able to go far."""
    model = csr.Linear(np.eye(30), intercept=True)
    problem = csr.Problem(model, csr.Squared(np.arange(30.0)) + csr.TotalVariation((5, 6)))
    theta = np.zeros((30, 1))
    (direction,) = free_directions(problem.normal_form, theta).T
    assert np.all(direction == direction[0])
    assert not free_reach(problem.normal_form, theta).any()
