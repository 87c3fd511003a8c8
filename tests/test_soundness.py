"""Certificates under attack: wrong formulas, odd atoms and odd scales."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.isotonic import isotonic_regression

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import Certificate, WrongBoundError, certify_point
from cvxstructreg.certificates.directions.no_minimiser import escape
from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.core.atom import Atom
from cvxstructreg.reductions.centring import Centring


def regression(seed=0, n=30, d=5, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + rng.normal(size=n) + shift


class Total(Atom):
    """sum_j w_j: convex, but of any sign."""

    def expr(self, z):
        return cp.sum(z)


def test_an_atom_that_can_be_negative_has_no_bound_of_zero():
    X, y = regression()
    problem = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 500.0 * Total() + csr.Ridge())
    optimum = problem.solve("cvxpy")
    assert optimum.objective < -1e3
    certificate = csr.certify(problem, -np.ones(5))
    assert certificate.lower_bound <= optimum.objective
    assert certificate.status(1e-6) is None
    without_ridge = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 500.0 * Total())
    assert csr.certify(without_ridge, -np.ones(5)).kind == "kkt"


class HalfBall(Atom):
    """The absolute values with a dual norm that is wrong by a factor of two."""

    def expr(self, z):
        return cp.sum_largest(cp.abs(z), z.size)  # absolute values in words that nothing recognises

    def value(self, z):
        return float(np.abs(z).sum())

    def prox(self, v, t):
        return np.sign(v) * np.maximum(np.abs(v) - t, 0.0)

    def dual_norm(self, u):
        return 0.5 * float(np.abs(u).max())


def test_a_bound_above_the_objective_is_an_error_that_names_the_atom():
    X, y = regression()
    problem = csr.Problem(csr.Linear(X), csr.Squared(y) + 3.0 * HalfBall())
    with pytest.raises(WrongBoundError, match=r"HalfBall.*\n?.*check_atom"):
        problem.solve("fista")


def test_a_negative_gap_is_never_optimal():
    assert Certificate("duality_gap", 1.0, 5.0, -4.0, -4.0).status(1e-6) is None


def test_a_gap_is_at_least_round_off():
    X, y = regression()
    for solver in ("working_set", "irls", "cvxpy"):
        solution = csr.Problem(csr.Linear(X), csr.Squared(y) + 3.0 * csr.L1()).solve(solver, tol=1e-9)
        assert solution.certificate.gap > np.finfo(float).eps * solution.objective


class Slope(Atom):
    """|w_(1)| + ... + |w_(d)|, the two largest twice: no conjugate, no dual norm."""

    def expr(self, z):
        entries = cp.abs(cp.vec(z, order="F"))
        return cp.sum(entries) + cp.sum_largest(entries, 2)

    def value(self, z):
        sizes = np.sort(np.abs(z).ravel())[::-1]
        return float(sizes.sum() + sizes[:2].sum())

    def prox(self, v, t):
        sizes = np.abs(v).ravel()
        order = np.argsort(-sizes)
        lam = t * np.where(np.arange(sizes.size) < 2, 2.0, 1.0)
        kept = np.empty_like(sizes)
        kept[order] = np.maximum(isotonic_regression(sizes[order] - lam, increasing=False), 0.0)
        return np.sign(v) * kept.reshape(v.shape)


def test_a_penalty_with_prox_and_without_conjugate():
    X, y = regression()
    problem = csr.Problem(csr.Linear(X), csr.Squared(y) + 2.0 * Slope())
    reference, fast = problem.solve("cvxpy"), problem.solve("fista")
    assert (fast.status, fast.certificate.kind) == ("stationary", "kkt")
    assert fast.n_iter < 500
    assert fast.objective == pytest.approx(reference.objective, rel=1e-6)
    assert csr.certify(problem, fast.coef + 0.1, fast.intercept).residual > 1e-3
    held = csr.Problem(csr.Linear(X), csr.Squared(y) + 2.0 * Slope() + 0.5 * csr.Ridge())
    solution = held.solve("fista")
    assert (solution.status, solution.certificate.kind) == ("optimal", "strong_convexity")


def test_the_residual_of_several_penalties_is_zero_at_the_optimum_and_not_elsewhere():
    X, y = regression()
    problem = csr.Problem(csr.Linear(X), csr.Squared(y) + 2.0 * Slope() + 1.0 * csr.L1())
    optimum = problem.solve("cvxpy", tol=1e-8)
    assert csr.certify(problem, optimum.coef, optimum.intercept).residual <= 1e-5
    assert csr.certify(problem, 1.1 * optimum.coef, optimum.intercept).residual > 1e-3


class HuberOfWeights(Atom):
    """sum_j h(w_j), h(a) = a^2 / 2 up to 1 and |a| - 1/2 beyond: prox and conjugate in closed form, and no norm."""

    def expr(self, z):
        return 0.5 * cp.sum_largest(cp.huber(z, 1.0), z.size)

    def value(self, z):
        sizes = np.abs(z)
        return float(np.sum(np.where(sizes <= 1.0, 0.5 * sizes**2, sizes - 0.5)))

    def prox(self, v, t):
        return np.where(np.abs(v) <= 1.0 + t, v / (1.0 + t), v - t * np.sign(v))

    def conj(self, u):
        return np.inf if np.any(np.abs(u) > 1.0 + 1e-12) else float(0.5 * np.sum(u**2))


@pytest.mark.parametrize("rest", ["ridge", "l1", "both", "nothing"])
@pytest.mark.parametrize("solver", ["fista", "admm", "cvxpy"])
def test_a_penalty_with_a_conjugate_that_is_no_norm(solver, rest):
    X, y = regression()
    added = {"ridge": [0.1 * csr.Ridge()], "l1": [csr.L1()], "both": [0.1 * csr.Ridge(), csr.L1()], "nothing": []}
    objective = sum(added[rest], csr.Squared(10.0 * y) + 5.0 * HuberOfWeights())
    problem = csr.Problem(csr.Linear(X), objective)
    if solver == "fista" and rest in ("l1", "both"):
        with pytest.raises(ValueError, match="does not accept"):  # two terms with a prox
            problem.solve(solver)
        return
    solution = problem.solve(solver)
    assert (solution.status, solution.certificate.kind) == ("optimal", "duality_gap")


def test_without_any_penalty_the_bound_is_below_the_optimum():
    checked = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(23, 7))
        y = (X @ rng.normal(size=7) + 2.0 * rng.logistic(size=23) > 0).astype(int)
        if len(set(y)) < 2:
            continue
        problem = csr.Problem(csr.Linear(X), csr.Logistic(y, sample_weight=rng.uniform(0.2, 3.0, size=23)))
        if escape(problem, np.zeros((7, 1)), np.zeros(1)) is not None:
            continue
        loose, tight = problem.solve("newton", tol=1e-4), problem.solve("newton", tol=1e-10)
        for solution in (loose, tight):
            assert solution.certificate.gap >= 0.0
            assert solution.certificate.lower_bound <= tight.objective
        moved = certify_point(problem, *problem.shaped(tight.coef + 1e-3, tight.intercept))
        assert moved.lower_bound <= tight.objective
        checked += 1
    assert checked >= 10


@pytest.mark.parametrize("solver", ["working_set", "irls", "fista", "admm", "cvxpy"])
@pytest.mark.parametrize("shift", [1e3, 1e5, 1e7])
def test_targets_far_from_zero(solver, shift):
    X, y = regression()
    plain = csr.Problem(csr.Linear(X), csr.Squared(y) + 3.0 * csr.L1()).solve(tol=1e-9)
    shifted = csr.Problem(csr.Linear(X), csr.Squared(y + shift) + 3.0 * csr.L1()).solve(solver)
    assert shifted.status == "optimal"
    assert shifted.objective == pytest.approx(plain.objective, rel=2e-6)
    assert shifted.certificate.relative_gap == pytest.approx(shifted.certificate.gap / plain.objective, rel=1e-4)


def test_a_column_without_penalty_does_not_change_what_gaps_are_measured_by():
    X, y = regression()
    loss = csr.Squared(y + 1e6 * X[:, 0])
    problem = csr.Problem(csr.Linear(X), loss + 3.0 * csr.L1(weights=[0.0, 1.0, 1.0, 1.0, 1.0]))
    plain = csr.Problem(csr.Linear(X), csr.Squared(y) + 3.0 * csr.L1(weights=[0.0, 1.0, 1.0, 1.0, 1.0]))
    assert null_point(problem).objective == pytest.approx(null_point(plain).objective, rel=1e-6)
    assert problem.solve().objective == pytest.approx(plain.solve().objective, rel=2e-6)


def test_an_imbalanced_hinge_is_measured_against_the_larger_class():
    X, _ = regression(n=200)
    y = np.r_[1, -np.ones(199)]
    problem = csr.Problem(csr.Linear(X), csr.Hinge(y) + 1e-3 * csr.Ridge())
    assert null_point(problem).objective == pytest.approx(2.0)


@pytest.mark.parametrize("targets", [np.full(6, 5.0), np.arange(6.0)])
def test_a_perfect_fit_is_optimal(targets):
    X = np.vander(np.linspace(0.0, 1.0, 6), 6)
    for penalty in (0.0 * csr.Ridge(), 1e-9 * csr.L1()):
        solution = csr.Problem(csr.Linear(X), csr.Squared(targets) + penalty).solve()
        assert solution.status == "optimal"


NOISE = [
    [0.0, -0.304, 0.0, 0.614, 0.455, -0.328, 0.0, 0.0],
    [-0.194, 0.0, 0.41, 0.0, 0.0, 0.0, 0.0, 0.0],
    [-1.829, -0.293, 0.0, 0.0, 0.862, 0.0, 0.0, -1.057],
]
FACTOR = [
    [0.0, -2.323, -0.047, 0.244, -0.861, 2.024, -1.059, 0.543],
    [0.0, -0.061, -0.915, 1.018, 1.167, -0.374, -1.779, -0.416],
    [0.0, -1.319, -0.612, 2.274, -0.713, -0.423, 0.507, -0.907],
    [0.0, 0.506, -1.473, 0.878, 1.367, -1.976, -1.4, 0.281],
    [0.0, -1.343, 0.198, -0.567, -0.483, 0.515, -0.987, -1.906],
    [0.0, 0.966, 0.166, 1.184, 1.374, -2.441, 0.808, -0.526],
]


def test_dual_points_out_of_balance_prove_nothing():
    """Columns far from zero nearly repeat the intercept, so that a linear system leaves the balance to three digits."""
    X, factor = 298501.5 + np.array(NOISE), sp.csr_array(np.array(FACTOR))
    loss = 0.0185 * csr.Logistic([1, -1, -1], sample_weight=[0.46, 1451160.0, 0.0]) + csr.Logistic([1, 1, 0])
    penalty = 7.5e11 * csr.Quadratic(factor=factor) + csr.NonNegative()
    problem = csr.Problem(csr.Linear(sp.csr_array(X)), loss + penalty)
    attained = problem.value([112.47483863447479] + [0.0] * 7, -33573898.83373327)
    with pytest.warns(csr.InaccurateWarning):
        certificate = problem.solve("fista", max_iter=30).certificate
    assert not certificate.lower_bound > attained


def test_weights_on_their_way_to_infinity_are_no_null_point():
    """Along constant weights the classes are separated, and differences of round-off cost more than the loss."""
    X = np.random.default_rng(0).uniform(0.5, 1.5, size=(2, 7)) * [[1.0], [-1.0]]
    edges = np.array([[0, 3], [3, 5], [1, 5], [2, 6], [4, 6], [0, 6]])
    penalty = 1e18 * csr.FusedLasso(csr.Graph.from_edges(edges, np.linspace(1.0, 2.0, 6), 7))
    null = null_point(csr.Problem(csr.Linear(X, intercept=False), csr.Logistic([1, 0]) + penalty))
    assert null.objective <= null.with_intercept == pytest.approx(2.0 * np.log(2.0))


def test_the_intercept_of_the_optimum_may_be_far_away():
    """Its column sums of 4e-13 cost as much as the mean of a column that the optimum uses, and the point does not."""
    problem = csr.Problem(
        csr.Linear([[14792.379639314506], [14793.36613659046]]),
        csr.Squared([2423.2265238903587, 2423.8480504511667])
        + 0.01659571268651395 * csr.LatentGroupLasso(csr.Groups([[0]], 1)),
    )
    Centring.settle(problem)  # as with terms on the function, which need the data where they are
    attained = problem.value([0.5959274714207553], -6391.942047995406)
    for theta in np.linspace(-1e-6, 1e-6, 50):
        bound = csr.certify(problem, [theta], 2423.53728717 - 14792.9 * theta, search=False).lower_bound
        assert bound <= attained * (1.0 + 1e-8)
        assert bound >= 0.99 * attained


def test_terms_of_strength_zero_do_not_keep_data_far_from_zero():
    rng = np.random.default_rng(0)
    X, graph = 1e6 + rng.normal(size=(5, 2)), csr.Graph.from_edges([[0, 1]], [1.0], 5)
    problem = csr.Problem(
        csr.Linear(X), csr.Squared(rng.normal(size=5)) + csr.L1() + 0.0 * csr.Laplacian(graph).on_function()
    )
    assert Centring.apply(problem) is not None


def test_a_weight_penalty_of_strength_zero_on_a_kernel_of_low_rank():
    Z = np.random.default_rng(0).normal(size=(5, 2))
    graph = csr.Graph.from_edges([[0, 1]], [1.0], 5)
    problem = csr.Problem(
        csr.Kernel(Z @ Z.T), csr.Squared(np.arange(5.0)) + 0.0 * csr.Laplacian(graph) + csr.RKHSNorm()
    )
    without = csr.Problem(csr.Kernel(Z @ Z.T), csr.Squared(np.arange(5.0)) + csr.RKHSNorm())
    assert problem.solve("newton").objective == pytest.approx(without.solve("newton").objective, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-3, 0.02, 1.0, 100.0])
def test_the_null_point_of_the_huber_loss_has_the_best_intercept(delta):
    """At the mean of the targets the loss may have no curvature, where Newton steps get nowhere."""
    loss = csr.Huber([0.6, -2.0, 1.0, 7.0], delta=delta, sample_weight=[1.0, 2.0, 0.5, 0.3])
    null = null_point(csr.Problem(csr.Linear(np.zeros((4, 1))), loss + csr.Ridge()))
    others = np.concatenate([[0.0], np.linspace(-3.0, 8.0, 500)])
    assert null.with_intercept <= min(loss.value(np.full((4, 1), b)) for b in others) * (1.0 + 1e-12)


def test_the_latent_norm_of_weights_of_very_different_sizes():
    """Groups with a tiny feature of their own need a tiny share; the others share one large feature."""
    groups = csr.Groups([[0, 1, 2], [0, 3, 4], [0, 5]], n_features=6, weights=[1.0, 1.0, 1.5])
    z = np.array([[7.5], [3e-3], [1e-14], [4e-3], [2e-15], [1e-16]])
    # without the tiny features: both groups have the same direction in the plane of the large feature
    expected = np.hypot(7.5, 7e-3)
    assert csr.LatentGroupLasso(groups).value(z) == pytest.approx(expected, rel=1e-10)


def test_the_latent_norm_with_a_small_feature_in_groups_of_little_use():
    """Without a share for the small feature, Newton steps fail, and alternations take thousands of steps."""
    groups = csr.Groups([[0], [1, 2, 3, 4, 0], [1, 5], [0, 3, 5]], n_features=6, weights=np.sqrt([4.0, 5.0, 2.0, 12.0]))
    z = np.array([[47408.6], [4124.55], [9103.9], [13222.2], [17016.9], [5e-5]])
    expected = np.sqrt(5.0) * np.linalg.norm(z[:5]) + np.sqrt(2.0) * 5e-5  # up to a part of the last number
    assert csr.LatentGroupLasso(groups).value(z) == pytest.approx(expected, rel=1e-9)


def test_a_dual_point_whose_square_underflows():
    graph = csr.Graph.from_edges([[0, 1], [1, 2]], [1.0, 1.0], 3)
    problem = csr.Problem(csr.Linear(np.eye(3)), csr.Squared([0.5, 0.5, 0.5]) + csr.HuberDifferences(graph, M=0.1))
    certificate = certify_point(problem, np.array([[1e-161], [0.0], [-1e-161]]), np.array([0.5]))
    assert 0.0 <= certificate.gap <= 1e-14


def test_the_prox_of_an_expression_far_from_one():
    """Clarabel calls the prox of powers of 1e5 infeasible unless it is given in other units."""
    t, v = 3.63, np.array([[30377.0], [-74453.0], [69268.0], [69249.0], [34272.0], [-69277.0], [69296.0], [16583.0]])
    root = 0.5 * (np.sqrt((1.5 * t) ** 2 + 4.0 * np.abs(v)) - 1.5 * t)  # of x + 1.5 t sqrt(x) = |v|
    found = csr.FromExpression(lambda w: cp.sum(cp.power(cp.abs(w), 1.5))).prox(v, t)
    assert found == pytest.approx(np.sign(v) * root**2, rel=0.01)
