"""Stability selection, features of all folds, degrees of freedom against the numerical divergence, and criteria."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cvxstructreg as csr
from cvxstructreg.selection import across_folds, degrees_of_freedom, information_criteria, stability
from cvxstructreg.selection.stability import complementary_halves, error_bounds

GROUPS = csr.Groups([[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7]], n_features=8)
GRAPH = csr.Graph.from_edges([(j, j + 1) for j in range(7)], n_nodes=8)
PENALTIES = {
    "lasso": 3.0 * csr.L1(),
    "ridge": 2.0 * csr.Ridge(),
    "overlapping groups": 2.0 * csr.GroupLasso(GROUPS),
    "sparse groups": 1.5 * csr.GroupLasso(GROUPS) + 1.0 * csr.L1(),
    "laplacian elastic net": 2.0 * csr.L1() + 3.0 * csr.Laplacian(GRAPH),
    "fused": 2.0 * csr.FusedLasso(GRAPH) + 1.0 * csr.L1(),
    "total variation": 2.0 * csr.TotalVariation(8),
    "bounds": csr.NonNegative() + 0.5 * csr.L1(),
}


def rows(n=40, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, 1] - 0.5 * X[:, 4] + rng.normal(size=n)


@pytest.mark.parametrize("name", sorted(PENALTIES))
def test_degrees_of_freedom_are_the_numerical_divergence(name):
    X, y = rows()

    def solve(target):
        problem = csr.Problem(csr.Linear(X), csr.Squared(target) + PENALTIES[name])
        return problem.solve(tol=1e-12)

    found = solve(y)
    step, divergence = 1e-4, 0.0
    for i in range(len(y)):
        move = step * (np.arange(len(y)) == i)
        divergence += (solve(y + move).scores[i] - solve(y - move).scores[i]) / (2.0 * step)
    assert degrees_of_freedom(found) == pytest.approx(divergence, abs=2e-3)


def test_known_degrees_of_freedom():
    X, y = rows()
    lasso = csr.Problem(csr.Linear(X), csr.Squared(y) + 8.0 * csr.L1()).solve(tol=1e-10)
    assert degrees_of_freedom(lasso) == pytest.approx(np.count_nonzero(lasso.coef) + 1)  # and the intercept
    ridge = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 2.0 * csr.Ridge()).solve(tol=1e-10)
    hat = X @ np.linalg.solve(X.T @ X + 4.0 * np.eye(8), X.T)
    assert degrees_of_freedom(ridge) == pytest.approx(np.trace(hat))
    zero = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 1e4 * csr.L1()).solve()
    assert degrees_of_freedom(zero) == 0.0


def test_degrees_of_freedom_of_other_losses_and_estimators():
    X, y = rows()
    model = csr.GroupLassoClassifier(GROUPS, lam_group=0.5, tol=1e-10).fit(X, y > 0)
    inside = degrees_of_freedom(model)
    assert 1.0 < inside <= np.count_nonzero(model.coef_) + 1
    assert degrees_of_freedom(make_pipeline(StandardScaler(), csr.StructuredRegressor(csr.L1())).fit(X, y)) > 1.0


def test_criteria():
    X, y = rows(80)
    found = csr.Problem(csr.Linear(X), csr.Squared(y) + 5.0 * csr.L1()).solve(tol=1e-10)
    result = information_criteria(found, gamma=1.0)
    residuals = y - found.scores
    deviance = 80 * np.log(residuals @ residuals / 80)
    df, s = np.count_nonzero(found.coef) + 1, np.count_nonzero(found.coef)
    assert result.degrees_of_freedom == pytest.approx(df) and result.n == 80
    assert result.aic == pytest.approx(deviance + 2 * df)
    assert result.bic == pytest.approx(deviance + np.log(80) * df)
    from math import comb

    assert result.ebic == pytest.approx(result.bic + 2 * np.log(comb(8, s)))
    logistic = csr.Problem(csr.Linear(X), csr.Logistic(y > 0) + 3.0 * csr.L1()).solve(tol=1e-10)
    value = csr.Logistic(y > 0).value(logistic.scores)
    assert information_criteria(logistic).deviance == pytest.approx(2.0 * value)
    cox = csr.Cox(np.exp(-y), event=np.arange(80) % 2 == 0)
    survival = csr.Problem(csr.Linear(X, intercept=False), cox + 2.0 * csr.L1()).solve(tol=1e-10)
    assert information_criteria(survival).n == 40


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda X, y: degrees_of_freedom(3), TypeError, "expected a Solution"),
        (lambda X, y: degrees_of_freedom(_solved(X, csr.Absolute(y) + csr.L1())), ValueError, "has kinks"),
        (lambda X, y: degrees_of_freedom(_solved(X, csr.Squared(y) + csr.SLOPE.bh(8))), ValueError, "is not known"),
        (lambda X, y: information_criteria(_solved(X, csr.Huber(y) + csr.L1())), ValueError, "no likelihood"),
        (
            lambda X, y: information_criteria(_solved(X, csr.Multinomial(np.arange(40) % 3) + csr.L1())),
            ValueError,
            "cross-v",
        ),
        (lambda X, y: information_criteria(_solved(X, csr.Squared(y)), gamma=2), ValueError, "gamma must be"),
        (lambda X, y: stability(Lasso(), X, y, 0), ValueError, "n_resamples"),
        (lambda X, y: stability(Lasso(), X, y, threshold=0.5), ValueError, "above 0.5"),
        (lambda X, y: stability(StandardScaler(), X, y), TypeError, "has no coef_"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call(*rows())


def test_criteria_refuse_problems_without_minimiser_and_warn_of_early_stops():
    X, y = rows()
    with pytest.warns(csr.NoMinimiserWarning):
        separated = csr.Problem(csr.Linear(X), csr.Logistic(X[:, 0] > 0)).solve()
    for call in (degrees_of_freedom, information_criteria):
        with pytest.raises(ValueError, match=r"no minimiser: the direction of features 0.*add a penalty"):
            call(separated)
    with pytest.warns(csr.InaccurateWarning):
        early = csr.Problem(csr.Linear(X), csr.Logistic(y > 0) + csr.L1()).solve("fista", max_iter=2)
    for call in (degrees_of_freedom, information_criteria):
        with pytest.warns(csr.InaccurateWarning, match="those of an optimum, but .* 'max_iter'") as caught:
            call(early)
        assert len(caught) == 1 and caught[0].filename == __file__


def _solved(X, objective):
    return csr.Problem(csr.Linear(X), objective).solve()


def test_halves_are_disjoint_and_stratified():
    labels = np.array([0] * 7 + [1] * 4)
    first, second = complementary_halves(labels, np.random.RandomState(0))
    assert not set(first) & set(second)
    assert np.bincount(labels[first]).tolist() == np.bincount(labels[second]).tolist() == [3, 2]
    with pytest.raises(ValueError, match="one row only"):
        complementary_halves(np.array([0, 0, 1]), np.random.RandomState(0))


def test_bounds_of_the_theorems():
    # q = 20 of p = 1000 features on a half: theta = 0.02
    worst, unimodal = error_bounds(0.7, 20.0, 1000, 50)
    assert worst == pytest.approx(0.02 * 20 / 0.4)
    assert unimodal == pytest.approx(0.02 * 20 / (2 * (0.4 - 0.01)))
    assert error_bounds(0.9, 20.0, 1000, 50)[1] == pytest.approx(0.02 * 20 * 4 * (0.1 + 0.01) / 1.02)
    assert error_bounds(0.9, 700.0, 1000, 50)[1] == np.inf  # theta is too large for theorem 2


def test_stable_features_are_found_and_noise_stays_below_the_bound():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(120, 40)), columns=[f"gene {j}" for j in range(40)])
    y = 1.5 * X["gene 3"] - 1.5 * X["gene 7"] + rng.normal(size=120)
    result = stability(csr.StructuredRegressor(20.0 * csr.L1()), X, y, 15, threshold=0.8, random_state=0)
    assert {"gene 3", "gene 7"} <= set(result.selected)
    assert result.frequencies["gene 3"] == 1.0 and result.n_features == 40
    assert len(set(result.selected) - {"gene 3", "gene 7"}) <= 1 + result.error_bound
    again = stability(csr.StructuredRegressor(20.0 * csr.L1()), X, y, 15, threshold=0.8, random_state=0)
    assert again.frequencies == result.frequencies
    assert result.at(0.9).error_bound < result.error_bound
    assert "features selected" in repr(result) and "gene 3" in result._repr_html_()
    labels = np.where(y > 0, "up", "down")
    model = make_pipeline(StandardScaler(), csr.LaplacianElasticNetClassifier(lam1=5.0))
    assert {"x3", "x7"} <= set(stability(model, X, labels, 5, random_state=0).selected)
    assert {"gene 3", "gene 7"} <= set(stability(Lasso(0.3), X, y, 5, random_state=0).selected)


def test_features_of_all_folds():
    X, y = rows(80)
    found = across_folds(csr.LaplacianElasticNetRegressor(lam1=15.0), X, y, cv=4)
    assert {"x0", "x1"} <= set(found.in_all) and found.n_folds == 4
    assert all(1 <= count <= 4 for count in found.counts.values())
    assert "in all 4 folds" in repr(found)


def test_arguments_of_fit_for_each_row_are_cut_like_the_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    noise = np.arange(60) % 2 == 1
    y = np.where(noise, rng.normal(size=60), 3.0 * X[:, 0])
    names, weights = ["a", "b", "c", "d"], np.where(noise, 0.0, 1.0)
    lasso = csr.StructuredRegressor(5.0 * csr.L1())
    found = stability(lasso, X, y, 5, random_state=0, sample_weight=weights, feature_names=names)
    assert found.selected == ["a"] and set(found.frequencies) <= set(names)
    for form in (weights, list(weights), pd.Series(weights)):
        assert across_folds(lasso, X, y, cv=3, sample_weight=form, feature_names=names).counts == {"a": 3}
    pipe = make_pipeline(StandardScaler(), lasso)
    assert across_folds(pipe, X, y, cv=3, structuredregressor__sample_weight=weights).counts == {"x0": 3}
    times = np.column_stack([rng.exponential(np.exp(-2.0 * X[:, 0])), np.ones(60)])
    cox = csr.StructuredRegressor(3.0 * csr.L1(), loss="cox")
    assert "x0" in stability(cox, X, times, 3, random_state=0, strata=np.arange(60) % 2).selected
    weak = csr.StructuredRegressor(1e-3 * csr.L1())
    square = stability(weak, X[:4], y[:4], 1, random_state=0, feature_names=names)  # as many columns as rows
    assert set(square.frequencies) <= set(names)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        stability(lasso, X, y, 1, sample_weight=weights[:-1])


def test_criteria_of_a_model_without_its_data_name_the_remedy():
    X = np.random.default_rng(0).normal(size=(30, 4))
    model = csr.GroupLassoRegressor([[0, 1], [2, 3]]).fit(X, X[:, 0])
    alone = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match=r"attach_data\(X, y\)"):
        information_criteria(alone)
    assert information_criteria(alone.attach_data(X, X[:, 0])).aic < np.inf
