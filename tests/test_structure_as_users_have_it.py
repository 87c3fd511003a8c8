"""Graphs and groups in every usual form, features in no group, models of zeros, and messages that name the remedy."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimator_cases import NAMES

import cvxstructreg as csr
from cvxstructreg.estimators.user_structure import with_singles

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(60, 5)), columns=NAMES)
Y = X["age"] + X["height"] + 0.3 * rng.normal(size=60)
LABELS = np.where(Y > 0, "up", "down")
EDGES = [("age", "height"), ("weight", "pulse")]
MATRIX = csr.Graph.from_edges([(0, 1), (2, 3)], [2.0, 0.5], n_nodes=5).weights

GRAPHS = {
    "graph": csr.Graph.from_edges(EDGES, [2.0, 0.5]),
    "triples": [(*EDGES[0], 2.0), (*EDGES[1], 0.5)],
    "numbers": [(0, 1, 2.0), (2, 3, 0.5)],
    "frame": pd.DataFrame({"a": ["age", "weight"], "b": ["height", "pulse"], "w": [2.0, 0.5]}),
    "mapping of pairs": {EDGES[0]: 2.0, EDGES[1]: 0.5},
    "mapping of neighbours": {"age": {"height": 2.0}, "height": {"age": 2.0}, "weight": {"pulse": 0.5}},
    "sparse": sp.csr_array(MATRIX),
    "dense": MATRIX.toarray(),
    "lists": MATRIX.toarray().tolist(),
    "networkx": nx.Graph([(*EDGES[0], {"weight": 2.0}), (*EDGES[1], {"weight": 0.5})]),
}


@pytest.mark.parametrize("form", sorted(GRAPHS))
def test_every_form_of_a_graph_gives_the_same_model(form):
    model = csr.FeatureNetworkRegressor(GRAPHS[form]).fit(X, Y)
    np.testing.assert_allclose(model.graph_.weights.toarray(), MATRIX.toarray())


def test_pairs_of_names_without_weights():
    model = csr.LaplacianElasticNetClassifier(EDGES).fit(X, LABELS)
    assert model.graph_.n_edges == 2 and model.graph_.weights.toarray()[0, 1] == 1.0


def test_sets_in_a_file(tmp_path):
    file = tmp_path / "sets.gmt"
    file.write_text("body\tx\tage\theight\nheart\tx\tpulse\tnoise\tunknown\n")
    model = csr.GroupLassoRegressor(file, missing="ignore", ungrouped="free").fit(X, Y)
    assert model.groups_.names == ("body", "heart") and model.groups_[1].tolist() == [3, 4]
    assert csr.FeatureNetworkRegressor(str(file)).fit(X, Y).graph_.n_edges == 2
    with pytest.raises(ValueError, match="X has none"):
        csr.FeatureNetworkRegressor(file).fit(X.to_numpy(), Y)
    with pytest.raises(ValueError, match=r"or a \.gmt file, got 'sets\.txt'"):
        csr.GroupLassoRegressor("sets.txt").fit(X, Y)


def test_every_form_of_groups():
    lists = {"body": ["age", "height", "weight"], "rest": ["weight", "pulse", "noise"]}
    table = pd.DataFrame([(name, member) for name, members in lists.items() for member in members])
    mask = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]], dtype=bool)
    for form in (lists, list(lists.values()), table, mask, sp.csr_array(mask), [[0, 1, 2], [2, 3, 4]]):
        groups = csr.GroupLassoRegressor(form).fit(X, Y).groups_
        assert [group.tolist() for group in groups] == [[0, 1, 2], [2, 3, 4]]


@pytest.mark.parametrize("missing", ["error", "ignore"])
def test_pairs_of_groups_and_features_name_the_remedy(missing):
    pairs = [("body", "age"), ("body", "height"), ("heart", "pulse")]
    with pytest.raises(ValueError, match=r"pairs \(group, feature\).*a dict .* or a data frame"):
        csr.GroupLassoRegressor(pairs, missing=missing).fit(X, Y)
    features = [("age", "height"), ("weight", "pulse")]
    assert csr.GroupLassoRegressor(features, ungrouped="free").fit(X, Y).groups_.n_groups == 2


@pytest.mark.parametrize("given", [3, "karate", object()])
def test_wrong_types_name_the_remedy(given):
    with pytest.raises((TypeError, ValueError), match=r"pairs of features|data frame of edges"):
        csr.FeatureNetworkRegressor(given).fit(X, Y)
    with pytest.raises((TypeError, ValueError), match="dict of lists"):
        csr.GroupLassoRegressor(given).fit(X, Y)


def test_names_are_inferred_from_pairs():
    graph = csr.Graph.from_edges([("good", "great"), ("good", "bad")], [1.0, -1.0])
    assert graph.names == ("good", "great", "bad") and graph.n_edges == 2
    assert csr.Graph.from_edges(np.array([["a", "b"]])).names == ("a", "b")
    assert csr.Graph.from_edges([(0, 2)]).names is None


def test_features_in_no_group():
    groups = {"body": ["age", "height"], "heart": ["pulse"]}
    with pytest.warns(csr.UngroupedWarning, match="2 of 5 features are in no group"):
        csr.GroupLassoRegressor(groups, lam_group=5.0).fit(X, Y)
    free = csr.GroupLassoRegressor(groups, lam_group=5.0, ungrouped="free").fit(X, Y)
    single = csr.GroupLassoRegressor(groups, lam_group=5.0, ungrouped="single").fit(X, Y)
    assert free.groups_.n_groups == 2 and single.groups_.n_groups == 4
    assert single.groups_.covered.all() and single.groups_.names == ("body", "heart", "weight", "noise")
    by_hand = csr.GroupLassoRegressor({**groups, "weight": ["weight"], "noise": ["noise"]}, lam_group=5.0).fit(X, Y)
    assert abs(single.objective_ - by_hand.objective_) <= single.certificate_.gap + by_hand.certificate_.gap
    assert {row.name for row in single.selected_groups()} <= {"body", "heart", "weight", "noise"}
    csr.GroupLassoRegressor(groups, lam_l1=0.1).fit(X, Y)  # the L1 term penalises all features: no warning
    with pytest.raises(ValueError, match="ungrouped must be"):
        csr.GroupLassoRegressor(groups, ungrouped="drop").fit(X, Y)


def test_singles_keep_member_weights():
    groups = csr.Groups([[1, 2]], n_features=4, member_weights=[[2.0, 3.0]])
    assert with_singles(groups).member_weights.tolist() == [2.0, 3.0, 1.0, 1.0]
    assert with_singles(with_singles(groups)).n_groups == 3


def test_models_of_zeros_name_the_strength():
    problem = csr.Problem(csr.Linear(X.to_numpy()), csr.Squared(Y) + 100.0 * csr.L1())
    factor = csr.lambda_max(problem)
    with pytest.warns(csr.AllZeroWarning, match=f"lambda_max is {factor:.3g} times"):
        csr.StructuredRegressor(100.0 * csr.L1()).fit(X, Y)
    with pytest.warns(csr.AllZeroWarning, match="LaplacianElasticNetClassifierCV"):
        csr.LaplacianElasticNetClassifier(lam1=500.0).fit(X, LABELS)
    csr.StructuredRegressor(0.99 * factor * 100.0 * csr.L1()).fit(X, Y)


def test_three_labels_and_misspelled_options():
    with pytest.raises(ValueError, match=r"use Multinomial\(y\)"):
        csr.Logistic([0, 1, 2])
    problem = csr.Problem(csr.Linear(X.to_numpy()), csr.Squared(Y) + csr.L1())
    with pytest.raises(TypeError, match="did you mean 'max_iter'"):
        problem.solve(maxiter=3)
    with pytest.raises(ValueError, match="did you mean 'working_set'"):
        problem.solve(solver="workingset")


def test_the_joint_multinomial_laplacian_elastic_net():
    labels = np.digitize(Y, [-0.7, 0.7])
    joint = csr.LaplacianElasticNetClassifier(EDGES, lam1=2.0, multi_class="multinomial").fit(X, labels)
    assert joint.coef_.shape == (3, 5) and not isinstance(joint.solution_, tuple)
    assert joint.certificate_.relative_gap <= 1e-6
    np.testing.assert_allclose(joint.predict_proba(X).sum(axis=1), 1.0)
    graph = csr.Graph.from_edges([(0, 1), (2, 3)], n_nodes=5)
    objective = csr.Multinomial(labels) + 2.0 * csr.L1() + 0.5 * csr.Laplacian(graph, normalized=True)
    reference = csr.Problem(csr.Linear(X.to_numpy()), objective).solve(solver="cvxpy")
    assert abs(reference.objective - joint.objective_) <= reference.certificate.gap + joint.certificate_.gap + 1e-9
    with pytest.raises(ValueError, match="multi_class must be"):
        csr.LaplacianElasticNetClassifier(multi_class="ovr").fit(X, labels)


def test_generic_estimators_warn_of_features_that_nothing_penalises():
    pair = csr.GroupLasso([["age", "height"]])
    with pytest.warns(csr.UngroupedWarning, match=r"3 of 5 features are in no group.*csr.L1\(\)"):
        csr.StructuredRegressor(pair).fit(X, Y)
    graph = csr.Laplacian([("pulse", "weight"), ("weight", NAMES[4])])
    for penalty in (pair + csr.L1(), pair + csr.Ridge(), pair + graph, csr.FusedLasso(EDGES)):  # no warning
        csr.StructuredRegressor(penalty).fit(X, Y)
    with pytest.warns(csr.UngroupedWarning, match="1 of 5 features"):
        csr.StructuredRegressor(pair + csr.Laplacian([("pulse", "weight")])).fit(X, Y)


@pytest.mark.parametrize("empty", [[], (), {}])
def test_an_empty_graph_names_the_remedy(empty):
    with pytest.raises(ValueError, match=r"got an empty \w+.*from_edges\(\[\], n_nodes=d\), or leave the graph out"):
        csr.LaplacianElasticNetClassifier(empty).fit(X, LABELS)
    with pytest.raises(ValueError, match="Laplacian needs a graph, got an empty"):
        csr.Laplacian(empty)
