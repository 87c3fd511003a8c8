"""Graphs from files: lexicons, pathways and edge lists."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from cvxstructreg.graphs import (
    Graph,
    aligned_graph,
    class_graph,
    edge_list_graph,
    lexicon_graph,
    negation_graph,
    negation_pairs,
    pathway_graph,
    read_edge_list,
    read_gmt,
    read_lexicon,
    read_synset_relations,
    read_word_list,
    sentiment_scores,
    sentiment_seeds,
)


@pytest.fixture
def write(tmp_path):
    """Write lines to a file, gzipped if its name ends in .gz; return the path."""

    def write_lines(name, *lines):
        data = "".join(line + "\n" for line in lines).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_lines


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
