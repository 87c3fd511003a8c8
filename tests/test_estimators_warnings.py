"""Warnings of estimators about models of zeros and about problems without a minimiser."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import cvxstructreg as csr

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=60)
LABELS = np.where(Y > 0, "up", "down")
PAIRS = csr.Groups([[0, 1], [2, 3]], n_features=4)


@pytest.mark.parametrize("loss", ["quantile", "absolute", "hinge"])
@pytest.mark.parametrize(
    "penalty",
    [
        csr.L1(),
        csr.GroupLasso(PAIRS),
        csr.SLOPE.bh(4),
        csr.NuclearNorm(),
        csr.L1() + csr.Ridge(),
        csr.L1() + csr.ExclusiveLasso(PAIRS),
        csr.FromExpression(lambda w: cp.norm(w, 2)),
    ],
    ids=["L1", "groups", "SLOPE", "nuclear", "elastic net", "exclusive", "expression"],
)
def test_models_of_zeros_with_kinks_name_an_upper_bound(loss, penalty):
    estimator = csr.StructuredClassifier if loss == "hinge" else csr.StructuredRegressor
    target = LABELS if loss == "hinge" else Y
    with pytest.warns(csr.AllZeroWarning, match="lambda_max is at most .* times the strengths given") as caught:
        estimator(1e4 * penalty, loss=loss).fit(X, target)
    bound = float(str(caught[0].message).split("at most ")[1].split(" times")[0])
    with pytest.warns(csr.AllZeroWarning):
        estimator(1.01 * bound * 1e4 * penalty, loss=loss).fit(X, target)


def test_models_of_zeros_without_a_known_strength():
    penalty = csr.L1() + csr.ExclusiveLasso(PAIRS)
    with pytest.warns(csr.AllZeroWarning, match="too strong. Multiply the strengths by less than 1"):
        csr.StructuredRegressor(1e4 * penalty).fit(X, Y)
    for loss in ("squared", "absolute"):  # nothing to explain: not because of the penalty
        assert not csr.StructuredRegressor(1e4 * penalty, loss=loss).fit(X, np.ones(len(X))).coef_.any()


@pytest.mark.parametrize(
    "model",
    [
        csr.StructuredClassifier(0.0 * csr.L1()),
        csr.FeatureNetworkClassifier([(1, 2)], alpha=0.0, beta=0.0),
        csr.LaplacianElasticNetClassifier([(1, 2)], lam1=0.0, lam2=0.0),
        csr.GroupLassoClassifier([[1, 2]], ungrouped="free"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_separated_classes_have_no_minimiser_in_estimators(model):
    data = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.warns(csr.NoMinimiserWarning, match="features 0.* separates the classes.*Penalise these") as caught:
        model.fit(data, data[:, 0] > 0)
    assert len(caught) == 1 and issubclass(caught[0].category, ConvergenceWarning)
    assert "max_iter" not in str(caught[0].message) and caught[0].filename == __file__


def test_separated_classes_have_no_minimiser_in_cross_validation():
    data = np.random.default_rng(0).normal(size=(60, 4))
    model = csr.GroupLassoClassifierCV([[1, 2]], ungrouped="free", strengths=[3.0, 1.0], cv=3)
    with pytest.warns(csr.NoMinimiserWarning, match="points of the paths have no minimiser: .*features 0") as caught:
        model.fit(data, data[:, 0] > 0)
    assert not any("max_iter" in str(item.message) for item in caught)
