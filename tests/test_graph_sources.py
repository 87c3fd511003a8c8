"""Graphs from examples, pairs and networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from cvxstructreg.graphs import (
    Graph,
    NeighborGraph,
    aligned_graph,
    class_graph,
    from_networkx,
    lexicon_graph,
    mixed_graph,
    oracle_pairs,
    pathway_graph,
    quoting_pairs,
    shows_disagreement,
    to_networkx,
)
from cvxstructreg.runtime.optional import optional_import

# examples


def dense_neighbors(X, k, metric):
    X = X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    near = np.zeros_like(distances, dtype=bool)
    shut = distances + np.where(np.eye(len(X)) > 0, np.inf, 0.0)
    np.put_along_axis(near, np.argsort(shut, axis=1)[:, :k], True, axis=1)
    return near, distances


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_heat_weights_of_either_neighbour(metric, as_sparse):
    X = np.random.default_rng(0).normal(size=(30, 4))
    near, distances = dense_neighbors(X, 3, metric)
    linked = near | near.T
    sigma = distances[np.triu(linked)].mean()
    builder = NeighborGraph(3, metric=metric).fit(sparse.csr_matrix(X) if as_sparse else X)
    expected = np.where(linked, np.exp(-(distances**2) / (2 * sigma**2)), 0.0)
    np.testing.assert_allclose(builder.graph_.weights.toarray(), expected, atol=1e-10)
    assert builder.bandwidth_ == pytest.approx(sigma)
    fixed = NeighborGraph(3, metric=metric, bandwidth=0.5).fit(X).graph_.weights.toarray()
    np.testing.assert_allclose(fixed, np.where(linked, np.exp(-2 * distances**2), 0.0), atol=1e-10)


def test_binary_and_cosine_weights_and_the_ways_to_symmetrize():
    X = np.random.default_rng(1).normal(size=(25, 3))
    near, _ = dense_neighbors(X, 4, "euclidean")
    ways = {"max": near | near.T, "min": near & near.T, "mean": 0.5 * near + 0.5 * near.T}
    for how, expected in ways.items():
        graph = NeighborGraph(4, weights="binary", symmetrize=how).fit(X).graph_
        np.testing.assert_array_equal(graph.weights.toarray(), expected)
    near, _ = dense_neighbors(X, 12, "cosine")
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = np.where(near | near.T, np.maximum(unit @ unit.T, 0), 0)
    np.testing.assert_allclose(
        NeighborGraph(12, weights="cosine").fit(X).graph_.weights.toarray(), expected, atol=1e-12
    )


def test_repeated_and_zero_examples():
    X = np.array([[1.0, 0], [1, 0], [1, 0], [0, 0], [0, 2]])
    graph = NeighborGraph(2, weights="binary", names=list("abcde")).fit(X).graph_
    assert graph.names == tuple("abcde")
    assert graph.weights[0, 1] == graph.weights[1, 2] == graph.weights[0, 2] == 1  # and no node is its own neighbour
    cosine = NeighborGraph(2, weights="cosine").fit(X).graph_
    assert {3, 4} <= set(cosine.isolated.tolist())
    with pytest.raises(ValueError, match="distance zero"):
        NeighborGraph(2).fit(np.ones((4, 2)))
    assert NeighborGraph(2, bandwidth=1.0).fit(np.ones((4, 2))).graph_.n_edges > 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"weights": "gauss"}, ValueError, "binary"),
        ({"metric": "taxi"}, ValueError, "euclidean"),
        ({"symmetrize": "or"}, ValueError, '"max"'),
        ({"bandwidth": 0.0}, ValueError, "positive"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth"),
        ({"bandwidth": np.nan}, ValueError, "bandwidth"),
        ({"n_neighbors": 0}, ValueError, "at least 1"),
        ({"names": ["a"]}, ValueError, "1 node name"),
    ],
)
def test_bad_neighbours(options, error, words):
    with pytest.raises(error, match=words):
        NeighborGraph(**options).fit(np.eye(4))


# pairs


def test_mixed_graph_replaces_and_keeps():
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], [1.0, 2.0, 3.0], n_nodes=5, names=list("abcde"))
    mixed = mixed_graph(graph, [("b", "c"), ("e", "a"), ("c", "b")], [0.5, 4.0, 0.7])
    expected = np.zeros((5, 5))
    for i, j, w in [(0, 1, 1.0), (1, 2, -0.7), (2, 3, 3.0), (0, 4, -4.0)]:
        expected[i, j] = expected[j, i] = w
    np.testing.assert_array_equal(mixed.weights.toarray(), expected)
    assert mixed.names == graph.names
    assert repr(mixed_graph(graph, [])) == repr(graph)
    with pytest.raises(ValueError, match=r"'b', 'c'.*already linked"):
        mixed_graph(graph, [("b", "c")], conflict="error")
    for pairs, weights, words in [
        ([(0, 9)], None, "out of range"),
        ([(0, 0)], None, "itself"),
        ([(0, 2)], -1.0, "positive"),
        ([(0, 2)], np.nan, "positive"),
        ([(0, 2), (0, 3), (1, 4)], [1.0, np.inf, -2.0], "positive and finite, not inf"),
        ([(0, 2)], [1.0, 2.0], "1 pair"),
        ([("a", "z")], None, "unknown node name"),
    ]:
        with pytest.raises(ValueError, match=words):
            mixed_graph(graph, pairs, weights)
    with pytest.raises(ValueError, match="undirected"):
        mixed_graph(Graph([[0, 1], [0, 0]]), [(0, 1)])


def test_oracle_pairs_are_uniform_over_pairs_of_different_classes():
    y = np.array([0, 1, 0, 2, 1, 0])
    allowed = {(s, t) for s in range(6) for t in range(s + 1, 6) if y[s] != y[t]}
    everything = oracle_pairs(y, len(allowed), random_state=0)
    assert {tuple(pair) for pair in everything.tolist()} == allowed
    firsts = np.array([oracle_pairs(np.arange(1000) % 2, 300, random_state=seed)[0, 0] for seed in range(20)])
    assert np.ptp(firsts) > 300  # in random order: the first pair is not always among the first examples
    counts = dict.fromkeys(allowed, 0)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        counts[tuple(oracle_pairs(y, 1, random_state=rng)[0].tolist())] += 1
    expected = 2000 / len(allowed)
    assert all(abs(count - expected) < 5 * np.sqrt(expected) for count in counts.values())
    assert np.array_equal(oracle_pairs(y, 4, random_state=3), oracle_pairs(y, 4, random_state=3))
    some = oracle_pairs(np.array(list("abab")), 2, rows=[0, 3, 2], random_state=np.random.RandomState(0))
    assert sorted(some.tolist()) == [[0, 3], [2, 3]]
    assert oracle_pairs(y, 0).shape == (0, 2)


@pytest.mark.parametrize(
    ("y", "n", "options", "words"),
    [
        ([0, 0, 0], 1, {}, "have 0 pairs"),
        ([0, 1], 2, {}, "2 examples with 2 labels have 1 pair of different classes"),
        ([0, 1], -1, {}, "at least 0"),
        ([[0, 1]], 1, {}, "one-dimensional"),
        ([0.0, np.nan], 1, {}, "NaN"),
        ([0, 1], 1, {"rows": [5]}, "out of range"),
    ],
)
def test_bad_oracles(y, n, options, words):
    with pytest.raises(ValueError, match=words):
        oracle_pairs(y, n, **options)


POSTS = [
    "I think that taxes are too low.\nWe should raise them now.",
    "X writes:\n> I think that taxes are too low.\nWhat?! Are you mad?",
    "> I think that taxes are too low.\nYes, I agree with that.",
    "> We should raise them now.\n\nThat is COMPLETE NONSENSE of course.",
    "> What?! Are you mad?\nNo.\n\nBut why? Why? Tell me!!",
    ">> I think that taxes are too low.\nNEVER EVER say that",
]


def test_quotes_with_disagreement_beside_them():
    assert quoting_pairs(POSTS[:5]).tolist() == [[0, 1], [0, 3]]
    assert quoting_pairs(POSTS).tolist() == [[0, 1], [0, 3], [0, 5]]  # a quote of a quote: the line is of post 0
    threads = [-1, 0, 0, 0, 1, 4]
    assert quoting_pairs(POSTS, reply_to=threads).tolist() == [[0, 1], [0, 3], [4, 5]]
    authors = ["ann", "bob", "bob", "bob", "ann", "cid"]
    assert quoting_pairs(POSTS, authors=authors).tolist() == [[0, 1], [0, 2]]
    assert quoting_pairs(POSTS, authors=authors, min_count=2).tolist() == [[0, 1]]
    assert quoting_pairs(POSTS, authors=authors, min_count=3).shape == (0, 2)
    assert quoting_pairs(POSTS[:2], authors=["ann", "ann"]).shape == (0, 2)
    assert quoting_pairs([]).shape == (0, 2)
    twice = [POSTS[0], f"{POSTS[1]}\n{POSTS[3]}"]  # two quotes in one post count once
    assert quoting_pairs(twice).tolist() == [[0, 1]]
    assert quoting_pairs(twice, min_count=2).shape == (0, 2)


def test_disagreement_needs_two_marks_or_two_long_upper_case_words():
    assert not shows_disagreement("Why? I see.")
    assert shows_disagreement("Why? How?")
    assert not shows_disagreement("IBM PC NASA")
    assert not shows_disagreement("WRONG. Simply. WRONG")
    assert shows_disagreement("this is SIMPLY WRONG")
    assert not shows_disagreement("THE WRONG ONE")  # THE and ONE have three letters


@pytest.mark.parametrize(
    ("posts", "options", "error", "words"),
    [
        ("a post", {}, TypeError, "single string"),
        (["a", 3], {}, TypeError, "post 1"),
        (["a", "b"], {"reply_to": [0]}, ValueError, "2 posts"),
        (["a", "b"], {"reply_to": [-1, 5]}, ValueError, "out of range"),
        (["a", "b"], {"authors": ["x"]}, ValueError, "got 1 author, but 2 posts"),
    ],
)
def test_bad_posts(posts, options, error, words):
    with pytest.raises(error, match=words):
        quoting_pairs(posts, **options)


# networkx


@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_edges([("a", "b"), ("b", "c")], [2.0, -1.0], names=list("abcd")),
        Graph.from_edges([(0, 1), (2, 1)], directed=True, n_nodes=4),
        class_graph(["p", "p", "n"], ["x", "y", "z"], dissimilar=[("p", "n")]),
    ],
    ids=["signed", "directed", "virtual"],
)
def test_there_and_back(graph):
    network = to_networkx(graph)
    back = from_networkx(network)
    np.testing.assert_array_equal(back.weights.toarray(), graph.weights.toarray())
    assert back.names == graph.names
    assert back.virtual.tolist() == graph.virtual.tolist()
    assert network.is_directed() == graph.is_directed


def test_networks_of_all_kinds():
    multi = nx.MultiGraph([("a", "b"), ("a", "b", {"weight": 3.0})])
    assert from_networkx(multi).weights.toarray().tolist() == [[0, 4], [4, 0]]
    tuples = nx.Graph([((0, 0), (0, 1))])
    assert from_networkx(tuples).names == ("(0, 0)", "(0, 1)")
    numbers = nx.Graph([(2, 0)])
    numbers.add_node(1)
    assert from_networkx(numbers).weights[0, 2] == 1
    aligned = from_networkx(nx.Graph([("star", "moon", {"w": 2.0}), ("star", "sky")]), ["moon", "star", "salt"], "w")
    assert aligned.weights.toarray().tolist() == [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
    with pytest.raises(TypeError, match="not a number"):
        from_networkx(nx.Graph([("a", "b", {"weight": "thick"})]))
    with pytest.raises(TypeError, match="networkx graph"):
        from_networkx(np.eye(2))
    with pytest.raises(ValueError, match="itself"):
        from_networkx(nx.Graph([("a", "a")]))
    with pytest.raises(ValueError, match="at least one node"):
        from_networkx(nx.Graph())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: class_graph(5),
        lambda: class_graph("abc"),
        lambda: pathway_graph({"a": "GENE"}, ["GENE"]),
        lambda: lexicon_graph(["good"], 5),
        lambda: oracle_pairs([0, 1], 1, rows=[0.5]),
        lambda: mixed_graph(np.eye(2), [(0, 1)]),
        lambda: aligned_graph(np.eye(2), ["a", "b"]),
        lambda: to_networkx(np.eye(2)),
    ],
)
def test_wrong_types_are_named(wrong):
    with pytest.raises(TypeError, match=r"not (5|'abc'|the single|float64|ndarray)|not float64 values"):
        wrong()


def test_missing_packages_name_their_extra():
    with pytest.raises(ImportError, match=r"to fly needs the package wings.*cvxstructreg\[air\]"):
        optional_import("wings.feathers", "air", "to fly")
