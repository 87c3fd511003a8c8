"""Estimators on data in blocks of rows: the same models as in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.graphs import CooccurrenceGraph

N, D = 120, 10
RNG = np.random.default_rng(0)
X = np.where(RNG.random((N, D)) < 0.5, RNG.normal(size=(N, D)), 0.0)
Z = X[:, :3].sum(axis=1) + 0.5 * RNG.normal(size=N)
Y = np.where(Z > 0, "yes", "no")
GROUPS = csr.Groups([[0, 1, 2], [2, 3, 4, 5], [6, 7, 8, 9]], n_features=D)
CHAIN = csr.Graph.from_edges([(j, j + 1) for j in range(D - 1)], n_nodes=D)
PARTS = [X[first : first + 20] for first in range(0, N, 20)]

ESTIMATORS = [
    (csr.GroupLassoClassifier(GROUPS, lam_group=0.5, lam_l1=0.2, tol=1e-9), Y),
    (csr.GroupLassoRegressor(GROUPS, lam_group=0.5, lam_l1=0.2, tol=1e-9), Z),
    (csr.LaplacianElasticNetClassifier(CHAIN, tol=1e-9), Y),
    (csr.LaplacianElasticNetRegressor(CHAIN, tol=1e-9), Z),
    (csr.FeatureNetworkClassifier(CHAIN, tol=1e-9), Y),
    (csr.GroupLassoClassifier(GROUPS, lam_group=0.5, tol=1e-9), np.digitize(Z, [-0.5, 0.5])),
]


@pytest.mark.parametrize("number", range(len(ESTIMATORS)))
def test_estimators_fit_blocks_as_memory(number):
    estimator, y = ESTIMATORS[number]
    expected = estimator.fit(X, y)
    weights, scores = expected.coef_.copy(), expected.predict(X)
    found = estimator.fit(csr.RowBlocks(PARTS), y)
    np.testing.assert_allclose(found.coef_, weights, atol=2e-4)
    assert found.certificate_.data.n_rows == N
    predicted = found.predict(PARTS)
    if predicted.dtype.kind == "f":
        np.testing.assert_allclose(predicted, scores, atol=2e-3)
    else:
        assert np.mean(predicted == scores) > 0.98


def test_labels_and_weights_of_a_folder_are_used(tmp_path):
    weights = RNG.uniform(0.5, 1.5, size=N)
    path = csr.io.write_blocks(tmp_path, sp.csr_array(X), y=Y, sample_weight=weights, rows_per_block=20)
    found = csr.GroupLassoClassifier(GROUPS, tol=1e-9).fit(path, None)
    expected = csr.GroupLassoClassifier(GROUPS, tol=1e-9).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=2e-4)
    with pytest.raises(ValueError, match="the blocks have no labels"):
        csr.GroupLassoClassifier(GROUPS).fit(PARTS, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        csr.GroupLassoClassifier(GROUPS).fit(PARTS, Y[:-1])
    with pytest.raises(ValueError, match="X has 9 features, but GroupLassoClassifier is expecting 10"):
        found.predict([X[:, :9]])
    with pytest.raises(TypeError, match="cannot be fitted on blocks of rows; fit it on a sample"):
        csr.FeatureNetworkClassifier(CooccurrenceGraph()).fit(PARTS, Y)


def test_cross_validation_takes_whole_blocks_as_folds():
    folds = [
        (np.flatnonzero(np.arange(N) // 20 % 3 != f), np.flatnonzero(np.arange(N) // 20 % 3 == f)) for f in range(3)
    ]
    how = {"n_strengths": 4, "tol": 1e-8}
    expected = csr.GroupLassoClassifierCV(GROUPS, cv=folds, **how).fit(X, Y)
    found = csr.GroupLassoClassifierCV(GROUPS, cv=3, **how).fit(PARTS, Y)
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-9)
    assert found.best_index_ == expected.best_index_
    with pytest.raises(ValueError, match="cv=9 folds need at least as many blocks"):
        csr.GroupLassoClassifierCV(GROUPS, cv=9, **how).fit(PARTS, Y)
    halves = [(np.arange(N // 2 + 5), np.arange(N // 2 + 5, N))]
    with pytest.raises(ValueError, match="a fold has a part of a block"):
        csr.GroupLassoClassifierCV(GROUPS, cv=halves, **how).fit(PARTS, Y)
