"""Graphs from examples, pairs, lexicons, pathways, edge lists and networkx."""

from __future__ import annotations

import gzip

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from cvxstructreg.graphs import (
    Graph,
    NeighborGraph,
    aligned_graph,
    class_graph,
    edge_list_graph,
    from_networkx,
    lexicon_graph,
    mixed_graph,
    negation_graph,
    negation_pairs,
    oracle_pairs,
    pathway_graph,
    quoting_pairs,
    read_edge_list,
    read_gmt,
    read_lexicon,
    read_synset_relations,
    read_word_list,
    sentiment_scores,
    sentiment_seeds,
    shows_disagreement,
    to_networkx,
)
from cvxstructreg.runtime.optional import optional_import


@pytest.fixture
def write(tmp_path):
    """Write lines to a file, gzipped if its name ends in .gz; return the path."""

    def write_lines(name, *lines):
        data = "".join(line + "\n" for line in lines).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_lines


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


# lexicons

SYNSETS = (
    "pos\tsynset\tlemmas(lemma#sense)",
    "a\t001\tgood#1 great#2",
    "a\t002\tbad#1",
    "a\t003\tfine#1 all_right#1",
    "s\t004\tdead(p)#1 bad#2 good#9",
)
ANTONYMS = ("pos\tlemma\tantonym\tsynset\tantonym_synset", "a\tgood\tbad\t001\t002", "a\tbad\tgood\t002\t001")
WORDS = ["all right", "bad", "dead", "fine", "good", "great", "table"]


def test_lexicon_graph_from_files(write):
    synonyms, antonyms = write("synsets.tsv.gz", *SYNSETS), write("antonyms.tsv", *ANTONYMS)
    assert read_lexicon(synonyms)[2:] == [("fine", "all right"), ("dead", "bad", "good")]
    graph = lexicon_graph(WORDS, synonyms, str(antonyms), antonym_weight=0.5)
    edges = {(graph.names[i], graph.names[j]): w for i, j, w in zip(*graph.edges(), strict=True)}
    assert edges == {
        ("good", "great"): 1.0,
        ("all right", "fine"): 1.0,
        ("bad", "dead"): 1.0,
        ("dead", "good"): 1.0,
        ("bad", "good"): -0.5,  # also in a synset: the antonym counts
    }
    assert graph.names == tuple(WORDS)
    assert lexicon_graph(WORDS).is_empty


@pytest.mark.parametrize("line", ["Good\tgreat", "good,great", "good great", "good , great"])
def test_two_columns_in_any_writing(write, line):
    assert read_lexicon(write("pairs.txt", "# comment", line, "", "tea_time leisure")) == [
        ("good", "great"),
        ("tea time", "leisure"),
    ]


def test_relations_between_synsets(write):
    heading = "pos\tsynset\trelation\tpos2\tsynset2"
    rows = ("a\t001\tsimilar_to\ta\t003", "a\t003\tsimilar_to\ta\t001", "a\t001\tattribute\tn\t999")
    relations, synsets = write("relations.tsv", heading, *rows), write("synsets.tsv", *SYNSETS)
    assert read_synset_relations(relations, synsets) == [
        ("all right", "good"),
        ("all right", "great"),
        ("fine", "good"),
        ("fine", "great"),
    ]
    with pytest.raises(ValueError, match='one of "attribute", "similar_to"'):
        read_synset_relations(relations, synsets, "opposite_of")
    with pytest.raises(ValueError, match="header"):
        read_synset_relations(synsets, synsets)


def test_sentiment_scores_weigh_senses(write):
    heading = "pos\tsynset\tpos_score\tneg_score\tlemmas(lemma#sense)"
    rows = ("a\t1\t0.9\t0\tgood#1 fine#1", "a\t2\t0.3\t0.3\tgood#2", "a\t3\t0\t0.5\tbad#1")
    path = write("swn.tsv.gz", heading, *rows)
    scores = sentiment_scores(path)
    assert scores["good"] == pytest.approx(((0.9 + 0.15) / 1.5, 0.15 / 1.5))
    assert sentiment_seeds(path, WORDS, 2) == ["fine", "bad"]
    assert sentiment_seeds(scores, WORDS, 10) == ["fine", "good", "bad"]
    with pytest.raises(ValueError, match="n_seeds"):
        sentiment_seeds(scores, WORDS, 0)
    with pytest.raises(ValueError, match="line 2"):
        sentiment_scores(write("bad.tsv", heading, "a\t1\thigh\t0\tgood#1"))


def test_negated_bigrams():
    names = ["great", "not great", "not", "never mind", "not so great", "no fun", "fun", "great fun"]
    assert negation_pairs(names) == [("not great", "great"), ("no fun", "fun")]
    assert negation_pairs(["not_great", "great"], separator="_") == [("not_great", "great")]
    assert negation_pairs(["sans fun", "fun"], negations=["sans"]) == [("sans fun", "fun")]
    graph = negation_graph(names, weight=2.0)
    assert graph.edges()[2].tolist() == [-2.0, -2.0]
    assert negation_graph(["great"]).is_empty
    with pytest.raises(TypeError, match="single string"):
        negation_pairs(names, negations="not")


def test_bad_lexicons(write, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_lexicon(tmp_path / "nowhere.tsv")
    with pytest.raises(ValueError, match=r"line 2 .*single word"):
        read_lexicon(write("single.txt", "good great", "lonely"))
    with pytest.raises(ValueError, match="empty"):
        read_lexicon(write("empty.txt"))
    with pytest.raises(ValueError, match=r"line 3: 2 cells; expected 3: pos, synset, lemmas"):
        read_lexicon(write("short.tsv", *SYNSETS[:2], "a\t002"))
    whole = write("whole.txt.gz", *(f"word{i} other{i * 7919 % 1000}" for i in range(20000)))
    cut = tmp_path / "cut.txt.gz"
    cut.write_bytes(whole.read_bytes()[:-2000])
    with pytest.raises(ValueError, match="truncated or damaged after line"):
        read_lexicon(cut)
    latin = tmp_path / "latin.txt"
    latin.write_bytes("gut sch\xf6n\n".encode("latin-1"))
    with pytest.raises(ValueError, match="not UTF-8"):
        read_lexicon(latin)
    with pytest.raises(TypeError, match="set of words"):
        lexicon_graph(WORDS, synonyms=["good", "great"])
    with pytest.raises(ValueError, match="antonym_weight"):
        lexicon_graph(WORDS, antonym_weight=-1.0)
    assert read_word_list(write("list.txt.gz", "; words", "good", "", "great")) == ["good", "great"]
    with pytest.raises(ValueError, match="no words"):
        read_word_list(write("none.txt", "; words"))


# pathways, edge lists, alignment

GMT = ("one\tdescription\tA\tB\tC", "two\t\tC\tD\tX\tC", "", "three\tn/a\tA\tB")


@pytest.mark.parametrize("name", ["sets.gmt", "sets.gmt.gz"])
def test_pathways(write, name):
    path = write(name, *GMT)
    assert read_gmt(path) == {"one": ["A", "B", "C"], "two": ["C", "D", "X"], "three": ["A", "B"]}
    genes = ["D", "C", "B", "A", "Z"]
    expected = np.array([[0, 1, 0, 0, 0], [1, 0, 1, 1, 0], [0, 1, 0, 2, 0], [0, 1, 2, 0, 0], [0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(pathway_graph(path, genes, weights="count").weights.toarray(), expected)
    graph = pathway_graph(path, genes)
    np.testing.assert_array_equal(graph.weights.toarray(), expected > 0)
    assert graph.names == tuple(genes)
    assert pathway_graph(path, genes, max_size=2).n_edges == 2
    with pytest.raises(ValueError, match=r"1 gene not in the vocabulary.*'X'"):
        pathway_graph(path, genes, missing="error")


def test_bad_pathways(write):
    with pytest.raises(ValueError, match=r"line 2 .*not a gene set"):
        read_gmt(write("a.gmt", GMT[0], "two\tdescription"))
    with pytest.raises(ValueError, match=r"line 1 .*not a gene set"):
        read_gmt(write("b.gmt", "name only"))
    with pytest.raises(ValueError, match="occurs twice"):
        read_gmt(write("c.gmt", GMT[0], GMT[0]))
    with pytest.raises(ValueError, match="no gene sets"):
        read_gmt(write("d.gmt"))
    with pytest.raises(ValueError, match="no gene of any pathway"):
        pathway_graph({"one": ["A"]}, ["x", "y"])
    with pytest.raises(ValueError, match="weights must be one of"):
        pathway_graph({"one": ["A"]}, ["A"], weights="jaccard")


def test_edge_lists(write):
    path = write("edges.tsv", "# from to weight", "a\tb\t2", "b\ta\t1", "b\tc\t-1", "c\tz")
    pairs, weights = read_edge_list(path)
    assert (pairs[0], weights) == (("a", "b"), [2.0, 1.0, -1.0, 1.0])
    graph = edge_list_graph(path, ["c", "b", "a", "q"])
    np.testing.assert_array_equal(graph.weights.toarray()[:3, :3], [[0, -1, 0], [-1, 0, 3], [0, 3, 0]])
    assert graph.isolated.tolist() == [3]
    assert edge_list_graph(path, ["c", "b", "a"], directed=True).weights[2, 1] == 2
    assert edge_list_graph([("a", "b")], ["a", "b"], weights=[4.0]).weights[0, 1] == 4
    with pytest.raises(ValueError, match="'z'"):
        edge_list_graph(path, ["a", "b", "c"], missing="error")
    with pytest.raises(ValueError, match=r"line 1 .*1 column"):
        read_edge_list(write("one.txt", "lonely"))
    with pytest.raises(ValueError, match=r"line 2.*'heavy' is not a number"):
        read_edge_list(write("words.csv", "a,b", "a,b,heavy"))
    with pytest.raises(ValueError, match="two ends"):
        edge_list_graph([("a", "b", "c")], ["a", "b"])
    with pytest.raises(ValueError, match="from the file"):
        edge_list_graph(path, ["a"], weights=1.0)


def test_alignment_keeps_virtual_nodes_and_their_edges():
    graph = class_graph({"p": ["a", "b"], "n": ["c"]}, ["a", "b", "c"], dissimilar=[("p", "n")])
    aligned = aligned_graph(graph, {"c": 0, "a": 2, "new": 1})
    assert aligned.names == ("c", "new", "a", "mean of p", "mean of n")
    assert aligned.virtual.tolist() == [3, 4]
    expected = np.zeros((5, 5))
    expected[0, 4], expected[2, 3], expected[3, 4] = 1, 1, -1
    np.testing.assert_array_equal(aligned.weights.toarray(), expected)
    with pytest.raises(ValueError, match="'b'"):
        aligned_graph(graph, ["a", "c"], missing="error")
    with pytest.raises(ValueError, match="no names"):
        aligned_graph(Graph([[0, 1], [1, 0]]), ["a", "b"])


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
