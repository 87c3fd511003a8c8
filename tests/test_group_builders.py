"""Builders of groups: from embeddings and graphs of words, their names, and the checks of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.estimator_checks import check_estimator

from cvxstructreg import Groups
from cvxstructreg.datasets import load_corpus
from cvxstructreg.groups import EmbeddingGroups, GraphOfWordsGroups, LDAGroups, LSIGroups, named_groups
from cvxstructreg.groups.graph_of_words import window_counts


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


@pytest.mark.parametrize("builder", [LSIGroups(1), LDAGroups(1, learning_method="batch"), EmbeddingGroups(1)], ids=str)
def test_scikit_learn_checks_of_those_that_take_matrices(builder):
    check_estimator(builder, on_skip=None)


# embeddings


def planted_vectors(rng, n_clusters=4, size=6, dimension=5):
    centres = 10 * rng.normal(size=(n_clusters, dimension))
    return np.repeat(centres, size, axis=0) + 0.1 * rng.normal(size=(n_clusters * size, dimension))


def test_clusters_and_nearest_words():
    vectors = planted_vectors(np.random.default_rng(0))
    builder = EmbeddingGroups(n_clusters=4, random_state=0).fit(vectors)
    assert sorted(g.tolist() for g in builder.groups_) == [list(range(6 * c, 6 * c + 6)) for c in range(4)]
    assert builder.groups_.is_disjoint
    split = EmbeddingGroups(n_clusters=8, n_nearest=3, random_state=0).fit(vectors)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T - 2 * np.eye(len(unit))
    nearest = np.argsort(-cosine, axis=1)[:, :3]
    groups = []
    for cluster in range(8):
        members = np.flatnonzero(split.labels_ == cluster)
        if len(members):
            groups.append(tuple(np.union1d(members, nearest[members].ravel()).tolist()))
    assert {tuple(g.tolist()) for g in split.groups_} == set(groups)
    assert len(groups) - len(set(groups)) == split.n_merged_


def test_vectors_are_found_by_their_words():
    vectors = planted_vectors(np.random.default_rng(1), n_clusters=2, size=3)
    words = ["moon", "star", "sky", "salt", "bread", "oven"]
    vocabulary = ["bread", "zebra", "sky", "salt", "moon"]
    half = vectors.astype(np.float16)
    forms = [
        (EmbeddingGroups(2, vocabulary=vocabulary, words=words, random_state=0), vectors),
        (EmbeddingGroups(2, vocabulary=vocabulary, words=words, random_state=0), half),
        (EmbeddingGroups(2, vocabulary=vocabulary, random_state=0), dict(zip(words, vectors, strict=True))),
    ]
    for builder, given in forms:
        groups = builder.fit(given).groups_
        assert sorted(g.tolist() for g in groups) == [[0, 3], [2, 4]]
        assert (builder.n_missing_, builder.labels_[1], groups.n_features) == (1, -1, 5)
    alone = EmbeddingGroups(2, random_state=0).fit(dict(zip(words, vectors, strict=True)))
    assert alone.groups_.feature_names == tuple(words)


@pytest.mark.parametrize(
    ("options", "vectors", "error", "words"),
    [
        ({"n_clusters": 9}, np.eye(3), ValueError, "n_clusters=9, but only 3 words"),
        ({"n_clusters": -1}, np.eye(3), ValueError, "at least 1"),
        ({"n_nearest": -5}, np.eye(3), ValueError, "n_nearest"),
        ({"vocabulary": ["a"]}, np.eye(3), ValueError, "pass the words of the vectors with words="),
        ({"words": ["a"]}, np.eye(3), ValueError, "1 word name"),
        ({"words": ["a", "b", "b"]}, np.eye(3), ValueError, "occurs 2 times"),
        ({"vocabulary": ["x"], "words": ["a", "b", "c"]}, np.eye(3), ValueError, "no word of the vocabulary"),
        ({"vocabulary": ["x"]}, {"a": [1.0]}, ValueError, "no word of the vocabulary"),
        ({"words": ["a"]}, {"a": [1.0]}, ValueError, "already contain their words"),
        ({}, np.full((3, 2), np.nan), ValueError, "NaN"),
        ({}, {}, ValueError, "no vectors"),
    ],
)
def test_bad_embeddings(options, vectors, error, words):
    with pytest.raises(error, match=words):
        EmbeddingGroups(**{"n_clusters": 1, **options}).fit(vectors)


# graphs of words


@pytest.mark.parametrize("window", [2, 3, 5])
def test_windows_are_counted_like_by_hand(window):
    rng = np.random.default_rng(window)
    sequences = [rng.integers(0, 6, size=n).tolist() for n in (9, 0, 1, 14)]
    expected = np.zeros((6, 6))
    for sequence in sequences:
        for p, one in enumerate(sequence):
            for other in sequence[p + 1 : p + window]:
                if one != other:
                    expected[one, other] += 1
                    expected[other, one] += 1
    np.testing.assert_array_equal(window_counts(sequences, window, 6).toarray(), expected)


def test_communities_of_the_corpus(corpus):
    vectorizer = CountVectorizer(stop_words="english", ngram_range=(1, 2))
    vectorizer.fit(corpus.data)
    builder = GraphOfWordsGroups(3, vectorizer, random_state=0).fit(corpus.data)
    groups = builder.groups_
    assert groups.is_disjoint
    assert groups.sizes.min() >= 2
    assert builder.modularity_ > 0.1
    assert not any(" " in groups.feature_names[j] for j in groups.indices)
    again = clone(builder).fit(corpus.data).groups_
    assert [g.tolist() for g in again] == [g.tolist() for g in groups]
    finer = GraphOfWordsGroups(3, vectorizer, resolution=3.0, random_state=0).fit(corpus.data).groups_
    assert finer.n_groups > groups.n_groups


def test_words_outside_the_vocabulary_are_taken_out_first_and_lonely_words_dropped():
    documents = ["moon of star", "salt to bread", "oak"]
    builder = GraphOfWordsGroups(2, ["bread", "moon", "oak", "salt", "star"], random_state=0).fit(documents)
    assert sorted(g.tolist() for g in builder.groups_) == [[0, 3], [1, 4]]
    single = GraphOfWordsGroups(2, builder.vocabulary, min_size=1, random_state=0).fit(documents)
    assert sorted(g.tolist() for g in single.groups_) == [[0, 3], [1, 4], [2]]


@pytest.mark.parametrize(
    ("options", "documents", "error", "words"),
    [
        ({"window": 1}, ["moon star"], ValueError, "window must be at least 2"),
        ({"window": "wide"}, ["moon star"], TypeError, "window"),
        ({"resolution": 0.0}, ["moon star"], ValueError, "resolution"),
        ({"min_size": 0}, ["moon star"], ValueError, "min_size"),
        ({}, ["moon", "star"], ValueError, "no two words"),
        ({}, [""], ValueError, "empty"),
    ],
)
def test_bad_graphs_of_words(options, documents, error, words):
    with pytest.raises(error, match=words):
        GraphOfWordsGroups(**options).fit(documents)


# names


def test_named_groups():
    sets = {"sky": ["moon", "star", "moon"], "sea": ["fish"], "food": ["salt", "fish"]}
    groups = named_groups(sets, ["star", "salt", "moon"], weights=np.sqrt)
    assert groups.names == ("sky", "food")
    assert [g.tolist() for g in groups] == [[0, 2], [1]]
    np.testing.assert_allclose(groups.weights, np.sqrt([2, 1]))
    assert named_groups(sets, ["star", "salt", "moon"], min_size=2).n_groups == 1
    for members, error, words in [
        ({"sea": ["fish"]}, ValueError, "no group has a member"),
        ({"sea": "fish"}, TypeError, "single string"),
        ([["moon"]], TypeError, "mapping"),
    ]:
        with pytest.raises(error, match=words):
            named_groups(members, ["moon"])
    with pytest.raises(ValueError, match="'fish'"):
        named_groups(sets, ["star", "moon", "salt"], missing="error")


def test_everything_public_can_be_found():
    from cvxstructreg import groups

    for name in groups.__all__:
        assert getattr(groups, name) is not None
    assert groups.Groups is Groups
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        groups.nonsense  # noqa: B018
