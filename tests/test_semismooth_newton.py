"""The general second-order solver: its sets, its Newton system, and every pair of loss and penalty."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers.driver import InaccurateWarning, NoMinimiserWarning
from cvxstructreg.solvers.general import newton_matrix, semismooth_newton
from cvxstructreg.solvers.general.dual_sets import Balls, Intervals
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian

NAME = semismooth_newton.SOLVER.name
N, D = 40, 12
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
SCORE = X[:, 0] - X[:, 1] + 0.5 * RNG.normal(size=N)
Y, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.7, 0.7])
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(D - 1)], n_nodes=D)
OVERLAPPING = csr.Groups([[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 8, 9], [9, 10, 11]], n_features=D)
DISJOINT = csr.Groups([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]], n_features=D)

LOSSES = {
    "squared": lambda: csr.Squared(SCORE),
    "logistic": lambda: csr.Logistic(Y),
    "squared hinge": lambda: csr.SquaredHinge(Y),
    "hinge": lambda: csr.Hinge(Y),
    "multinomial": lambda: csr.Multinomial(THREE),
    "multiclass hinge": lambda: csr.MulticlassHinge(THREE),
}
PENALTIES = {
    "ridge": lambda: csr.Ridge(),
    "L1": lambda: csr.L1(),
    "L1 and Laplacian": lambda: csr.L1() + csr.Laplacian(CHAIN),
    "chain and ridge": lambda: csr.FusedLasso(CHAIN) + 0.1 * csr.Ridge(),
    "chain": lambda: csr.FusedLasso(CHAIN),
    "chain and L1": lambda: csr.FusedLasso(CHAIN) + csr.L1(),
    "groups": lambda: csr.GroupLasso(DISJOINT),
    "overlapping groups and L1": lambda: csr.GroupLasso(OVERLAPPING) + 0.5 * csr.L1(),
    "groups and Laplacian": lambda: csr.GroupLasso(OVERLAPPING) + csr.Laplacian(CHAIN),
    "bounds and ridge": lambda: csr.NonNegative() + 0.1 * csr.Ridge(),
    "box and Laplacian": lambda: csr.Box(-0.5, 0.3) + csr.Laplacian(CHAIN),
    "box and L1": lambda: csr.Box(-0.5, 0.3) + 0.5 * csr.L1(),
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_pair_is_proved_and_agrees_with_cvxpy(loss, penalty):
    problem = csr.Problem(csr.Linear(X), LOSSES[loss]() + PENALTIES[penalty]())
    found, reference = problem.solve(NAME, tol=1e-7, max_iter=60), problem.solve("cvxpy", tol=1e-5)
    assert (found.status, found.solver) == ("optimal", NAME)
    other = reference.certificate.gap  # CVXPY has no proof where no term holds the mean of the weights
    other = 1e-6 * reference.objective if np.isnan(other) else other
    assert abs(found.objective - reference.objective) <= found.certificate.gap + other
    assert found.n_iter <= 40


@pytest.mark.parametrize(
    "extra",
    [
        lambda: csr.Laplacian(csr.Graph.from_edges([(i, i + 1) for i in range(N - 1)], n_nodes=N)).on_scores(),
        lambda: csr.Dissimilarity([(0, 1), (2, 5)]),
        lambda: csr.Squared(np.column_stack([SCORE, SCORE, SCORE])),
    ],
)
def test_other_terms_of_the_scores(extra):
    problem = csr.Problem(csr.Linear(X), csr.MulticlassHinge(THREE) + csr.L1() + 0.3 * extra())
    found, reference = problem.solve(NAME, tol=1e-7), problem.solve("cvxpy", tol=1e-6)
    assert found.status == "optimal"
    assert abs(found.objective - reference.objective) <= found.certificate.gap + reference.certificate.gap


def test_rows_weights_sparse_data_no_intercept_and_kernels():
    rows = np.arange(0, N, 2)
    loss = csr.Hinge(Y[rows], rows=rows, sample_weight=np.linspace(0.0, 3.0, rows.size))
    sparse = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    gram = X @ X.T + 0.1 * np.eye(N)
    for model in (csr.Linear(sparse), csr.Linear(X, intercept=False)):
        assert csr.Problem(model, loss + csr.FusedLasso(CHAIN) + 0.1 * csr.L1()).solve(NAME).status == "optimal"
    kernel = csr.Problem(csr.Kernel(gram), loss + csr.RKHSNorm())
    found, reference = kernel.solve(NAME, tol=1e-7), kernel.solve("cvxpy")
    assert abs(found.objective - reference.objective) <= found.certificate.gap + reference.certificate.gap


def test_a_warm_start_takes_fewer_iterations():
    problem = csr.Problem(csr.Linear(X), csr.Logistic(Y) + csr.FusedLasso(CHAIN) + csr.L1())
    first = problem.solve(NAME, tol=1e-6)
    again = problem.solve(NAME, tol=1e-6, warm_start=first)
    assert again.status == "optimal" and again.n_iter < first.n_iter


def test_units_do_not_matter():
    """Data and strengths in other units make as many iterations to the same weights."""
    scale = 2.0**20
    one = csr.Problem(csr.Linear(X), csr.Hinge(Y) + csr.FusedLasso(CHAIN) + 0.1 * csr.L1())
    two = csr.Problem(csr.Linear(X * scale), csr.Hinge(Y) + scale * csr.FusedLasso(CHAIN) + 0.1 * scale * csr.L1())
    first, second = one.solve(NAME, tol=1e-8), two.solve(NAME, tol=1e-8)
    assert first.status == second.status == "optimal"
    np.testing.assert_allclose(second.coef * scale, first.coef, atol=1e-5)


@pytest.mark.parametrize(
    "dual_set",
    [
        Intervals(np.full((6, 2), -1.0), np.full((6, 2), 0.5), np.full((6, 2), 0.1)),
        Intervals(np.zeros((6, 2)), np.full((6, 2), np.inf), np.zeros((6, 2))),
        Balls(np.array([0, 2, 3, 6]), np.array([1.0, 1.0, 0.3]), (6, 2)),
    ],
)
def test_projections_and_their_derivatives(dual_set):
    rng = np.random.default_rng(1)
    u, v, dz = rng.normal(size=(3, 6, 2))
    p, q = dual_set.project(u), dual_set.project(v)
    np.testing.assert_allclose(dual_set.project(p), p)
    assert np.vdot(u - p, q - p) <= 1e-12  # p is the nearest point
    change = (dual_set.project(u + 1e-7 * dz) - dual_set.project(u - 1e-7 * dz)) / 2e-7
    np.testing.assert_allclose(dual_set.moved(u, dz), change, atol=1e-6)
    if dual_set.is_bounded:
        far = dual_set.project(1e9 * (u - dual_set.offset))
        np.testing.assert_allclose(dual_set.value(u), np.vdot(far, u - dual_set.offset), rtol=1e-6)
    outside = 5.0 * np.abs(u)
    inside = dual_set.factor_inside(outside) * outside
    np.testing.assert_allclose(dual_set.project(inside), inside, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("pair_cost", [0.0, np.inf])  # pairs of columns in a block, or dense products
def test_the_newton_matrix_is_the_derivative_of_the_gradient(loss, pair_cost, monkeypatch):
    monkeypatch.setattr(newton_matrix, "PAIR_COST", pair_cost)
    objective = LOSSES[loss]() + csr.GroupLasso(OVERLAPPING) + csr.L1() + csr.FusedLasso(CHAIN) + csr.Laplacian(CHAIN)
    function = AugmentedLagrangian(csr.Problem(csr.Linear(X), objective))
    rng = np.random.default_rng(2)
    for term in function.rough:
        term.q, term.sigma = term.dual_set.project(rng.normal(size=term.q.shape)), 1.7
    x, dx = 0.3 * rng.normal(size=(2, function.size, function.k))
    H = function.newton_matrix(function.at(x))[0].whole
    change = (function.at(x + 1e-7 * dx).gradient() - function.at(x - 1e-7 * dx).gradient()) / 2e-7
    np.testing.assert_allclose((H @ dx.T.reshape(-1)).reshape(dx.T.shape).T, change, rtol=1e-4, atol=1e-3)


def test_bounds_on_scores_are_refused():
    """The sets hold absolute values after a map, but no bounds."""
    problem = csr.Problem(csr.Linear(X), csr.Logistic(Y) + csr.Ridge() + csr.Box(-1.0, 1.0).on_scores())
    assert "Box" in semismooth_newton.SOLVER.refusal(problem).reason
    assert problem.solve(tol=1e-5).objective == pytest.approx(problem.solve("cvxpy").objective, rel=1e-4)


def test_terms_without_rows():
    pairs = csr.Dissimilarity(np.zeros((0, 2), dtype=int))
    problem = csr.Problem(csr.Linear(X), csr.MulticlassHinge(THREE) + csr.L1() + pairs)
    assert problem.solve(NAME).status == "optimal"


def test_refusals_and_options():
    many = csr.Problem(csr.Linear(sp.csr_array((20, 5000))), csr.Logistic(np.arange(20) % 2) + csr.L1())
    latent = csr.Problem(csr.Linear(X), csr.Logistic(Y) + csr.LatentGroupLasso(OVERLAPPING) + csr.NonNegative())
    assert "at most 1,500 weights" in semismooth_newton.SOLVER.refusal(many).reason
    assert "LatentGroupLasso" in semismooth_newton.SOLVER.refusal(latent).reason
    with pytest.raises(ValueError, match="sigma must be positive"):
        csr.Problem(csr.Linear(X), csr.Hinge(Y) + csr.L1()).solve(NAME, sigma=0.0)


def test_directions_without_curvature_end_honestly():
    """Separable data, no penalty on some weights, one class in the rows that count."""
    for objective in (
        csr.Logistic(Y) + csr.L1(weights=[0.0] + [1.0] * (D - 1)),
        csr.Hinge(Y, sample_weight=np.where(Y > 0, 1.0, 1e-9)) + csr.L1(),
        csr.Hinge(Y) + 1e9 * csr.FusedLasso(CHAIN) + 0.1 * csr.Ridge(),
        csr.Squared(SCORE) + 1e-9 * csr.FusedLasso(CHAIN),
    ):
        problem = csr.Problem(csr.Linear(X), objective)
        found, reference = problem.solve(tol=1e-5), problem.solve("cvxpy", tol=1e-5)
        assert found.objective <= reference.objective + found.certificate.gap + reference.certificate.gap


def test_columns_of_zeros_get_no_endless_steps():
    """Edges at the ends of their intervals leave such columns without any curvature."""
    X = np.array([[0.0, 1.2, 0.0], [1.8, -1.4, 0.0], [-2.0, 1.1, 0.0], [0.3, 0.4, 0.0]])
    graph = csr.Graph.from_edges([(1, 2)], n_nodes=3)
    problem = csr.Problem(csr.Linear(X), 200.0 * csr.Logistic([1, -1, 1, -1]) + 1.8 * csr.FusedLasso(graph))
    with np.errstate(over="raise", invalid="raise"), pytest.warns(NoMinimiserWarning):
        solution = problem.solve("semismooth_newton", tol=1e-6, time_limit=20)
    assert solution.status == "no_minimiser"
    assert solution.objective < 1e-9


def test_slopes_of_round_off_end_the_line_search():
    assert semismooth_newton._line_search(lambda s: -1.0 - 0.01 * s, -1.0) == 0.0
    assert semismooth_newton._line_search(lambda s: s - 10.0, -10.0) == pytest.approx(10.0, abs=1.0)
    assert semismooth_newton._line_search(lambda s: -1.0, -1.0) > 1e3  # linear: as far as allowed


def test_iterates_do_not_run_away_along_directions_of_round_off():
    model = csr.Linear([[500.0, -0.2, 60000.0]], intercept=False)
    problem = csr.Problem(model, csr.Squared([1.0]) + csr.Quadratic(matrix=[[3.1]]).on_function())
    with muted(InaccurateWarning):
        solution = problem.solve("semismooth_newton", tol=1e-15, max_iter=8)
    assert max(record.objective for record in solution.history) <= problem.value(np.zeros(3))


def test_a_preconditioner_that_round_off_makes_singular():
    X = np.array([[-3000.0, -1000.0], [0.0, 0.0]])
    loss = csr.Tweedie([66.5, 223.0], sample_weight=[0.7, 1e9], power=1.7)
    problem = csr.Problem(csr.Linear(X, intercept=False), loss + 2e12 * csr.TotalVariation((2,), isotropic=False))
    assert problem.solve("semismooth_cg", max_iter=200).status == "optimal"
