"""Graphs and groups as users have them: matrices, pairs, tables, networks, lists, mappings."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import cvxstructreg as csr

CHAIN = csr.Graph.from_edges([(0, 1), (1, 2)], [2.0, 1.0])
W = CHAIN.weights.toarray()
NAMES = ["a", "b", "c"]
GRAPHS = {
    "graph": CHAIN,
    "matrix": W,
    "sparse": sp.csr_array(W),
    "frame of weights": pd.DataFrame(W),
    "named frame": pd.DataFrame(W, index=NAMES, columns=NAMES),
    "triples": [(0, 1, 2.0), (1, 2, 1.0)],
    "array of triples": np.array([[0, 1, 2.0], [1, 2, 1.0], [0, 2, 0.0]])[:2],
    "edge table": pd.DataFrame({"from": [0, 1], "to": [1, 2], "weight": [2.0, 1.0]}),
    "named edge table": pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "weight": [2.0, 1.0]}),
    "network": nx.Graph([(0, 1, {"weight": 2.0}), (1, 2, {"weight": 1.0})]),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("penalty", [csr.FusedLasso, csr.Laplacian, csr.FeatureNetwork])
def test_penalties_take_any_form_of_a_graph(name, penalty):
    w = np.array([1.0, -2.0, 0.5])
    assert penalty(GRAPHS[name])(w) == pytest.approx(penalty(CHAIN)(w))


def test_pairs_have_weight_one_and_names_are_kept():
    pairs = csr.Graph.from_edges([(0, 1), (1, 2)])
    for given in ([(0, 1), (1, 2)], [[0, 1], [1, 2]], {(0, 1), (1, 2)}, pd.DataFrame({"i": [0, 1], "j": [1, 2]})):
        assert np.array_equal(csr.FusedLasso(given).graph.weights.toarray(), pairs.weights.toarray())
    assert csr.FusedLasso(GRAPHS["named edge table"]).row_names == ("a", "b", "c")


def test_groups_as_lists_mappings_and_matrices():
    groups, w = csr.Groups([[0, 1], [1, 2]]), np.array([3.0, 4.0, 0.0])
    member = np.array([[True, True, False], [False, True, True]])
    given = ([[0, 1], [1, 2]], [(0, 1), range(1, 3)], [{1, 0}, {2, 1}], {"x": [0, 1], "y": [1, 2]}, member)
    for form in (*given, sp.csr_array(member.astype(float))):
        for penalty in (csr.GroupLasso, csr.LatentGroupLasso):
            assert penalty(form)(w) == pytest.approx(penalty(groups)(w))
    assert csr.GroupLasso({"x": [0, 1], "y": [1, 2]}).groups.names == ("x", "y")


def test_features_beyond_the_last_group_or_edge_have_a_remedy():
    model, loss = csr.Linear(np.eye(4)), csr.Squared(np.ones(4))
    with pytest.raises(ValueError, match=r"Groups\(lists, n_features=4\)"):
        csr.Problem(model, loss + csr.GroupLasso([[0, 1], [2]]))
    with pytest.raises(ValueError, match=r"Graph.from_edges\(pairs, n_nodes=4\)"):
        csr.Problem(model, loss + csr.FusedLasso([(0, 1)]))


def test_data_frames_keep_their_names():
    X = pd.DataFrame(np.eye(3), columns=NAMES)
    model = csr.Linear(X)
    assert model.feature_names == ("a", "b", "c")
    assert csr.Linear(np.eye(3)).feature_names is None and csr.Linear(pd.DataFrame(np.eye(3))).feature_names is None
    loss = csr.Squared([1.0, 2.0, 3.0])
    problem = csr.Problem(model, loss + csr.L1())
    assert problem.feature_names == ("a", "b", "c")
    assert csr.Problem(model, loss + csr.FusedLasso(GRAPHS["named frame"])).feature_names == ("a", "b", "c")


def test_features_are_found_by_name():
    X = pd.DataFrame(np.arange(20.0).reshape(4, 5) % 7, columns=["a", "b", "c", "d", "e"])
    model, loss = csr.Linear(X), csr.Squared([1.0, 2.0, 3.0, 0.0])
    edges = csr.Graph.from_edges([(3, 1), (1, 0)], [2.0, 1.0], n_nodes=5)
    pairs = [("d", "b", 2.0), ("b", "a", 1.0)]
    given = (pairs, pd.DataFrame(pairs), nx.Graph([("d", "b", {"weight": 2.0}), ("b", "a")]))
    for form in given:
        for penalty in (csr.FusedLasso, csr.Laplacian, csr.FeatureNetwork, csr.HuberDifferences):
            problem = csr.Problem(model, loss + penalty(form))
            assert problem.feature_names == tuple("abcde")
            assert problem.value(np.arange(5.0)) == csr.Problem(model, loss + penalty(edges)).value(np.arange(5.0))
    numbers = csr.Groups([[3, 1], [1, 4]], n_features=5, weights=[1.0, 3.0])
    for form in ([["d", "b"], ["b", "e"]], {"x": ["d", "b"], "y": {"b", "e"}}):
        for penalty in (csr.GroupLasso, csr.LatentGroupLasso):
            named = csr.Problem(model, loss + penalty(form, weights=[1.0, 3.0]))
            assert named.value(np.arange(5.0)) == pytest.approx(
                csr.Problem(model, loss + penalty(numbers)).value(np.arange(5.0))
            )
    with pytest.raises(ValueError, match="has the feature 'z', which is no column of the data"):
        csr.Problem(model, loss + csr.FusedLasso([("a", "z")]))
    for unnamed in (
        csr.GroupLasso([["a", "b"], ["c"], ["d", "e"]], weights=2.0),
        csr.FusedLasso([*pairs, ("c", "e", 1.0)]),
    ):
        with pytest.raises(ValueError, match="has names of features, but the data have none"):
            csr.Problem(csr.Linear(X.to_numpy()), loss + unnamed)


@pytest.mark.parametrize("name", GRAPHS)
def test_differences_take_any_form_of_a_graph(name):
    form = GRAPHS[name]
    assert np.array_equal(csr.differences(form, order=2).toarray(), csr.differences(CHAIN, order=2).toarray())
    w = np.array([1.0, -2.0, 0.5])
    assert csr.TrendFilter(2, form)(w) == csr.TrendFilter(2, CHAIN)(w)
    assert csr.HuberDifferences(form)(w) == csr.HuberDifferences(CHAIN)(w)
    with pytest.raises(TypeError, match=r"use FusedLasso\(graph\)"):
        csr.TotalVariation(form)
