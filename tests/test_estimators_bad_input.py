"""Errors of the estimators: what was given, what was expected, what to do."""

import numpy as np
import pytest
from estimator_cases import CASES, GRAPH, data, make

from cvxstructreg import Graph, Groups
from cvxstructreg.estimators import (
    DissimilaritySVC,
    FeatureNetworkClassifier,
    GroupLassoClassifier,
    LaplacianElasticNetClassifier,
    LaplacianElasticNetRegressor,
    MixedGraphClassifier,
)

X, Y = data("FeatureNetworkClassifier")
DIRECTED = Graph.from_edges([(0, 1)], n_nodes=5, directed=True)

BAD = [
    (FeatureNetworkClassifier(alpha=-1.0), "alpha must be finite and at least 0, got -1.0"),
    (FeatureNetworkClassifier(beta=float("nan")), "beta must be finite"),
    (FeatureNetworkClassifier(alpha="1"), "alpha must be a number"),
    (FeatureNetworkClassifier(GRAPH, signed="both"), "signed must be 'separate' or 'joint', got 'both'"),
    (FeatureNetworkClassifier("knn"), "graph must be a Graph, a square matrix, pairs"),
    (FeatureNetworkClassifier(np.ones((5, 4))), "square matrix"),
    (FeatureNetworkClassifier(class_weight="even"), "class_weight must be None, 'balanced' or a dict"),
    (FeatureNetworkClassifier(class_weight={7: 1.0}), "class_weight contains 7, but the classes in y are"),
    (FeatureNetworkClassifier(class_weight={0: -1.0}), "at least 0"),
    (FeatureNetworkClassifier(class_weight=3), "class_weight must be None"),
    (FeatureNetworkClassifier(fit_intercept="yes"), "fit_intercept must be True or False"),
    (FeatureNetworkClassifier(solver="magic"), "there is no solver 'magic'"),
    (FeatureNetworkClassifier(tol=0.0), "tol must be positive"),
    (FeatureNetworkClassifier(solver_options={"speed": 1}), "no option 'speed'"),
    (LaplacianElasticNetClassifier(DIRECTED), "graph.symmetrized()"),
    (LaplacianElasticNetClassifier(normalized=1), "normalized must be True or False"),
    (LaplacianElasticNetRegressor(lam2=-3.0), "lam2 must be finite"),
    (GroupLassoClassifier([[0, 9]]), "out of range"),
    (GroupLassoClassifier([0, 1]), "not a list of features"),
    (GroupLassoClassifier("words"), "groups must be a Groups, a list of lists, a dict"),
    (GroupLassoClassifier(Groups([[0, 1]], n_features=2)), "groups .* has 2 features, X has 5 columns"),
    (GroupLassoClassifier(Groups([["a"]], feature_names=["a"])), "vocabulary=groups.feature_names"),
    (GroupLassoClassifier(group_weights=[1.0]), "one weight per group"),
    (GroupLassoClassifier(solver="sentence_admm", max_iter=0), "max_iter must be a positive integer"),
    (GroupLassoClassifier(solver="sentence_admm", max_iter=3, rho=-1.0), "rho and w_tol must be positive"),
    (GroupLassoClassifier(solver="sentence_admm", max_iter=3, solver_options={"speed": 1}), "no option 'speed'"),
    (MixedGraphClassifier(loss="absolute"), "loss must be 'hinge'"),
    (MixedGraphClassifier("nearest"), "graph must be 'knn'"),
    (MixedGraphClassifier(GRAPH), "one node for each row given to fit"),
    (MixedGraphClassifier(graph_options={"n_neighbors": 3}), "graph_options is only used with graph='knn'"),
    (MixedGraphClassifier("knn", graph_options={"n_neighbors": 0}), "n_neighbors"),
    (MixedGraphClassifier("knn", graph_on="weights"), "graph_on must be 'scores' or 'function'"),
    (MixedGraphClassifier(kernel="magic"), "kernel must be one of"),
    (MixedGraphClassifier(kernel=lambda A, B: A), "must be a matrix of shape"),
    (MixedGraphClassifier(kernel="precomputed"), "square matrix"),
    (MixedGraphClassifier(pairs=[(0, 99)]), "pairs contain 1 row not among the 30 rows of X"),
    (MixedGraphClassifier(pairs=[(0,)]), "two rows each"),
    (DissimilaritySVC([(0, 0)]), "itself"),
    (DissimilaritySVC(power=3, pairs=[(0, 1)]), "power"),
    (DissimilaritySVC(graph=Graph.from_edges([(0, 1)], [-1.0], n_nodes=30)), "pass them as pairs="),
]


@pytest.mark.parametrize(("model", "message"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_bad_parameters(model, message):
    with pytest.raises((TypeError, ValueError), match=message.replace("(", r"\(").replace(")", r"\)")):
        model.fit(X, Y)


@pytest.mark.parametrize("name", sorted(CASES))
def test_bad_rows_and_weights(name):
    rows, y = data(name)
    model = make(name)
    for weights, message in [
        (-np.ones(30), "at least 0"),
        (np.full(30, np.nan), "NaN"),
        (np.ones(3), "inconsistent numbers of samples"),
        (np.ones((30, 2)), "1D"),
        (0.0, "zero everywhere"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(rows, y, sample_weight=weights)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(rows > 2, np.nan, rows), y)
    fitted = model.fit(rows, y, sample_weight=2.0)
    with pytest.raises(ValueError, match="X has 4 features"):
        fitted.predict(rows[:, :4])


@pytest.mark.parametrize("name", ["MixedGraphClassifier", "DissimilaritySVC"])
def test_bad_ids(name):
    rows, y = data(name)
    with pytest.raises(ValueError, match="29 ids, but X has 30 rows"):
        make(name).fit(rows, y, sample_ids=range(29))
    with pytest.raises(ValueError, match="same id twice"):
        make(name).fit(rows, y, sample_ids=[0] * 30)
    with pytest.raises(ValueError, match="missing must be"):
        make(name, missing="drop").fit(rows, y)
