"""The general Newton solver: blocks of its matrix, when it is taken, and certificates of a norm beside ridges."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.solvers.general.dense_system import DenseSystem
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian, Step
from cvxstructreg.solvers.general.newton_matrix import ActiveRows, add_row_hessians

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(30, 4))


def _hessians(kind: str) -> np.ndarray:
    if kind == "differences":  # every row sums to zero
        p = RNG.dirichlet(np.ones(3), size=30)
        return p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]
    root = RNG.normal(size=(30, 3, 3))
    return np.einsum("iab,icb->iac", root, root)  # signs differ from row to row


@pytest.mark.parametrize("kind", ["differences", "any signs"])
def test_blocks_of_the_newton_matrix(kind: str) -> None:
    """The blocks equal the sums over rows."""
    hessians = _hessians(kind)
    H = np.zeros((3, 4, 3, 4))
    add_row_hessians(H, ROWS, hessians)
    assert np.allclose(H, np.einsum("iab,ij,ik->ajbk", hessians, ROWS, ROWS), atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_active_rows_are_added_and_subtracted(order: Any) -> None:
    """Above the diagonal, the updated matrix equals the product of the rows that are active; below it is zero."""
    rows = ActiveRows(np.array(ROWS, order=order))
    for part in (0.9, 0.8, 0.7, 0.75, 0.2, 0.0, 0.5):
        active = RNG.random(30) < part
        assert np.allclose(rows.of(active), np.triu(ROWS[active].T @ ROWS[active]), atol=1e-12)
    assert not rows.of(np.zeros(30, dtype=bool)).any()


def test_images_of_a_step_are_added_unless_digits_would_be_lost() -> None:
    """A point that a step reaches has the images of its weights, up to round-off, even after a step back to zero."""
    problem = csr.Problem(csr.Linear(ROWS), csr.Hinge(np.arange(30) % 2) + csr.GroupLasso([[0, 1, 2], [2, 3]]))
    function = AugmentedLagrangian(problem)
    x, dx = RNG.normal(size=(5, 1)), RNG.normal(size=(5, 1))
    for s, step in ((0.3, dx), (1.0, 1e-9 - x)):
        moved = Step(function.at(x), step).moved(s)
        assert np.array_equal(moved.x, x + s * step)
        for found, expected in zip(moved.images, function.at(moved.x).images, strict=True):
            assert np.allclose(found, expected, rtol=1e-10, atol=1e-13)


def test_a_singular_newton_matrix_is_restored_and_lifted() -> None:
    """Where a direction has no curvature, the factor is discarded and a part of the curvature is added."""
    problem = csr.Problem(csr.Linear(ROWS, intercept=False), csr.Hinge(np.arange(30) % 2) + csr.Ridge())
    function = AugmentedLagrangian(problem)
    H = ROWS.T @ ROWS
    null = np.array([0.5, -0.5, 0.5, 0.5])
    H -= np.outer(H @ null, null) + np.outer(null, H @ null) - (null @ H @ null) * np.outer(null, null)
    right = np.array([[1.0], [2.0], [-1.0], [0.5]])
    system = DenseSystem(function, H.copy())
    dx = system.direction(right, typical=1.0)
    lifted = H + np.diag(system.diagonal - np.diag(H))
    assert np.allclose(lifted @ dx, right, atol=1e-6) and np.abs(dx).max() <= 1e3
    assert np.all(system.diagonal > np.diag(H) + 1e-7) and np.allclose(lifted @ system.solve(right), right, atol=1e-6)


def test_few_data_with_jumps_go_to_the_dense_newton_method() -> None:
    """For few dense data, auto takes dense Newton systems for the squared hinge and the hinge, and newton otherwise."""
    X, y = RNG.normal(size=(40, 5)), np.where(np.arange(40) % 2, 1, -1)
    for loss, expected in ((csr.SquaredHinge(y), "semismooth_newton"), (csr.Hinge(y), "interior_point")):
        solution = csr.Problem(csr.Linear(X), loss + csr.Ridge()).solve()
        assert (solution.solver, solution.status) == (expected, "optimal")
        assert "40 x 5 dense data" in solution.solver_choice
    assert csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.Ridge()).solve().solver == "newton"
    assert csr.Problem(csr.Linear(sp.csr_array(X)), csr.SquaredHinge(y) + csr.Ridge()).solve().solver == "newton"


@pytest.mark.parametrize("seed", range(4))
def test_a_latent_norm_is_certified_without_its_prox(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dual point of the only norm is what the other terms leave, so a gap that is good enough needs no prox."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 6)), rng.normal(size=40)
    groups = csr.Groups([[0, 1, 2], [2, 3, 4], [4, 5]], n_features=6)
    problem = csr.Problem(csr.Linear(X), csr.Squared(y) + 2.0 * csr.LatentGroupLasso(groups) + 0.1 * csr.Ridge())
    solution = problem.solve(tol=1e-8)
    monkeypatch.setattr(csr.LatentGroupLasso, "prox", lambda self, v, t: pytest.fail("a prox was computed"))
    certificate = certify_point(problem, *problem.shaped(solution.coef, solution.intercept), tol=1e-5)
    assert 0.0 <= certificate.relative_gap <= 1e-5
