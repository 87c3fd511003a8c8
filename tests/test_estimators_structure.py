"""Graphs and groups by name or by column: aligned to X, never silently misaligned."""

import numpy as np
import pandas as pd
import pytest
from estimator_cases import GRAPH, NAMES, data
from sklearn import config_context
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline

from cvxstructreg import Graph, Groups
from cvxstructreg.datasets import load_corpus
from cvxstructreg.estimators import (
    DissimilaritySVC,
    FeatureNetworkClassifier,
    FeatureNetworkClassifierCV,
    GroupLassoClassifier,
    GroupLassoRegressor,
    LaplacianElasticNetClassifier,
    LaplacianElasticNetRegressor,
    MixedGraphClassifier,
)
from cvxstructreg.graphs import CooccurrenceGraph, NeighborGraph, SeedCorrelationGraph
from cvxstructreg.groups import LSIGroups, SentenceGroups

# the models here are small, and some of their strengths are large
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::cvxstructreg.{name}")
    for name in ("UngroupedWarning", "AllZeroWarning", "GridEdgeWarning")
]
NAMED = Graph(GRAPH.weights, names=NAMES)
ORDER = [3, 0, 4, 2, 1]
GRAPH_ESTIMATORS = [FeatureNetworkClassifier, LaplacianElasticNetClassifier, LaplacianElasticNetRegressor]


def table(estimator=FeatureNetworkClassifier, order=None):
    X, y = data(estimator.__name__)
    frame = pd.DataFrame(X, columns=NAMES)
    return (frame if order is None else frame[[NAMES[j] for j in order]]), y


@pytest.mark.parametrize("estimator", GRAPH_ESTIMATORS)
def test_a_named_graph_follows_the_columns(estimator):
    X, y = table(estimator)
    shuffled, _ = table(estimator, ORDER)
    straight = estimator(NAMED, tol=1e-12).fit(X, y)
    moved = estimator(NAMED, tol=1e-12).fit(shuffled, y)
    np.testing.assert_allclose(np.atleast_2d(moved.coef_), np.atleast_2d(straight.coef_)[:, ORDER], atol=1e-5)
    unnamed = estimator(GRAPH, tol=1e-12).fit(X.to_numpy(), y)
    np.testing.assert_allclose(unnamed.coef_, straight.coef_, atol=1e-5)


def test_columns_without_a_node_are_tied_to_nothing():
    X, y = table()
    graph = Graph.from_edges([("height", "age")], names=["height", "age"])
    model = FeatureNetworkClassifier(graph).fit(X, y)
    used = model.solution_.problem.terms[1].atom.graph
    assert used.names == tuple(NAMES)
    assert used.weights.toarray()[0, 1] == 1.0
    assert used.n_edges == 1


def test_virtual_nodes_stay_after_the_columns():
    X, y = table(order=ORDER)
    graph = Graph.from_edges(
        [("age", "mean"), ("height", "mean")], names=["mean", "age", "height"], virtual=["mean"], directed=True
    )
    model = FeatureNetworkClassifier(graph, tol=1e-12).fit(X, y)
    columns = [X.columns.get_loc("age"), X.columns.get_loc("height")]
    by_hand = Graph.from_edges([(columns[0], 5), (columns[1], 5)], n_nodes=6, virtual=[5], directed=True)
    same = FeatureNetworkClassifier(by_hand, tol=1e-12).fit(X.to_numpy(), y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-6)


def test_missing_names_are_an_error_or_ignored():
    X, y = table()
    graph = Graph.from_edges([("age", "height"), ("age", "shoe size")], names=["age", "height", "shoe size"])
    with pytest.raises(ValueError, match=r"shoe size.*missing='ignore'"):
        FeatureNetworkClassifier(graph).fit(X, y)
    model = FeatureNetworkClassifier(graph, missing="ignore").fit(X, y)
    assert model.solution_.problem.terms[1].atom.graph.n_edges == 1
    strange = Graph.from_edges([("a", "b")], names=["a", "b"])
    with pytest.raises(ValueError, match="none of the names"):
        FeatureNetworkClassifier(strange, missing="ignore").fit(X, y)
    with pytest.raises(ValueError, match="missing must be"):
        FeatureNetworkClassifier(graph, missing="drop").fit(X, y)


def test_names_can_be_given_to_fit():
    X, y = table(order=ORDER)
    names = [NAMES[j] for j in ORDER]
    plain = FeatureNetworkClassifier(NAMED).fit(X.to_numpy(), y, feature_names=names)
    framed = FeatureNetworkClassifier(NAMED).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, framed.coef_)
    assert plain.selected_features()[0].name == framed.selected_features()[0].name
    assert not hasattr(plain, "feature_names_in_")
    with pytest.raises(ValueError, match="calls column 0 'age', but in X it is 'pulse'"):
        FeatureNetworkClassifier(NAMED).fit(X, y, feature_names=NAMES)
    with pytest.raises(ValueError, match="2 feature names for 5 features"):
        FeatureNetworkClassifier(NAMED).fit(X.to_numpy(), y, feature_names=["a", "b"])


def test_a_named_graph_of_other_size_needs_names():
    X, y = table()
    with pytest.raises(ValueError, match=r"feature_names= to fit.*vocabulary=graph.feature_names"):
        FeatureNetworkClassifier(NAMED).fit(X.to_numpy()[:, :4], y)
    with pytest.raises(ValueError, match="one node for each column"):
        FeatureNetworkClassifier(GRAPH).fit(X.to_numpy()[:, :4], y)
    in_order = FeatureNetworkClassifier(NAMED).fit(X.to_numpy(), y)  # as many nodes as columns: taken in order
    assert {feature.name for feature in in_order.selected_features()} == set(NAMES)


def test_repeated_column_names_cannot_be_matched():
    X, y = table()
    with pytest.raises(ValueError, match="'age' occurs 2 times"):
        FeatureNetworkClassifier(NAMED).fit(X.to_numpy(), y, feature_names=["age", "age", *NAMES[2:]])


@pytest.mark.parametrize("estimator", [GroupLassoClassifier, GroupLassoRegressor])
def test_groups_by_name_and_by_column_agree(estimator):
    X, y = table(estimator)
    by_column = Groups([[0, 1, 2], [2, 3], [4]], n_features=5, names=["body", "heart", "rest"])
    by_name = {"body": NAMES[:3], "heart": ["weight", "pulse"], "rest": ["noise"]}
    objects = Groups([[2, 0, 1], [2, 3], [4]], feature_names=NAMES)
    expected = estimator(by_column, tol=1e-12).fit(X.to_numpy(), y)
    for groups in (by_name, list(by_name.values()), objects, [[0, 1, 2], [2, 3], [4]]):
        np.testing.assert_allclose(estimator(groups, tol=1e-12).fit(X, y).coef_, expected.coef_, atol=1e-6)
    shuffled = X[[NAMES[j] for j in ORDER]]
    moved = estimator(by_name, tol=1e-12).fit(shuffled, y)
    np.testing.assert_allclose(np.atleast_2d(moved.coef_), np.atleast_2d(expected.coef_)[:, ORDER], atol=1e-5)
    assert {group.name for group in moved.selected_groups()} <= set(by_name)


def test_groups_with_missing_names():
    X, y = table()
    groups = {"gone": ["shoe size"], "kept": ["age", "shoe size", "height"]}
    with pytest.raises(ValueError, match="shoe size"):
        GroupLassoClassifier(groups).fit(X, y)
    model = GroupLassoClassifier(groups, missing="ignore", lam_group=0.1).fit(X, y)
    assert [group.tolist() for group in model.groups_] == [[0, 1]]
    (selected,) = model.selected_groups()
    assert (selected.number, selected.name, selected.features) == (1, "kept", ("age", "height"))
    with pytest.raises(ValueError, match="X has none"):
        GroupLassoClassifier(groups).fit(X.to_numpy(), y)


def test_weights_of_groups():
    X, y = table()
    lists = [[0, 1, 2], [3], [4]]
    model = GroupLassoClassifier(lists, group_weights="sqrt").fit(X, y)
    np.testing.assert_allclose(model.groups_.weights, np.sqrt([3, 1, 1]))
    named = [["shoe size"], ["age", "height"]]
    ignored = GroupLassoClassifier(named, group_weights=[7.0, 2.0], missing="ignore").fit(X, y)
    assert ignored.groups_.weights.tolist() == [2.0]  # the weight of the group it was given for
    own = GroupLassoClassifier(Groups(lists, weights=[1.0, 2.0, 3.0])).fit(X, y)
    assert own.groups_.weights.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="'sqrt'"):
        GroupLassoClassifier(lists, group_weights="size").fit(X, y)


def test_without_groups_every_feature_is_one():
    X, y = table()
    model = GroupLassoClassifier(lam_group=3.0, tol=1e-10).fit(X, y)
    lasso = LaplacianElasticNetClassifier(lam1=3.0, tol=1e-10).fit(X, y)
    assert abs(model.objective_ - lasso.objective_) <= model.certificate_.gap + lasso.certificate_.gap + 1e-9
    assert [group.name for group in model.selected_groups()] == [row.name for row in model.selected_features()]


def test_a_vectorizer_with_the_vocabulary_of_the_graph():
    corpus = load_corpus()
    words = ["moon", "telescope", "star", "oven", "bread", "soup"]
    graph = Graph.from_edges([("moon", "star"), ("oven", "bread")], names=words)
    pipeline = make_pipeline(CountVectorizer(vocabulary=graph.feature_names), FeatureNetworkClassifier(graph))
    search = GridSearchCV(pipeline, {"featurenetworkclassifier__alpha": [0.1, 10.0]}, cv=3, error_score="raise")
    search.fit(corpus.data, corpus.target)
    model = search.best_estimator_[-1]
    assert {row.name for row in model.selected_features()} <= set(words)
    assert search.best_score_ > 0.6
    # a vocabulary of its own needs the names of the columns
    vectorizer = CountVectorizer().fit(corpus.data)
    own = FeatureNetworkClassifier(graph, missing="ignore").fit(
        vectorizer.transform(corpus.data), corpus.target, feature_names=vectorizer.get_feature_names_out()
    )
    used = own.solution_.problem.terms[1].atom.graph
    i, j, _ = used.edges()
    assert {frozenset((used.names[a], used.names[b])) for a, b in zip(i, j, strict=True)} <= {
        frozenset(("moon", "star")),
        frozenset(("oven", "bread")),
    }


def test_structure_given_to_fit_is_routed():
    X, y = data("FeatureNetworkClassifier")
    plain = FeatureNetworkClassifier(GRAPH).fit(X, y)
    np.testing.assert_array_equal(FeatureNetworkClassifier().fit(X, y, graph=GRAPH).coef_, plain.coef_)
    groups = Groups([[0, 1, 2], [2, 3], [4]], n_features=5)
    with config_context(enable_metadata_routing=True):
        network = FeatureNetworkClassifier().set_fit_request(graph=True, sample_weight=True)
        network.set_score_request(sample_weight=True)
        search = GridSearchCV(network, {"alpha": [1.0, 10.0]}, cv=2, error_score="raise")
        search.fit(X, y, graph=GRAPH, sample_weight=np.ones(len(y)))
        assert search.best_estimator_.solution_.problem.terms[1].atom.graph.n_edges == GRAPH.n_edges
        pipeline = make_pipeline(GroupLassoClassifier().set_fit_request(groups=True, feature_names=True))
        fits = cross_validate(
            pipeline, X, y, cv=2, params={"groups": groups, "feature_names": NAMES}, return_estimator=True
        )["estimator"]
        assert fits[0][-1].groups_.n_groups == 3


def test_groups_that_a_cross_validation_has_cut_are_refused():
    X, y = data("GroupLassoClassifier")
    groups = Groups([[j % 5] for j in range(len(y))], n_features=5)  # as many groups as rows: taken for per-row data
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(TypeError, match="must be a Groups"),
    ):
        model = GroupLassoClassifier().set_fit_request(groups=True)
        cross_validate(model, X, y, cv=2, params={"groups": groups}, error_score="raise")


def test_a_builder_makes_the_graph_of_the_rows_given_to_fit():
    corpus = load_corpus()
    vectorizer = CountVectorizer(min_df=4)
    pipeline = make_pipeline(vectorizer, FeatureNetworkClassifier(CooccurrenceGraph(n_neighbors=3)))
    grid = {"featurenetworkclassifier__graph__n_neighbors": [2, 5]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(corpus.data, corpus.target)
    builder = pipeline[-1].graph
    assert not hasattr(builder, "graph_")  # a parameter is never changed by fit
    model = search.best_estimator_[-1]
    X = search.best_estimator_[0].transform(corpus.data)
    n_neighbors = search.best_params_["featurenetworkclassifier__graph__n_neighbors"]
    by_hand = CooccurrenceGraph(n_neighbors).fit(X).graph_
    assert abs(model.graph_.weights - by_hand.weights).max() == 0
    tuned = FeatureNetworkClassifierCV(CooccurrenceGraph(3), n_strengths=3, cv=2).fit(X, corpus.target)
    assert tuned.graph_.n_nodes == X.shape[1]


@pytest.mark.parametrize("estimator", [LaplacianElasticNetClassifier, LaplacianElasticNetRegressor])
def test_a_directed_graph_that_was_built_is_made_undirected_where_it_must_be(estimator):
    X, y = data(estimator.__name__)
    X = np.abs(X) * (X > 0)
    assert CooccurrenceGraph(2).fit(X).graph_.is_directed
    model = estimator(CooccurrenceGraph(2)).fit(X, y)
    assert not model.graph_.is_directed
    assert estimator(SeedCorrelationGraph([0, 1], n_neighbors=2)).fit(X, y).graph_.n_nodes == 5
    with pytest.raises(ValueError, match="symmetrized"):  # a given graph is not symmetrised
        estimator(CooccurrenceGraph(2).fit(X).graph_).fit(X, y)


def test_builders_of_groups_and_of_graphs_of_rows():
    X, y = data("GroupLassoClassifier")
    model = GroupLassoClassifier(LSIGroups(2, 3, random_state=0), lam_group=0.1).fit(X, y)
    assert model.groups_.sizes.tolist() == [3, 3]
    assert {group.name for group in model.selected_groups()} <= {"topic 0", "topic 1"}
    built = MixedGraphClassifier(NeighborGraph(4)).fit(X, y)
    by_name = MixedGraphClassifier("knn", graph_options={"n_neighbors": 4}).fit(X, y)
    assert abs(built.graph_.weights - by_name.graph_.weights).max() == 0
    mixed = MixedGraphClassifier(NeighborGraph(4), pairs=[(0, 1)]).fit(X, y)
    assert mixed.graph_.weights[0, 1] == -1.0
    assert DissimilaritySVC([(0, 1)], graph=NeighborGraph(4)).fit(X, y).pairs_.tolist() == [[0, 1]]


def test_builders_that_cannot_learn_from_the_rows_are_refused():
    X, y = data("GroupLassoClassifier")
    with pytest.raises(TypeError, match=r"SentenceGroups cannot be fitted on X alone.*groups_"):
        GroupLassoClassifier(SentenceGroups()).fit(X, y)
    with pytest.raises(TypeError, match="links the rows"):
        FeatureNetworkClassifier(NeighborGraph()).fit(X, y)
    with pytest.raises(TypeError, match="does not link the rows"):
        MixedGraphClassifier(CooccurrenceGraph()).fit(X, y)


def test_sentences_name_their_groups():
    corpus = load_corpus()
    lines = ["\n".join(sentences) for sentences in corpus.sentences]
    builder = SentenceGroups(splitter="lines").fit(lines)
    assert list(builder.groups_.names) == builder.sentences_
    pipeline = make_pipeline(
        CountVectorizer(vocabulary=builder.groups_.feature_names),
        GroupLassoClassifier(builder.groups_, lam_group=0.3, lam_l1=2.0),
    )
    model = pipeline.fit(corpus.data, corpus.target)[-1]
    kept = model.selected_groups()
    assert kept and all(row.name == builder.sentences_[row.number] for row in kept)
    search = GridSearchCV(pipeline, {"grouplassoclassifier__lam_group": [0.1, 1.0]}, cv=2, error_score="raise")
    assert search.fit(corpus.data, corpus.target).best_score_ > 0.6
