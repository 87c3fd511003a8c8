"""The builders on the real data sets, where these are: sizes and a few things that must be found in them."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from cvxstructreg.graphs import (
    CooccurrenceGraph,
    NeighborGraph,
    class_graph,
    lexicon_graph,
    mixed_graph,
    oracle_pairs,
    pathway_graph,
    read_gmt,
    read_word_list,
    sentiment_seeds,
)
from cvxstructreg.groups import EmbeddingGroups, GraphOfWordsGroups, SentenceGroups, named_groups

pytestmark = pytest.mark.slow
DATA = Path(os.environ.get("CVXSTRUCTREG_DATA", Path(__file__).parents[2] / "shared" / "data"))


def newsgroups(*labels, split="train"):
    with gzip.open(DATA / "20newsgroups" / "20news_bydate.jsonl.gz", "rt", encoding="utf-8") as lines:
        posts = [json.loads(line) for line in lines]
    return [
        post["text"] for post in posts if split in (None, post["split"]) and (not labels or post["label"] in labels)
    ]


def neighbours(graph, name):
    row = graph.weights[[graph.names.index(name)]]
    return {graph.names[j]: weight for j, weight in zip(row.indices, row.data, strict=True)}


def cooccurrence_of_all_newsgroups():
    vectorizer = CountVectorizer(max_features=11376)
    X = vectorizer.fit_transform(newsgroups(split=None))
    graph = CooccurrenceGraph(vocabulary=vectorizer).fit(X).graph_
    assert (X.shape, graph.n_nodes) == ((18846, 11376), 11376)
    assert np.diff(graph.weights.indptr).max() == 25
    sums = np.asarray(graph.weights.sum(axis=1))
    np.testing.assert_allclose(sums[sums > 0], 1.0)
    assert {"orbital", "spacecraft", "launch"} <= set(neighbours(graph, "orbit"))


def sentences_and_communities_of_a_pair():
    texts = newsgroups("sci.med", "sci.space")
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(texts)
    builder = SentenceGroups(vectorizer).fit(texts)
    assert X.shape[0] == 1187
    assert 15_000 < builder.n_sentences_ < 35_000
    assert builder.n_merged_ > 1000
    assert builder.groups_.n_groups == builder.n_sentences_ - builder.n_empty_ - builder.n_merged_
    assert builder.groups_.covered.all()
    words = GraphOfWordsGroups(vocabulary=vectorizer, random_state=0).fit(texts)
    assert words.groups_.is_disjoint
    assert words.modularity_ > 0.2


def lexicons():
    folder = DATA / "lexicons"
    names = ["good", "bad", "evil", "hot", "cold", "big", "large", "small", "table", "excellent", "horrible"]
    graph = lexicon_graph(names, folder / "wordnet30_synsets.tsv.gz", folder / "wordnet30_antonyms.tsv.gz")
    assert neighbours(graph, "big") == {"large": 1.0, "bad": 1.0} | {"small": -1.0}
    assert neighbours(graph, "hot") == {"cold": -1.0}
    seeds = sentiment_seeds(folder / "sentiwordnet30.tsv.gz", names, 4)
    assert {"excellent", "horrible"} <= set(seeds)
    words = {sign: read_word_list(folder / f"opinion_lexicon_{sign}.txt.gz") for sign in ("positive", "negative")}
    assert [len(entries) for entries in words.values()] == [2006, 4783]
    assert class_graph(words, names, dissimilar=[("positive", "negative")]).n_virtual == 2


def pathways():
    folder = DATA / "gene_expression"
    with np.load(folder / "diabetes.npz") as data:
        genes = data["genes"].tolist()
    sets = read_gmt(folder / "c2.curated.old.gmt.gz")
    assert len(sets) == 522
    graph = pathway_graph(sets, genes)
    assert graph.n_nodes == 15056
    assert not graph.is_directed
    groups = named_groups(sets, genes)
    linked = np.setdiff1d(np.unique(groups.indices), graph.isolated)
    assert graph.n_nodes - len(graph.isolated) == len(linked)


def examples():
    with np.load(DATA / "ssl_matrices" / "uspst.npz") as data:
        X, y = data["X"], data["y"]
    graph = NeighborGraph(10).fit(X).graph_
    i, j, _ = graph.edges()
    assert np.mean(y[i] == y[j]) > 0.8  # of ten digits
    pairs = oracle_pairs(y, 320, random_state=0)
    assert mixed_graph(graph, pairs).dissimilarity().n_edges == 320


def embeddings():
    with np.load(DATA / "word_vectors" / "glove6b_100d_subset.npz") as data:
        vectors, words = data["vectors"], str(data["words"]).split("\n")
    builder = EmbeddingGroups(300, n_nearest=5, words=words[:5000], random_state=0).fit(vectors[:5000])
    groups = builder.groups_
    assert groups.covered.all()
    assert not groups.is_disjoint
    of = {groups.feature_names[k]: label for k, label in enumerate(builder.labels_)}
    assert of["monday"] == of["tuesday"] != of["france"]


CHECKS = [
    cooccurrence_of_all_newsgroups,
    sentences_and_communities_of_a_pair,
    lexicons,
    pathways,
    examples,
    embeddings,
]


@pytest.mark.parametrize("check", CHECKS if DATA.is_dir() else [None])  # without the data: one skipped test
def test_on_real_data(check):
    if check is None:
        pytest.skip(f"there is no folder {DATA}; set CVXSTRUCTREG_DATA")
    check()
