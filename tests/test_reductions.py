"""Every change of coordinates keeps the objective, and carries points there and back."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.reductions.centring import Centring
from cvxstructreg.reductions.kernel_to_linear import KernelToLinear, as_linear
from cvxstructreg.reductions.latent_copies import LatentCopies
from cvxstructreg.reductions.reduction import Chain, Point, reduced

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 4))
GRAM = X @ X.T
Y = np.arange(20) % 2
GRAPH = csr.Graph.from_edges([(i, i + 1) for i in range(19)], n_nodes=20)

PROBLEMS = {
    "norm": lambda: csr.Problem(csr.Kernel(GRAM), csr.Logistic(Y) + 0.5 * csr.RKHSNorm()),
    "norm and graph": lambda: csr.Problem(
        csr.Kernel(GRAM), csr.Hinge(Y) + csr.RKHSNorm() + csr.Laplacian(GRAPH).on_scores()
    ),
    "norm and L1": lambda: csr.Problem(csr.Kernel(GRAM), csr.Logistic(Y) + csr.RKHSNorm() + csr.L1()),
    "L1": lambda: csr.Problem(csr.Kernel(GRAM), csr.Logistic(Y) + csr.L1()),
    "far columns": lambda: csr.Problem(csr.Linear(X + np.array([0.0, 1e6, 0.0, 0.0])), csr.Squared(X[:, 0]) + csr.L1()),
    "plain": lambda: csr.Problem(csr.Linear(X), csr.Logistic(Y) + csr.Ridge()),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_values_are_the_same_in_both_coordinates(name):
    problem = PROBLEMS[name]()
    chain = reduced(problem, (KernelToLinear, Centring))
    point = Point(RNG.normal(size=(problem.given.n_weights, 1)), np.array([0.3]))
    lowered = chain.lower(point)
    value = problem.value_at(point.theta, point.b)
    np.testing.assert_allclose(chain.problem.value_at(lowered.theta, lowered.b), value, rtol=1e-8)
    back = chain.lift(lowered)
    np.testing.assert_allclose(problem.value_at(back.theta, back.b), value, rtol=1e-8)


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_optimum_there_is_an_optimum_here(name):
    problem = PROBLEMS[name]()
    chain = reduced(problem, (KernelToLinear, Centring))
    found = chain.problem.solve(tol=1e-9)
    theta, b = chain.problem.shaped(found.coef, found.intercept)
    lifted = chain.lift(Point(theta, b, found.dual))
    certificate = csr.certify(problem, lifted.theta[:, 0], lifted.b[0], dual=dict(lifted.dual))
    assert certificate.relative_gap <= 1e-7


def test_a_reduction_is_made_once_and_only_where_it_changes_something():
    problem = PROBLEMS["norm"]()
    assert KernelToLinear.apply(problem) is KernelToLinear.apply(problem)
    assert Centring.apply(problem) is None
    plain = PROBLEMS["plain"]()
    assert as_linear(plain) is plain
    chain = reduced(plain, (KernelToLinear, Centring))
    assert isinstance(chain, Chain) and chain.steps == () and chain.problem is plain
    far = PROBLEMS["far columns"]()
    centred = Centring.apply(far).problem
    assert Centring.apply(centred) is None


def test_no_cycle_keeps_a_problem_alive():
    """Large data are freed as soon as the last name of a problem is gone, without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        for make in PROBLEMS.values():
            problem = make()
            reduced(problem, (KernelToLinear, Centring))
            assert problem.normal_form.weight_forms is not None
            alive = weakref.ref(problem)
            del problem
            assert alive() is None
    finally:
        gc.enable()


OVERLAPPING = csr.Groups([[0, 1], [1, 2], [2, 3], [0, 3]], n_features=4, weights=[1.0, 2.0, 0.5, 1.0])
LATENT = {
    "alone": 2.0 * csr.LatentGroupLasso(OVERLAPPING),
    "ridge": 2.0 * csr.LatentGroupLasso(OVERLAPPING) + 0.3 * csr.Ridge(),
    "L1 and graph": 2.0 * csr.LatentGroupLasso(OVERLAPPING)
    + 0.5 * csr.L1()
    + csr.Laplacian(csr.Graph.from_edges([(0, 1), (1, 3)], n_nodes=4)),
    "fused": 2.0 * csr.LatentGroupLasso(OVERLAPPING) + csr.FusedLasso(csr.Graph.from_edges([(0, 3)], n_nodes=4)),
}
LOSSES = {"logistic": csr.Logistic(Y), "hinge": csr.Hinge(Y), "three classes": csr.Multinomial(np.arange(20) % 3)}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", LATENT)
def test_latent_groups_are_solved_as_copies(penalty, loss):
    """The answer is that of CVXPY on the given problem, and it is proved for the given problem."""
    problem = csr.Problem(csr.Linear(X), LOSSES[loss] + LATENT[penalty])
    solution = problem.solve(tol=1e-7)
    assert solution.status == "optimal"
    assert solution.solver in ("group_descent", "group_newton", "semismooth_newton")
    program = problem.to_cvxpy()
    program.solve("CLARABEL")
    assert solution.objective == pytest.approx(program.value, rel=1e-6)
    again = problem.solve(tol=1e-7, warm_start=solution)
    assert again.status == "optimal"


def test_copies_add_up_and_keep_the_objective():
    problem = csr.Problem(csr.Linear(X), LOSSES["logistic"] + LATENT["ridge"])
    copied = LatentCopies.apply(problem)
    v = RNG.normal(size=(copied.problem.model.n_weights, 1))
    point = copied.lift(Point(v, np.array([0.2])))
    assert point.theta.shape == (4, 1)
    # any copies cost at least the latent norm of their sum
    assert copied.problem.value_at(v, point.b) >= problem.value_at(point.theta, point.b)
    back = copied.lift(copied.lower(point))
    np.testing.assert_allclose(back.theta, point.theta)


def test_copies_need_one_latent_norm_and_no_bounds():
    model, latent = csr.Linear(X), csr.LatentGroupLasso(OVERLAPPING)
    for penalty in (csr.Ridge(), latent + csr.NonNegative(), latent + 2.0 * csr.LatentGroupLasso(OVERLAPPING)):
        assert LatentCopies.apply(csr.Problem(model, csr.Logistic(Y) + penalty)) is None


def test_a_feature_in_no_group_is_zero():
    groups = csr.Groups([[0, 1], [1, 2]], n_features=4)
    solution = csr.Problem(csr.Linear(X), csr.Squared(X[:, 3]) + 0.1 * csr.LatentGroupLasso(groups)).solve()
    assert solution.status == "optimal"
    assert solution.coef[3] == 0.0
