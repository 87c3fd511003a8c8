"""Solvers for nonsmooth losses and differences on data with many columns: multipliers around working sets, and CG."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.forms.smoothed_hinge import SmoothedHinge
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.general import semismooth_newton
from cvxstructreg.solvers.general.matrix_free import MatrixFreeLagrangian
from cvxstructreg.solvers.general.starts.first_penalties import set_penalties
from cvxstructreg.solvers.nested.centred_twin import SmoothedCentredHinge

RNG = np.random.default_rng(3)
N, D = 60, 40
X = sp.random_array((N, D), density=0.3, rng=RNG, format="csr", data_sampler=RNG.standard_normal)
Z = X[:, 0] - X[:, 1] + 0.5 * RNG.normal(size=N)
Z = np.asarray(Z).ravel()
Y, THREE = (Z > 0).astype(int), np.digitize(Z, [-0.3, 0.3])
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(D - 1)], n_nodes=D)
GROUPS = csr.Groups([list(range(i, min(i + 6, D))) for i in range(0, D, 4)], n_features=D)
BLOCKS = csr.Groups([list(range(i, i + 4)) for i in range(0, D, 4)], n_features=D)

PENALTIES = {
    "L1": lambda: 0.8 * csr.L1(),
    "L1 and graph": lambda: 0.8 * csr.L1() + 0.5 * csr.Laplacian(CHAIN),
    "overlapping groups": lambda: 0.8 * csr.GroupLasso(GROUPS) + 0.2 * csr.L1(),
    "disjoint groups": lambda: csr.GroupLasso(BLOCKS),
    "latent groups": lambda: 0.8 * csr.LatentGroupLasso(GROUPS) + 0.1 * csr.Ridge(),
    "bounds": lambda: csr.NonNegative() + 0.2 * csr.Ridge(),
}


def check_by_cvxpy_and_from_the_solution(problem):
    solution = problem.solve("nested_multipliers", tol=1e-6, time_limit=30)
    assert solution.status == "optimal"
    program = problem.to_cvxpy()
    program.solve("CLARABEL")
    assert solution.objective == pytest.approx(program.value, rel=1e-5)
    again = problem.solve("nested_multipliers", tol=1e-6, warm_start=solution)
    assert again.status == "optimal"
    assert again.n_iter <= solution.n_iter


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_multipliers_around_working_sets(penalty, intercept):
    weights = RNG.uniform(0.5, 2.0, N)
    problem = csr.Problem(
        csr.Linear(X, intercept=intercept), csr.Hinge(Y, sample_weight=weights) + PENALTIES[penalty]()
    )
    check_by_cvxpy_and_from_the_solution(problem)


def test_the_intercept_moves_where_no_row_has_curvature():
    smooth = SmoothedHinge(np.array([1.0, 1.0, -1.0]), np.array([1.0, 1.0, 1.5]), None)
    smooth.recentre(np.zeros((3, 1)), 10.0)
    for far in (-1e6, -7.0, 0.3, 50.0):
        z = np.array([[0.2], [-0.4], [0.1]]) + far
        shift = smooth.balancing_shift(z)
        assert abs(np.sum(smooth.grad(z + shift))) <= 1e-9
        assert smooth.value(z + shift) <= min(smooth.value(z + shift + step) for step in (-1e-3, 0.0, 1e-3))


DIFFERENCES = {
    "squared, chain": lambda: csr.Squared(Z) + csr.FusedLasso(CHAIN) + 0.1 * csr.Ridge(),
    "logistic, chain and L1": lambda: csr.Logistic(Y) + 0.5 * csr.FusedLasso(CHAIN) + 0.2 * csr.L1(),
    "hinge, chain and L1": lambda: csr.Hinge(Y) + 0.5 * csr.FusedLasso(CHAIN) + 0.2 * csr.L1(),
    "absolute, groups": lambda: csr.Absolute(Z) + 0.8 * csr.GroupLasso(GROUPS) + 0.1 * csr.Ridge(),
    "multinomial, chain": lambda: csr.Multinomial(THREE) + 0.5 * csr.FusedLasso(CHAIN) + 0.1 * csr.Ridge(),
    "multiclass hinge, L1": lambda: csr.MulticlassHinge(THREE) + 0.5 * csr.L1() + 0.1 * csr.Ridge(),
    "hinge, trend": lambda: csr.Hinge(Y) + csr.compose(csr.L1(), csr.differences(D, order=2)) + 0.1 * csr.Ridge(),
    "squared, latent": lambda: csr.Squared(Z) + csr.LatentGroupLasso(GROUPS) + 0.1 * csr.Ridge(),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_newton_systems_by_conjugate_gradients(name):
    problem = csr.Problem(csr.Linear(X), DIFFERENCES[name]())
    solution = problem.solve("semismooth_cg", tol=1e-6, time_limit=30)
    assert solution.status == "optimal"
    program = problem.to_cvxpy()
    program.solve("CLARABEL")
    assert solution.objective == pytest.approx(program.value, rel=1e-5)


def test_auto_takes_them_where_the_dense_solver_does_not_fit():
    wide = sp.random_array((50, 2000), density=0.02, rng=RNG, format="csr", data_sampler=RNG.standard_normal)
    y = np.arange(50) % 2
    chain = csr.Graph.from_edges([(i, i + 1) for i in range(1999)], n_nodes=2000)
    sparse = csr.Problem(csr.Linear(wide), csr.Hinge(y) + 0.5 * csr.L1())
    fused = csr.Problem(
        csr.Linear(wide), csr.Squared(np.sin(np.arange(50))) + 0.5 * csr.FusedLasso(chain) + csr.Ridge()
    )
    assert registry.choose(sparse, "auto").name == "nested_multipliers"
    assert registry.choose(fused, "auto").name == "semismooth_cg"
    for problem in (sparse, fused):
        assert problem.solve(tol=1e-4).status == "optimal"


def test_refusals():
    kernel = csr.Problem(csr.Kernel(np.eye(N)), csr.Hinge(Y) + csr.RKHSNorm())
    smooth = csr.Problem(csr.Linear(X), csr.Logistic(Y) + csr.L1())
    fused = csr.Problem(csr.Linear(X), csr.Hinge(Y) + csr.FusedLasso(CHAIN))
    solver = registry.named("nested_multipliers")
    assert "Linear" in solver.refusal(kernel).reason
    assert "hinges" in solver.refusal(smooth).reason
    assert "working_set" in solver.refusal(fused).reason


def test_the_smoothed_hinge_and_its_conjugate():
    loss = SmoothedHinge(np.array([1.0, -1.0, 1.0]), np.array([1.0, 2.0, 0.5]), None)
    loss.recentre(np.array([[0.2], [1.5], [0.5]]), 1.7)
    rng = np.random.default_rng(0)
    for _ in range(20):
        z = 2.0 * rng.normal(size=(3, 1))
        u = loss.grad(z)
        assert loss.value(z) + loss.conj(u) == pytest.approx(float(np.vdot(u, z)), abs=1e-12)
        change = (loss.value(z + 1e-6) - loss.value(z - 1e-6)) / 2e-6
        assert change == pytest.approx(float(u.sum()), abs=1e-6)
    assert loss.conj(np.array([[0.1], [0.0], [0.0]])) == np.inf


def test_steps_along_flat_directions_are_kept_short():
    """The multinomial loss does not see a common shift of all classes, and L1 is linear away from zero."""
    rng = np.random.default_rng(3)
    X = sp.csr_array(rng.normal(size=(30, 6)))
    problem = csr.Problem(csr.Linear(X), csr.Multinomial(np.arange(30) % 3) + 0.5 * csr.L1())
    function = MatrixFreeLagrangian(problem)
    set_penalties(function)
    at = function.at(function.joined(5.0 + rng.normal(size=(6, 3)), np.zeros(3)))
    H, _ = function.newton_matrix(at)
    right, size = -at.gradient(), function.lengths[:, None]
    assert np.max(np.abs(H.solve(right)) * size) > 1e4
    step = semismooth_newton._short_step(H, right, 50.0)
    assert np.max(np.abs(step) * size) <= 50.0
    assert np.vdot(step, right) > 0.0
    assert function.lifted > 0.0  # remembered for the next system


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("penalty", ["disjoint groups", "latent groups", "groups and graph"])
def test_multipliers_for_several_classes(penalty, classes, intercept):
    """The smooth problems have one coordinate less than there are classes."""
    y = np.digitize(Z, [-0.3, 0.3]) if classes == 3 else Y
    weights = RNG.uniform(0.5, 2.0, N)
    weights[0] = 0.0
    more = {"groups and graph": lambda: 0.8 * csr.GroupLasso(GROUPS) + 0.3 * csr.Laplacian(CHAIN)}
    loss = csr.MulticlassHinge(y, sample_weight=weights)
    problem = csr.Problem(csr.Linear(X, intercept=intercept), 1.5 * loss + {**PENALTIES, **more}[penalty]())
    check_by_cvxpy_and_from_the_solution(problem)


def test_refusals_for_several_classes():
    solver = registry.named("nested_multipliers")
    four = csr.MulticlassHinge(np.arange(N) % 4)
    groups = csr.GroupLasso(BLOCKS)
    assert "at most 3 classes" in solver.refusal(csr.Problem(csr.Linear(X), four + groups)).reason
    three = csr.MulticlassHinge(THREE)
    assert "L1 and bounds" in solver.refusal(csr.Problem(csr.Linear(X), three + groups + csr.L1())).reason
    assert "no groups" in solver.refusal(csr.Problem(csr.Linear(X), three + csr.Ridge())).reason


@pytest.mark.parametrize("classes", [2, 3])
def test_the_smoothed_multiclass_hinge_in_one_coordinate_less(classes):
    rng = np.random.default_rng(1)
    hinges = csr.MulticlassHinge(np.arange(6) % classes, sample_weight=[1, 2, 0.5, 1, 3, 1]).centred_hinges(classes)
    smooth = SmoothedCentredHinge(hinges, None)
    smooth.recentre(rng.uniform(0, 0.5, hinges.costs.shape) * hinges.costs, 1.7)
    free = 0
    for _ in range(20):
        z, p = rng.normal(size=(2, 6, classes - 1))
        u = smooth.grad(z)
        assert smooth.value(z) + smooth.conj(u) == pytest.approx(float(np.vdot(u, z)), abs=1e-12)
        change = (smooth.value(z + 1e-6 * p) - smooth.value(z - 1e-6 * p)) / 2e-6
        assert change == pytest.approx(float(np.vdot(u, p)), abs=1e-6)
        bent = smooth.hessp(z, p)
        assert bent == pytest.approx((smooth.grad(z + 1e-7 * p) - smooth.grad(z - 1e-7 * p)) / 2e-7, abs=1e-6)
        direct, root = smooth.hess_rows(z)
        assert bent == pytest.approx(direct * p - root * np.sum(root * p, axis=1, keepdims=True), abs=1e-12)
        free += np.count_nonzero(bent)
        best = smooth.value(z + smooth.balancing_shift(z))
        assert best <= min(
            smooth.value(z + smooth.balancing_shift(z) + 1e-3 * rng.normal(size=classes - 1)), smooth.value(z)
        )
    assert free > 0
    assert smooth.conj(u + 10.0) == np.inf
    assert hinges.value(z @ smooth.basis.T) >= smooth.value(z) - np.sum(smooth.centre**2) / 3.4


def test_rows_without_curvature_do_not_end_the_working_sets():
    """Steps of a smoothed hinge are far too long where few rows have curvature; they ended far from the optimum."""
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 800), density=0.01, rng=rng, format="csr", data_sampler=rng.standard_normal)
    z = X @ np.repeat([1.0, -1.0, 0.0], [80, 80, 640])
    z = z + 0.2 * z.std() * rng.normal(size=200)
    problem = csr.Problem(csr.Linear(X), csr.Hinge((z > 0).astype(int)) + 5 / 12 * csr.L1())
    solution = problem.solve("nested_multipliers", tol=1e-6)
    assert solution.status == "optimal"
    assert solution.n_iter <= 20
