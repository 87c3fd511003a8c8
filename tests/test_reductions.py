"""Every change of coordinates keeps the objective, and carries points there and back."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.reductions.centring import Centring
from cvxstructreg.reductions.kernel_to_linear import KernelToLinear, as_linear
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
