"""The strength at which all weights become zero, and regularization paths that start there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.paths import lambda_max, path, warm_path

GROUPS = csr.Groups([[0, 1, 2], [2, 3], [3, 4, 5], [6, 7]], n_features=8)
RING = csr.Graph.from_edges([(j, (j + 1) % 8) for j in range(8)], n_nodes=8)


def data(seed: int = 0, n: int = 40, d: int = 8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] - X[:, 3] + rng.normal(size=n) > 0.3).astype(int)


def targets(seed: int = 0):
    X, y = data(seed)
    return X, y + X[:, 1]


PENALTIES = {
    "l1": lambda: csr.L1(),
    "weighted l1": lambda: csr.L1(np.arange(1.0, 9.0)),
    "l1 and ridge": lambda: csr.L1() + 3.0 * csr.Ridge(),
    "l1 and laplacian": lambda: 0.5 * csr.L1() + csr.Laplacian(RING),
    "groups": lambda: csr.GroupLasso(GROUPS),
    "groups and l1": lambda: csr.GroupLasso(GROUPS) + 0.3 * csr.L1(),
    "latent groups": lambda: csr.LatentGroupLasso(GROUPS),
    "fused and l1": lambda: csr.FusedLasso(RING) + 0.2 * csr.L1(),
    "nonnegative": lambda: csr.L1() + csr.NonNegative(),
    "box": lambda: csr.L1() + csr.Box(-0.1, 0.2),
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", [csr.Logistic, csr.Squared, csr.SquaredHinge])
def test_zero_there_and_not_below(penalty, loss):
    X, y = data() if loss is not csr.Squared else targets()
    problem = csr.Problem(csr.Linear(X), loss(y) + PENALTIES[penalty]())
    largest = lambda_max(problem)
    points = path(problem, strengths=[1.0001 * largest, 0.97 * largest], tol=1e-9)
    assert not points[0].coef.any()
    assert np.abs(points[1].coef).max() > 1e-4


def test_several_outputs():
    X, _ = data()
    y = np.arange(40) % 3
    problem = csr.Problem(csr.Linear(X), csr.Multinomial(y) + csr.GroupLasso(GROUPS) + 0.1 * csr.L1())
    largest = lambda_max(problem)
    points = path(problem, strengths=[1.0001 * largest, 0.97 * largest], tol=1e-9)
    assert not points[0].coef.any()
    assert points[1].coef.any()


def test_features_without_penalty_are_fitted_first():
    X, y = data()
    weights = np.ones(8)
    weights[0] = 0.0
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.L1(weights) + 0.1 * csr.Ridge())
    largest = lambda_max(problem)
    points = path(problem, strengths=[1.0001 * largest, 0.99 * largest], tol=1e-9)
    assert np.flatnonzero(points[0].coef).tolist() == [0]
    assert np.count_nonzero(points[1].coef) == 2


def test_strengths_in_the_problem_count_as_one():
    X, y = data()
    one = lambda_max(csr.Problem(csr.Linear(X), csr.Logistic(y) + 1.0 * csr.L1()))
    four = lambda_max(csr.Problem(csr.Linear(X), csr.Logistic(y) + 4.0 * csr.L1()))
    assert one == pytest.approx(4.0 * four, rel=1e-12)


def test_known_answer_of_the_lasso():
    X, y = targets()
    problem = csr.Problem(csr.Linear(X), csr.Squared(y) + csr.L1())
    assert lambda_max(problem) == pytest.approx(np.abs(X.T @ (y - y.mean())).max(), rel=1e-10)


def test_points_are_those_of_single_solves():
    X, y = data()
    problem = csr.Problem(csr.Linear(sp.csr_array(X)), csr.Logistic(y) + csr.L1() + 0.2 * csr.Laplacian(RING))
    points = path(problem, n_points=6, tol=1e-9)
    assert len(points) == 6
    assert points.strengths[0] / points.strengths[-1] == pytest.approx(100.0)
    assert points.gaps.max() <= 1e-9
    assert points.coefs.shape == (6, 8)
    assert points.intercepts.shape == (6,)
    assert points.n_selected[0] == 0
    assert points.time > 0
    for strength, solution in zip(points.strengths, points, strict=True):
        alone = csr.Problem(problem.model, csr.Logistic(y) + strength * csr.L1() + 0.2 * csr.Laplacian(RING)).solve(
            tol=1e-9
        )
        assert solution.coef == pytest.approx(alone.coef, abs=1e-4)


def test_a_path_of_a_quadratic_term(capsys):
    X, y = data()
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.FeatureNetwork(RING) + 0.1 * csr.Ridge())
    points = path(problem, strengths=[0.1, 10.0, 1.0], terms=[1], verbose=True)
    assert points.strengths.tolist() == [10.0, 1.0, 0.1]
    assert "3/3" in capsys.readouterr().err
    assert points[0].problem.terms[1].scale == 10.0
    assert points[0].problem.terms[2].scale == 0.1


def test_bad_input():
    X, y = data()
    ridge = csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.Ridge())
    lasso = csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.L1())
    with pytest.raises(ValueError, match="kink at zero"):
        lambda_max(ridge)
    with pytest.raises(ValueError, match="no kink"):
        lambda_max(ridge, terms=[1])
    with pytest.raises(ValueError, match="indices of terms, from 0 to 1"):
        path(lasso, terms=[2])
    with pytest.raises(ValueError, match="at least one term"):
        path(lasso, terms=[])
    with pytest.raises(ValueError, match="only differences of weights"):
        lambda_max(csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.FusedLasso(RING)))
    with pytest.raises(ValueError, match="not smooth"):
        lambda_max(csr.Problem(csr.Linear(X), csr.Hinge(y) + csr.L1()))
    with pytest.raises(ValueError, match="excludes zero"):
        lambda_max(csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.L1() + csr.Box(0.1, 1.0)))
    with pytest.raises(ValueError, match="n_points"):
        path(lasso, n_points=0)
    with pytest.raises(ValueError, match="smallest"):
        path(lasso, smallest=1.0)
    with pytest.raises(ValueError, match="strengths must be"):
        path(lasso, strengths=[1.0, -1.0])
    silent = csr.Problem(csr.Linear(np.zeros((4, 2))), csr.Squared([1.0, 2.0, 3.0, 4.0]) + csr.L1())
    assert lambda_max(silent) == 0.0
    with pytest.raises(ValueError, match="zero at any strength"):
        path(silent)


def test_starts_lie_on_the_line_through_the_last_two_points():
    """Extrapolate in the logarithm of the strength; zeros and signs stay; use the plain start if this fails."""
    problem = csr.Problem(csr.Linear(np.eye(4), intercept=False), csr.Squared(np.zeros(4)) + csr.L1())
    real = problem.solve()
    found = [
        np.array([1.0, 1.0, 0.0, 1.0]),
        np.array([2.0, 0.4, 0.0, 3.0]),  # the next start is not 3.0, -0.2, 0.0, 5.0 but
        np.array([3.0, 0.2, 1.0, 5.0]),
        np.array([-9.0, 9.0, 9.0, 9.0]),  # far from the line
        np.array([1.0, 1.0, 1.0, 1.0]),
    ]
    starts = []

    def solve(point, start):
        starts.append(None if start is None else start.coef)
        return replace(real, problem=point, coef=found[len(starts) - 1])

    points = list(warm_path.follow(problem, np.geomspace(1.0, 1e-4, 5), (1,), solve))
    assert starts[0] is None
    np.testing.assert_allclose(starts[1], found[0])
    np.testing.assert_allclose(starts[2], [3.0, 0.0, 0.0, 5.0])
    np.testing.assert_allclose(starts[3], [4.0, 0.0, 2.0, 7.0])
    np.testing.assert_allclose(starts[4], found[3])
    assert len(points) == 5


@pytest.mark.parametrize(
    ("strengths", "ahead"), [([4, 2, 1], 1.0), ([4, 2, 0.5], 2.0), ([2, 1, 0], 0.0), ([1, 1, 0.5], 0)]
)
def test_how_far_ahead_the_next_strength_is(strengths, ahead):
    assert warm_path._step_ratio(np.array(strengths, dtype=float)) == pytest.approx(ahead)


CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(5)], n_nodes=6)
DIFFERENCES = {
    "trend filter": csr.TrendFilter(2),
    "fused lasso": csr.FusedLasso(CHAIN),
    "total variation": csr.TotalVariation(6),
    "groups": csr.GroupLasso(csr.Groups([[0, 1], [1, 2]], n_features=6)),
    "invertible map": csr.compose(csr.L1(), sp.csr_array(np.eye(6) + np.eye(6, k=1))),
}
HELD = {
    "huber differences": csr.HuberDifferences(CHAIN),
    "huber": csr.HuberPenalty(),
    "laplacian": csr.Laplacian(CHAIN),
    "exclusive": csr.ExclusiveLasso(csr.Groups([[0, 1, 2], [3, 4, 5]])),
    "ridge with bounds": csr.Ridge() + csr.NonNegative(),
}


def loss(name):
    X = np.random.default_rng(0).normal(size=(60, 6))
    y = X[:, 0] + X[:, 1] + 0.4 * np.random.default_rng(1).normal(size=60)
    made = {"squared": csr.Squared, "absolute": csr.Absolute, "quantile": csr.Quantile, "huber": csr.Huber}
    return csr.Linear(X), made[name](y) if name in made else csr.Poisson(np.round(np.exp(y)))


@pytest.mark.parametrize("name", ["squared", "absolute", "quantile", "poisson"])
@pytest.mark.parametrize("penalty", sorted(DIFFERENCES))
def test_a_path_starts_where_the_penalty_vanishes_also_beside_weights_it_does_not_see(name, penalty):
    model, data_term = loss(name)
    points = path(csr.Problem(model, data_term + DIFFERENCES[penalty]), n_points=5)
    assert points.gaps.max() <= 1e-6
    assert DIFFERENCES[penalty](points[0].coef) < 1e-4
    later = path(csr.Problem(model, data_term + DIFFERENCES[penalty]), strengths=[0.5 * points.strengths[0]])
    assert DIFFERENCES[penalty](later[0].coef) > 1e-3


@pytest.mark.parametrize("name", ["squared", "huber", "absolute", "quantile", "poisson"])
@pytest.mark.parametrize("penalty", sorted(HELD))
def test_a_path_of_terms_that_make_no_weights_zero_starts_with_a_weak_model(name, penalty):
    model, data_term = loss(name)
    problem = csr.Problem(model, data_term + HELD[penalty])
    points = path(problem, n_points=4, smallest=1e-4, terms=[1])
    assert points.gaps.max() <= 1e-6
    spread = [float(np.ptp(point.coef)) for point in (points[0], points[-1])]
    assert spread[0] < 0.15 * spread[1]


def test_a_path_without_a_start_names_the_remedy():
    model, data_term = loss("absolute")
    with pytest.raises(ValueError, match=r"beside bounds.*add csr.L1\(\).*give strengths="):
        path(csr.Problem(model, data_term + csr.TrendFilter(2) + csr.NonNegative()))
    mixed = csr.Problem(model, data_term + csr.TrendFilter(2) + csr.L1([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match=r"not smooth.*scale it too"):
        path(mixed, terms=[1])
    X, y = data()
    with pytest.raises(ValueError, match="only bounds act on the weights"):
        csr.StructuredRegressor(csr.NonNegative()).path(X, y)
