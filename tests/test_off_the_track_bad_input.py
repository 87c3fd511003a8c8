"""Degenerate problems off the beaten track: a certified answer, or an honest status within the time limit."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers.driver import InaccurateWarning

RNG = np.random.default_rng(8)
X = RNG.normal(size=(30, 6))
Z = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=30)
Y = (Z > 0).astype(int)
LOSSES = {"squared": csr.Squared(Z), "hinge": csr.Hinge(Y)}
HONEST = {"optimal", "stationary", "inaccurate", "max_iter", "time_limit", "no_minimiser"}


def solved(problem, solver="auto", **options):
    """The solution and the objective of CVXPY; an optimal status must hold against it."""
    with muted(InaccurateWarning):
        solution, reference = problem.solve(solver, time_limit=120.0, **options), problem.solve("cvxpy", tol=1e-4)
    assert solution.status in HONEST
    assert np.isfinite(solution.objective)
    if solution.status == "optimal":
        assert solution.objective <= reference.objective + 2e-6 * abs(reference.objective) + 1e-9
        assert solution.certificate.lower_bound <= reference.objective * (1 + 1e-9)
    return solution


@pytest.mark.parametrize("loss", LOSSES)
def test_nearly_parallel_differences(loss):
    rows = np.array([[1.0, -1.0, 0, 0, 0, 0], [1.0, -1.0 + 1e-9, 0, 0, 0, 0], [1.0, -1.0 - 1e-13, 1e-13, 0, 0, 0]])
    penalty = csr.compose(csr.L1(), rows)
    assert solved(csr.Problem(csr.Linear(X), LOSSES[loss] + penalty + 0.1 * csr.Ridge())).status == "optimal"


@pytest.mark.parametrize("loss", LOSSES)
def test_disconnected_graphs_without_ridge(loss):
    graph = csr.Graph.from_edges([(0, 1), (2, 3)], n_nodes=6)  # two edges and two nodes without any
    assert solved(csr.Problem(csr.Linear(X), LOSSES[loss] + csr.FusedLasso(graph))).status == "optimal"


@pytest.mark.parametrize("kind", [csr.GroupLasso, csr.LatentGroupLasso])
def test_groups_that_cover_nothing_or_little(kind):
    some = csr.Groups([[0, 1]], n_features=6)
    assert solved(csr.Problem(csr.Linear(X), csr.Squared(Z) + kind(some) + 0.1 * csr.Ridge())).status == "optimal"
    none = csr.Groups([], n_features=6)
    assert solved(csr.Problem(csr.Linear(X), csr.Squared(Z) + kind(none) + 0.1 * csr.Ridge())).status == "optimal"


@pytest.mark.parametrize("sigma", [1e-300, 1e100])
def test_penalty_parameters_far_from_any_scale(sigma):
    graph = csr.Graph.from_edges([(i, i + 1) for i in range(5)], n_nodes=6)
    problem = csr.Problem(csr.Linear(X), csr.Hinge(Y) + csr.FusedLasso(graph) + 0.1 * csr.Ridge())
    solved(problem, "semismooth_newton", sigma=sigma, max_iter=200)


def test_a_sigma_that_is_no_positive_number_is_refused():
    problem = csr.Problem(csr.Linear(X), csr.Hinge(Y) + csr.L1())
    with pytest.raises(ValueError, match="sigma must be positive, got -1"):
        problem.solve("semismooth_newton", sigma=-1.0)
    with pytest.raises(ValueError, match="sigma = 1e\\+305 makes penalty parameters overflow"):
        problem.solve("semismooth_newton", sigma=1e305)


@pytest.mark.parametrize("loss", [csr.Hinge(Y), csr.MulticlassHinge(np.arange(len(Y)) % 3), csr.Absolute(Z)])
@pytest.mark.parametrize("penalty", [csr.L1(), csr.GroupLasso(csr.Groups([[0, 1, 2, 3], [2, 3, 4, 5]]))])
def test_strengths_near_the_largest_number(loss, penalty):
    """No solver can represent its penalty parameters, and none may end the solve with an error."""
    problem = csr.Problem(csr.Linear(X), loss + 1e300 * penalty)
    with np.errstate(all="ignore"), muted(InaccurateWarning):
        solution = problem.solve(time_limit=2.0)
    assert solution.status in HONEST
    best = csr.Problem(csr.Linear(X), loss + 1e6 * penalty).solve()  # of zero weights
    assert solution.objective >= best.objective * (1 - 1e-6)
    if solution.status == "optimal":
        assert np.all(solution.coef == 0.0)
