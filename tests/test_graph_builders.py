"""Builders of feature graphs: against dumb dense computations, known answers, and bad input of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from cvxstructreg import FeatureNetwork
from cvxstructreg.building.vocabulary import vocabulary_names
from cvxstructreg.graphs import CooccurrenceGraph, Graph, NeighborGraph, SeedCorrelationGraph, class_graph
from cvxstructreg.graphs.builders import cooccurrence
from cvxstructreg.graphs.builders.neighbors import nearest_neighbors

DOCUMENTS = [
    "the moon and the star",
    "a star and the moon above",
    "salt and bread with the salt",
    "bread with butter",
    "the star above the sea",
]


def random_counts(rng, n=40, d=25, density=0.2):
    return sparse.csr_array(rng.poisson(density, size=(n, d)).astype(float))


def dense_cooccurrence(X, k, threshold):
    """The definition, feature by feature, on dense matrices."""
    B = (X.toarray() != 0).astype(float)
    d = B.shape[1]
    W = np.zeros((d, d))
    for i in range(d):
        scores = []
        for j in range(d):
            size = np.sqrt(B[:, i].sum() * B[:, j].sum())
            if i != j and size > 0 and B[:, i] @ B[:, j] > 0 and B[:, i] @ B[:, j] / size >= threshold - 1e-12:
                scores.append((-(B[:, i] @ B[:, j]) / size, j))
        for score, j in sorted(scores)[:k]:
            W[i, j] = -score
    sums = W.sum(axis=1, keepdims=True)
    return np.divide(W, sums, out=np.zeros_like(W), where=sums > 0)


@pytest.mark.parametrize("builder", [CooccurrenceGraph(), NeighborGraph(), SeedCorrelationGraph(seeds=[0])], ids=str)
def test_scikit_learn_checks(builder):
    check_estimator(builder, on_skip=None)  # what is skipped is about array libraries that are not installed


@pytest.mark.parametrize(("k", "threshold"), [(3, 0.1), (25, 0.0), (1, 0.3), (2, 1.0)])
def test_cooccurrence_is_its_definition(k, threshold):
    X = random_counts(np.random.default_rng(k))
    graph = CooccurrenceGraph(n_neighbors=k, threshold=threshold).fit(X).graph_
    W, expected = graph.weights.toarray(), dense_cooccurrence(X, k, threshold)
    # any of several equally near features may be chosen: the counts must agree, not the columns
    np.testing.assert_allclose(np.sort(W, axis=1), np.sort(expected, axis=1), atol=1e-12)
    cosines = dense_cooccurrence(X, X.shape[1], threshold) > 0
    assert np.all(cosines[W > 0])


def test_cooccurrence_in_many_blocks_is_the_same(monkeypatch):
    X = random_counts(np.random.default_rng(3))
    whole = CooccurrenceGraph(n_neighbors=4).fit(X).graph_.weights
    monkeypatch.setattr(cooccurrence, "BLOCK_ENTRIES", 30)
    parts = CooccurrenceGraph(n_neighbors=4).fit(X).graph_.weights
    assert abs(whole - parts).max() == 0


def test_cooccurrence_takes_presence_not_counts_and_dense_as_sparse():
    X = random_counts(np.random.default_rng(4))
    one = CooccurrenceGraph(n_neighbors=4).fit(X).graph_.weights
    for other in (X * 7.0, X.toarray(), sparse.csc_matrix(X), X.astype(np.float32)):
        assert abs(CooccurrenceGraph(n_neighbors=4).fit(other).graph_.weights - one).max() == 0


def test_cooccurrence_isolates_features_without_documents_and_ignores_stored_zeros():
    X = sparse.csr_array(np.array([[1.0, 1, 0, 0], [1, 1, 0, 1]]))
    X.data[-1] = 0.0  # column 3 is stored, but zero
    graph = CooccurrenceGraph().fit(X).graph_
    assert graph.isolated.tolist() == [2, 3]
    assert graph.weights.toarray()[:2, :2].tolist() == [[0, 1], [1, 0]]


def test_a_cosine_at_the_threshold_counts():
    # features 0 and 1 are each in 10 documents, together in one: cosine 0.1 exactly
    X = np.zeros((19, 2))
    X[:10, 0] = 1
    X[9:, 1] = 1
    assert CooccurrenceGraph(threshold=0.1).fit(X).graph_.n_edges == 1
    assert CooccurrenceGraph(threshold=0.1001).fit(X).graph_.is_empty


@pytest.mark.parametrize(
    "vectorizer", [CountVectorizer(), TfidfVectorizer(min_df=2), CountVectorizer(ngram_range=(1, 2))]
)
def test_names_follow_the_columns_whatever_the_vocabulary_is(vectorizer):
    X = vectorizer.fit_transform(DOCUMENTS)
    names = tuple(vectorizer.get_feature_names_out())
    forms = [vectorizer, names, list(names), np.array(names), vectorizer.vocabulary_, dict(vectorizer.vocabulary_)]
    for vocabulary in forms:
        graph = CooccurrenceGraph(vocabulary=vocabulary).fit(X).graph_
        assert graph.names == names
        i, j = names.index("moon"), names.index("star")
        together = X.toarray()[:, [i, j]].all(axis=1).any()
        assert (graph.weights[i, j] > 0) == together


def test_data_frames_bring_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1, 1, 0], [1, 1, 1]], columns=["a", "b", "c"])
    assert CooccurrenceGraph().fit(frame).graph_.names == ("a", "b", "c")


def test_a_clone_keeps_the_fitted_vectorizer_and_forgets_the_graph():
    vectorizer = CountVectorizer().fit(DOCUMENTS)
    builder = CooccurrenceGraph(n_neighbors=3, vocabulary=vectorizer).fit(vectorizer.transform(DOCUMENTS))
    copy = clone(builder)
    assert copy.vocabulary is vectorizer
    assert copy.n_neighbors == 3
    assert not hasattr(copy, "graph_")
    assert copy.fit(vectorizer.transform(DOCUMENTS)).graph_.names == builder.graph_.names
    assert repr(builder.graph_) in repr(builder)


def test_builders_work_in_a_pipeline():
    pipeline = make_pipeline(CountVectorizer(), CooccurrenceGraph(), NeighborGraph(n_neighbors=2))
    X = pipeline.fit_transform(DOCUMENTS)
    assert X.shape[1] == pipeline[1].graph_.n_nodes
    assert pipeline[2].graph_.n_nodes == len(DOCUMENTS)


@pytest.mark.parametrize(
    ("vocabulary", "error", "words"),
    [
        (CountVectorizer(), ValueError, "not fitted"),
        (HashingVectorizer(), TypeError, "has no feature names"),
        (["moon"], ValueError, "1 name but X has"),
        (["moon", "moon", "star"], ValueError, "occurs 2 times"),
        ({"moon": 0, "star": 2}, ValueError, "from 0 to 1"),
        ({"moon": 0.5}, ValueError, "from 0 to 0"),
        ({}, ValueError, "empty"),
        ([], ValueError, "empty"),
        ("moon", TypeError, "single string"),
        ([1, 2], TypeError, "must be strings"),
        (7, TypeError, "fitted vectorizer"),
    ],
)
def test_bad_vocabularies(vocabulary, error, words):
    with pytest.raises(error, match=words):
        CooccurrenceGraph(vocabulary=vocabulary).fit(np.eye(3))


def test_a_vectorizer_with_a_given_vocabulary_needs_no_fit():
    assert vocabulary_names(CountVectorizer(vocabulary=["moon", "star"])) == ("moon", "star")


@pytest.mark.parametrize(
    ("options", "X", "error", "words"),
    [
        ({"n_neighbors": 0}, np.eye(3), ValueError, "at least 1"),
        ({"n_neighbors": -4}, np.eye(3), ValueError, "at least 1, not -4"),
        ({"n_neighbors": 2.5}, np.eye(3), TypeError, "integer"),
        ({"threshold": 1.5}, np.eye(3), ValueError, "threshold must be from 0.0 to 1.0"),
        ({"threshold": np.nan}, np.eye(3), ValueError, "threshold"),
        ({"threshold": "high"}, np.eye(3), TypeError, "threshold"),
        ({}, np.full((3, 3), np.nan), ValueError, "NaN"),
        ({}, np.full((3, 3), np.inf), ValueError, "infinity"),
        ({}, np.ones((3, 1)), ValueError, "n_features=1"),
        ({}, np.ones((0, 3)), ValueError, "0 sample"),
        ({}, np.ones(3), ValueError, "2D array"),
        ({}, np.eye(3) * 1j, ValueError, "[Cc]omplex"),
    ],
)
def test_bad_input_of_cooccurrence(options, X, error, words):
    with pytest.raises(error, match=words):
        CooccurrenceGraph(**options).fit(X)


def test_progress_is_printed_when_asked_for(capsys):
    CooccurrenceGraph(verbose=True).fit(np.eye(3))
    assert "co-occurrence: 3 of 3" in capsys.readouterr().out
    CooccurrenceGraph().fit(np.eye(3))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("binary", [False, True])
def test_correlations_are_those_of_numpy(binary):
    X = random_counts(np.random.default_rng(5))
    builder = SeedCorrelationGraph(seeds=[3, 8, 1], n_neighbors=4, binary=binary).fit(X)
    dense = (X.toarray() != 0).astype(float) if binary else X.toarray()
    expected = np.corrcoef(dense.T)[:, [3, 8, 1]]
    np.testing.assert_allclose(builder.correlations_, expected, atol=1e-12)
    assert builder.seeds_.tolist() == [3, 8, 1]
    other = SeedCorrelationGraph(seeds=[3, 8, 1], n_neighbors=4, binary=binary).fit(X.toarray())
    np.testing.assert_allclose(other.correlations_, expected, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_seed_graph_links_mutual_neighbours(metric):
    X = random_counts(np.random.default_rng(6), n=60)
    k = 4
    builder = SeedCorrelationGraph(seeds=range(6), n_neighbors=k, metric=metric).fit(X)
    R = builder.correlations_
    R = R / np.linalg.norm(R, axis=1, keepdims=True) if metric == "cosine" else R
    distances = np.linalg.norm(R[:, None] - R[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.zeros_like(distances)
    np.put_along_axis(near, np.argsort(distances, axis=1)[:, :k], 1.0, axis=1)
    np.testing.assert_array_equal(builder.graph_.weights.toarray(), near * near.T)


def test_constant_features_are_isolated():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30, 6))
    X[:, 2], X[:, 4] = 0.1, 0.0
    graph = SeedCorrelationGraph(seeds=[0, 1], n_neighbors=5).fit(X).graph_
    assert graph.isolated.tolist() == [2, 4]
    assert graph.n_edges == 6  # the other four are all neighbours
    constant = SeedCorrelationGraph(seeds=[2], n_neighbors=5).fit(X)
    assert constant.graph_.is_empty


def test_seeds_that_are_missing():
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(DOCUMENTS)
    builder = SeedCorrelationGraph(["moon", "comet", "salt", "moon"], n_neighbors=2, vocabulary=vectorizer).fit(X)
    assert builder.missing_seeds_ == ["comet"]
    assert [builder.graph_.names[i] for i in builder.seeds_] == ["moon", "salt"]
    with pytest.raises(ValueError, match=r"1 seed not in the vocabulary.*comet"):
        SeedCorrelationGraph(["moon", "comet"], vocabulary=vectorizer, missing="error").fit(X)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ValueError, "no seed"),
        ({"seeds": ["a", "b"], "vocabulary": ["x", "y", "z"]}, ValueError, "none of the 2 seeds"),
        ({"seeds": ["a"]}, ValueError, "the columns of X have no names"),
        ({"seeds": "moon"}, TypeError, "single string"),
        ({"seeds": [7]}, ValueError, "out of range"),
        ({"seeds": [-1]}, ValueError, "out of range"),
        ({"seeds": [1.5]}, TypeError, "name or a column number"),
        ({"seeds": [0], "metric": "taxi"}, ValueError, "euclidean"),
        ({"seeds": [0], "missing": "drop"}, ValueError, "ignore"),
        ({"seeds": [0], "n_neighbors": 0}, ValueError, "at least 1"),
    ],
)
def test_bad_seeds(options, error, words):
    with pytest.raises(error, match=words):
        SeedCorrelationGraph(**options).fit(np.eye(3))


def explicit_class_means(w, classes):
    """sum_i (w_i - mean of its class)^2."""
    return sum(float(np.sum((w[members] - w[members].mean()) ** 2)) for members in classes)


def test_hard_classes_are_distances_to_the_class_means():
    rng = np.random.default_rng(8)
    w = rng.normal(size=7)
    labels = ["a", "b", "a", None, "b", "b", "a"]
    graph = class_graph(labels)
    assert (graph.n_features, graph.n_virtual) == (7, 2)
    expected = explicit_class_means(w, [[0, 2, 6], [1, 4, 5]])
    assert FeatureNetwork(graph)(w) == pytest.approx(expected, rel=1e-10)
    numbers = class_graph(np.array([0.0, 1, 0, np.nan, 1, 1, 0]))
    assert FeatureNetwork(numbers)(w) == pytest.approx(expected, rel=1e-10)
    words = list("stuvxyz")
    mapping = class_graph({"one": ["s", "u", "z"], "two": ["t", "x", "y", "q"]}, words)
    assert FeatureNetwork(mapping)(w) == pytest.approx(expected, rel=1e-10)
    assert mapping.names == (*words, "mean of one", "mean of two")
    assert mapping.feature_names == tuple(words)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_mixtures_minimise_over_the_means(as_sparse):
    rng = np.random.default_rng(9)
    shares = rng.random((8, 3)) * (rng.random((8, 3)) < 0.7)
    shares[0], w = 0.0, rng.normal(size=8)
    normalised = shares / np.where(shares.sum(1) > 0, shares.sum(1), 1.0)[:, None]
    inside = shares.sum(1) > 0
    expected = np.linalg.lstsq(normalised[inside], w[inside])[1].sum()
    graph = class_graph(sparse.csr_array(shares) if as_sparse else shares)
    assert FeatureNetwork(graph)(w) == pytest.approx(expected, rel=1e-8)
    assert graph.weights[[0]].nnz == 0


def test_dissimilar_class_means():
    rng = np.random.default_rng(10)
    w = rng.normal(size=6)
    graph = class_graph(["p", "p", "p", "n", "n", "n"], dissimilar=[("p", "n")])
    # min over (a, b) of sum (w_i - a)^2 + sum (w_j - b)^2 + (a + b)^2
    A = np.array([[1.0, 0]] * 3 + [[0, 1.0]] * 3 + [[1.0, 1.0]])
    expected = np.linalg.lstsq(A, np.append(w, 0.0))[1].sum()
    assert FeatureNetwork(graph)(w) == pytest.approx(expected, rel=1e-10)
    assert (graph.dissimilarity().n_edges, graph.is_directed) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"classes": {"a": ["x"]}}, ValueError, "needs vocabulary="),
        ({"classes": {}, "vocabulary": ["x"]}, ValueError, "empty"),
        ({"classes": {"a": "x"}, "vocabulary": ["x"]}, TypeError, "single string"),
        ({"classes": {"a": ["q"]}, "vocabulary": ["x"]}, ValueError, "class 'a' has no feature"),
        ({"classes": {"a": ["q", "x"]}, "vocabulary": ["x"], "missing": "error"}, ValueError, "'q'"),
        ({"classes": [None, None]}, ValueError, "no feature has a class"),
        ({"classes": ["a", 1]}, TypeError, "all strings or all numbers"),
        ({"classes": []}, ValueError, "one label per feature"),
        ({"classes": [[1.0, -1.0]]}, ValueError, "feature 0 has the share -1.0"),
        ({"classes": [[1.0, np.nan]]}, ValueError, "nan"),
        ({"classes": [[1.0, 0.0], [2.0, 0.0]]}, ValueError, "class 1 has no feature"),
        ({"classes": [[1.0], [1.0, 2.0]]}, ValueError, "unequal lengths"),
        ({"classes": ["a", "b"], "vocabulary": ["x"]}, ValueError, "vocabulary has 1"),
        ({"classes": ["a", "b"], "dissimilar": [("a", "c")]}, ValueError, "unknown node name 'c'"),
        ({"classes": ["a", "b"], "dissimilar": [(0, 2)]}, ValueError, "classes 0 to 1"),
        ({"classes": ["a", "b"], "dissimilar": [("a", "a")]}, ValueError, "itself"),
        ({"classes": ["a", "b"], "class_names": ["one"]}, ValueError, "1 class name"),
    ],
)
def test_bad_classes(arguments, error, words):
    with pytest.raises(error, match=words):
        class_graph(**arguments)


def test_everything_public_can_be_found():
    from cvxstructreg import graphs

    for name in graphs.__all__:
        assert getattr(graphs, name) is not None
        assert name in dir(graphs)
    assert graphs.Graph is Graph
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        graphs.nonsense  # noqa: B018


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("k", [1, 7, 57, 58, 59])
def test_of_equally_near_rows_the_first_are_neighbours(k, as_sparse, monkeypatch):
    monkeypatch.setattr("cvxstructreg.graphs.builders.neighbors.BLOCK_ENTRIES", 200)
    points = np.random.default_rng(0).integers(0, 3, size=(60, 3)) / 3.0  # many equal rows, and many equal distances
    squares = np.array([[sum((a - b) ** 2) for b in 3 * points] for a in 3 * points]).round()
    np.fill_diagonal(squares, np.inf)
    nearest, distances = nearest_neighbors(sparse.csr_array(points) if as_sparse else points, k)
    expected = np.argsort(squares, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(np.sort(nearest, axis=1), np.sort(expected, axis=1))
    exact = np.sqrt(np.take_along_axis(squares, nearest, axis=1)) / 3.0
    np.testing.assert_allclose(distances, exact, atol=1e-7)
    assert np.all(np.diff(distances, axis=1) >= 0)
