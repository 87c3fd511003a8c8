"""Groups of topics: planted ones, ties between them, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from cvxstructreg.datasets import load_corpus
from cvxstructreg.groups import LDAGroups, LSIGroups
from cvxstructreg.groups.topics import _canonical


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


def planted_topics(rng, n=60):
    """Documents of three topics of four words each, and a word that never occurs."""
    X = np.zeros((n, 13))
    for i in range(n):
        topic = i % 3
        X[i, 4 * topic : 4 * topic + 4] = rng.poisson(5 + topic, size=4)
    return X


@pytest.mark.parametrize(
    "builder",
    [
        LSIGroups(n_topics=3, n_words=4, random_state=0),
        LDAGroups(n_topics=3, n_words=4, max_iter=30, learning_method="batch", random_state=0),
    ],
    ids=["lsi", "lda"],
)
@pytest.mark.parametrize("as_sparse", [False, True])
def test_topics_are_found_again(builder, as_sparse):
    X = planted_topics(np.random.default_rng(0))
    groups = clone(builder).fit(sparse.csr_matrix(X) if as_sparse else X).groups_
    assert sorted(group.tolist() for group in groups) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert groups.n_features == 13
    assert groups.names[0].startswith("topic ")


def test_lsi_takes_the_largest_loadings_of_singular_vectors():
    X = np.random.default_rng(1).poisson(1.0, size=(30, 20)).astype(float)
    groups = LSIGroups(n_topics=5, n_words=6, random_state=0).fit(X).groups_
    V = np.linalg.svd(X)[2]
    for topic in range(3):
        assert set(groups[topic].tolist()) == set(np.argsort(-abs(V[topic]))[:6].tolist())


def test_equal_singular_values_have_the_same_topics_in_any_order_of_the_documents():
    block = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    X = np.kron(np.eye(3), block)  # three topics of equal strength, in which two of three words are equal too
    for order, columns in [(np.arange(6), np.arange(9)), (np.arange(6)[::-1], np.arange(9)[::-1])]:
        for seed in range(3):
            for n_topics in (3, 2, 1):  # fewer cut the equal ones
                builder = LSIGroups(n_topics, n_words=2, random_state=seed).fit(X[order][:, columns])
                mirrored = columns[0] != 0  # then the strong word is the last of the three
                expected = [[0, 2], [3, 5], [6, 8]] if mirrored else [[0, 1], [3, 4], [6, 7]]
                assert [group.tolist() for group in builder.groups_] == expected[:n_topics]
                assert np.all(builder.components_.max(axis=1) == abs(builder.components_).max(axis=1))
    alone = abs(np.linalg.svd(block)[2][0])
    np.testing.assert_allclose(builder.components_[0], [*alone[::-1], *np.zeros(6)], atol=1e-12)  # nothing is mixed


def test_topics_beyond_the_rank_are_left_out():
    X = np.outer([1.0, 2.0, 3.0, 1.0], [1.0, 3.0, 2.0])
    builder = LSIGroups(3, n_words=2, random_state=0).fit(X)
    assert [group.tolist() for group in builder.groups_] == [[1, 2]]
    np.testing.assert_allclose(builder.components_ @ builder.components_.T, np.diag([1.0, 0.0, 0.0]), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_rotations_of_equal_singular_vectors_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(7, 4)))[0].T
    rotation = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    turned = np.vstack([-vectors[:1], rotation @ vectors[1:3], vectors[3:]])
    values = np.array([3.0, 2.0, 2.0 - 1e-14, 1.0])
    one, other = (_canonical(v, values, 4)[0] for v in (vectors, turned))
    np.testing.assert_allclose(one, other, atol=1e-7)
    np.testing.assert_allclose(one @ one.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(one[1:3].T @ one[1:3], vectors[1:3].T @ vectors[1:3], atol=1e-12)
    assert _canonical(vectors, values, 2)[1]
    assert not _canonical(vectors[:2], values[:2], 2)[1]  # a third vector may belong to the second


def test_topics_from_documents_and_from_their_matrix_are_the_same(corpus):
    vectorizer = CountVectorizer(min_df=2, stop_words="english")
    X = vectorizer.fit_transform(corpus.data)
    one = LSIGroups(5, 6, vectorizer, random_state=0).fit(corpus.data)
    other = LSIGroups(5, 6, vectorizer, random_state=0).fit(X)
    assert [g.tolist() for g in one.groups_] == [g.tolist() for g in other.groups_]
    assert one.groups_.feature_names == other.groups_.feature_names == tuple(vectorizer.get_feature_names_out())
    assert LSIGroups(2, 3, random_state=0).fit(corpus.data).vectorizer_.get_feature_names_out()[0]
    lda = LDAGroups(3, 5, vectorizer, random_state=0)
    assert [g.tolist() for g in lda.fit(X).groups_] == [g.tolist() for g in clone(lda).fit(X).groups_]
    np.testing.assert_allclose(lda.components_.sum(axis=1), 1.0)


def test_words_that_never_occur_are_in_no_topic():
    X = np.array([[1.0, 2, 0], [2, 1, 0], [0, 1, 0]])
    for builder in (LSIGroups(1, 3, random_state=0), LDAGroups(1, 3, random_state=0)):
        assert builder.fit(X).groups_[0].tolist() == [0, 1]


def test_identical_topics_are_merged():
    builder = LDAGroups(3, 2, random_state=0, weights=2.0).fit(np.ones((5, 2)))
    assert (builder.groups_.n_groups, builder.n_merged_, builder.groups_.weights.tolist()) == (1, 2, [6.0])
    assert "2 duplicates merged" in repr(builder)


@pytest.mark.parametrize(
    ("builder", "X", "error", "words"),
    [
        (LSIGroups(0), np.eye(3), ValueError, "n_topics must be at least 1"),
        (LSIGroups(2, -1), np.eye(3), ValueError, "n_words"),
        (LSIGroups(5), np.eye(3), ValueError, "at most 3 dimensions, not n_topics=5"),
        (LSIGroups(1), np.full((3, 3), np.nan), ValueError, "NaN"),
        (LSIGroups(1), np.zeros((3, 3)), ValueError, "only zeros"),
        (LSIGroups(1, vocabulary=["a"]), np.eye(3), ValueError, "1 name but X has 3 columns"),
        (LSIGroups(1, vocabulary=["zebra"]), ["the moon"], ValueError, "no word of the vocabulary"),
        (LSIGroups(1), [], ValueError, "no documents"),
        (LDAGroups(2), -np.eye(3), ValueError, "Negative values"),
        (LDAGroups(2, max_iter=0), np.eye(3), ValueError, "max_iter"),
        (LDAGroups(2, learning_method="slow"), np.eye(3), ValueError, "learning_method"),
    ],
)
def test_bad_topics(builder, X, error, words):
    with pytest.raises(error, match=words):
        builder.fit(X)
