"""Builders of groups: sentences, topics, embeddings, graphs of words; on small made texts, and bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import cvxstructreg as csr
from cvxstructreg import GroupLasso, Groups
from cvxstructreg.datasets import load_corpus
from cvxstructreg.groups import (
    EmbeddingGroups,
    GraphOfWordsGroups,
    LDAGroups,
    LSIGroups,
    PunktSplitter,
    SentenceGroups,
    named_groups,
)
from cvxstructreg.groups.graph_of_words import window_counts
from cvxstructreg.groups.topics import _canonical

LINES = ["the moon rose\nwe ate bread\nMOON, the rose", "we ate the bread\n\n \nbread we ate", "!!!\nmoon"]


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


def words_of(builder):
    names = builder.groups_.feature_names
    return [{names[j] for j in group} for group in builder.groups_]


@pytest.mark.parametrize("builder", [LSIGroups(1), LDAGroups(1, learning_method="batch"), EmbeddingGroups(1)], ids=str)
def test_scikit_learn_checks_of_those_that_take_matrices(builder):
    check_estimator(builder, on_skip=None)


# sentences


def test_one_sentence_per_line_duplicates_merged_and_empty_ones_dropped():
    builder = SentenceGroups(splitter="lines").fit(LINES)
    assert words_of(builder) == [
        {"the", "moon", "rose"},
        {"we", "ate", "bread"},
        {"we", "ate", "the", "bread"},
        {"moon"},
    ]
    assert builder.groups_.weights.tolist() == [2, 2, 1, 1]
    assert (builder.n_sentences_, builder.n_empty_, builder.n_merged_) == (7, 1, 2)
    assert builder.sentences_ == ["the moon rose", "we ate bread", "we ate the bread", "moon"]
    assert builder.documents_.tolist() == [0, 0, 1, 2]
    assert "7 sentences, 1 dropped, 2 merged" in repr(builder)
    assert builder.groups_.indices.dtype == np.int64


def test_merged_groups_are_the_same_penalty():
    vectorizer = CountVectorizer().fit(LINES)
    rng = np.random.default_rng(0)
    w = rng.normal(size=len(vectorizer.vocabulary_))
    for weights in (None, 3.0, np.sqrt, lambda sizes: 1.0 / sizes):
        expected = 0.0
        for line in "\n".join(LINES).split("\n"):
            columns = vectorizer.transform([line]).indices
            if len(columns):
                c = weights(np.array([len(columns)]))[0] if callable(weights) else weights or 1.0
                expected += c * np.linalg.norm(w[columns])
        groups = SentenceGroups(vectorizer, "lines", weights=weights).fit(LINES).groups_
        assert GroupLasso(groups)(w) == pytest.approx(expected)


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(),
        TfidfVectorizer(min_df=2, stop_words=["the"]),
        CountVectorizer(ngram_range=(1, 2), binary=True),
        CountVectorizer(lowercase=False, token_pattern=r"[a-z]+"),
        CountVectorizer(analyzer=str.split),
    ],
    ids=["count", "tfidf", "bigrams", "pattern", "callable"],
)
def test_columns_are_those_that_the_vectorizer_fills(vectorizer):
    vectorizer.fit(LINES)
    groups = SentenceGroups(vectorizer, "lines").fit(LINES).groups_
    lines = [line for text in LINES for line in text.split("\n")]
    rows = sparse.csr_array(vectorizer.transform(lines))
    expected = {tuple(sorted(row.indices.tolist())) for row in (rows[[i]] for i in range(len(lines)))} - {()}
    assert {tuple(group.tolist()) for group in groups} == expected
    assert groups.feature_names == tuple(vectorizer.get_feature_names_out())


def test_names_and_dicts_as_vocabulary():
    for vocabulary in (["rose", "moon"], {"moon": 1, "rose": 0}, np.array(["rose", "moon"])):
        groups = SentenceGroups(vocabulary, "lines").fit(LINES).groups_
        assert [group.tolist() for group in groups] == [[0, 1], [1]]
    bigrams = SentenceGroups(["the moon", "moon", "a"], "lines").fit(["the moon\nmoon a moon"]).groups_
    assert [group.tolist() for group in bigrams] == [[0, 1], [1, 2]]
    capitals = SentenceGroups(["MOON", "rose"], "lines").fit(LINES).groups_
    assert [group.tolist() for group in capitals] == [[1], [0, 1]]


def test_punkt_finds_the_sentences_of_the_corpus(corpus):
    builder = SentenceGroups().fit(corpus.data)
    split = [builder.split(text) for text in corpus.data]
    exact = np.mean([found == true for found, true in zip(split, corpus.sentences, strict=True)])
    assert exact > 0.95
    lines = SentenceGroups(builder.vectorizer_, "lines").fit(["\n".join(text) for text in corpus.sentences])
    assert abs(lines.groups_.n_groups - builder.groups_.n_groups) <= 0.05 * lines.groups_.n_groups
    assert lines.n_merged_ > 0  # remarks that occur verbatim in several documents
    assert lines.groups_.weights.sum() == lines.n_sentences_ - lines.n_empty_


def test_punkt_learns_abbreviations_and_stops_at_empty_lines():
    texts = ["We saw Dr. Lee in May. He met Dr. Ames. They like Dr. Poe. So Dr. Lee left."] * 5
    splitter = PunktSplitter().fit(texts)
    assert splitter("Then Dr. Lee came. He sang.") == ["Then Dr. Lee came.", "He sang."]
    assert splitter("A heading\n\nThe text. \n \n More") == ["A heading", "The text.", "More"]
    assert splitter("") == []
    assert len(PunktSplitter(train_characters=100)._chosen(texts)) == 2
    assert PunktSplitter(train_characters=None)._chosen(texts) == texts
    with pytest.raises(ValueError, match="not fitted"):
        PunktSplitter()("text")
    with pytest.raises(ValueError, match="at least 1"):
        PunktSplitter(0)


def test_a_fitted_builder_can_be_pickled(corpus):
    builder = SentenceGroups().fit(corpus.data)
    copy = pickle.loads(pickle.dumps(builder))
    assert copy.split("The moon rose. We slept.") == ["The moon rose.", "We slept."]
    assert repr(copy.groups_) == repr(builder.groups_)


def test_any_splitter():
    by_comma = SentenceGroups(splitter=lambda text: text.split(",")).fit(["moon star, salt", "bread"])
    assert words_of(by_comma) == [{"moon", "star"}, {"salt"}, {"bread"}]
    assert by_comma.split("a, b") == ["a", " b"]

    class Tokenizer:
        def tokenize(self, text):
            return text.split(";")

    assert SentenceGroups(splitter=Tokenizer()).fit(["moon; star"]).groups_.n_groups == 2
    assert SentenceGroups(splitter=PunktSplitter(50)).fit(["The moon. The star."]).groups_.n_groups == 2


def test_min_size():
    builder = SentenceGroups(splitter="lines", min_size=2).fit(LINES)
    assert builder.groups_.sizes.min() >= 2
    assert builder.n_empty_ == 2


def test_clones_pipelines_and_parameters():
    vectorizer = CountVectorizer().fit(LINES)
    builder = SentenceGroups(vectorizer, "lines", weights=np.sqrt)
    copy = clone(builder.fit(LINES))
    assert copy.vocabulary is vectorizer
    assert copy.get_params() == builder.get_params()
    assert not hasattr(copy, "groups_")
    with pytest.raises(NotFittedError):
        copy.transform(LINES)
    with pytest.raises(NotFittedError):
        copy.split("text")
    pipeline = make_pipeline(SentenceGroups(vectorizer, "lines"), CountVectorizer(vocabulary=vectorizer.vocabulary_))
    X = pipeline.fit_transform(LINES)
    assert X.shape[1] == pipeline[0].groups_.n_features
    assert pipeline.set_params(sentencegroups__min_size=2).fit(LINES)[0].groups_.n_groups == 3


def test_progress(capsys):
    SentenceGroups(splitter="lines", verbose=True).fit(LINES)
    assert "sentences of documents: 3 of 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "documents", "error", "words"),
    [
        ({}, [], ValueError, "no documents"),
        ({}, ["", " "], ValueError, "all 2 documents are empty"),
        ({}, "one text", TypeError, "single string"),
        ({}, ["text", None], TypeError, "document 1 is None"),
        ({}, ["text", float("nan")], TypeError, "document 1 is nan"),
        ({}, [b"text"], TypeError, "bytes"),
        ({}, 5, TypeError, "list of texts"),
        ({"vocabulary": ["zebra"]}, LINES, ValueError, "none of 7 sentences has a word of the vocabulary"),
        ({"min_size": 50}, LINES, ValueError, "has 50 words"),
        ({"vocabulary": CountVectorizer()}, LINES, ValueError, "not fitted"),
        ({"vocabulary": PCA(2).fit(np.eye(3))}, LINES, TypeError, "cannot analyse documents"),
        ({"splitter": "spacy"}, LINES, ValueError, "splitter must be"),
        ({"splitter": str.upper}, LINES, TypeError, "list of sentences"),
        ({"splitter": lambda text: [text, 3]}, LINES, TypeError, "list of sentences"),
        ({"min_size": 0}, LINES, ValueError, "at least 1"),
        ({"min_size": 1.5}, LINES, TypeError, "integer"),
        ({"weights": -1.0}, LINES, ValueError, "weight"),
        ({"weights": lambda sizes: sizes * np.nan}, LINES, ValueError, "nan"),
    ],
)
def test_bad_sentences(options, documents, error, words):
    with pytest.raises(error, match=words):
        SentenceGroups(**{"splitter": "lines", **options}).fit(documents)


# topics


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


def test_sentences_may_stay_apart():
    documents = ["the moon rose\nwe saw", "moon rose\nstars"]
    merged = SentenceGroups(["moon", "rose", "stars"], splitter="lines").fit(documents)
    apart = SentenceGroups(["moon", "rose", "stars"], splitter="lines", merge=False).fit(documents)
    assert merged.groups_.weights.tolist() == [2.0, 1.0]
    assert apart.groups_.weights.tolist() == [1.0, 1.0, 1.0]
    assert (apart.n_merged_, apart.sentences_, apart.documents_.tolist()) == (
        0,
        ["the moon rose", "moon rose", "stars"],
        [0, 1, 1],
    )
    w = np.array([1.0, -2.0, 0.5])
    assert csr.GroupLasso(apart.groups_)(w) == pytest.approx(csr.GroupLasso(merged.groups_)(w))
    with pytest.raises(TypeError, match="merge"):
        SentenceGroups(merge="no").fit(documents)


def test_the_published_algorithm_depends_on_the_number_of_copies():
    documents = ["moon rose\nmoon rose\nmoon rose\nstars", "bread\noven bread", "stars moon", "oven"]
    y, names = [0, 1, 0, 1], ["moon", "rose", "stars", "bread", "oven"]
    X = CountVectorizer(vocabulary=names).fit_transform(documents).astype(float)
    truncated, optima = [], []
    for merge in (True, False):
        groups = SentenceGroups(names, splitter="lines", merge=merge).fit(documents).groups_
        problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.3 * csr.GroupLasso(groups) + 0.1 * csr.L1())
        with pytest.warns(csr.InaccurateWarning):
            truncated.append(problem.solve("sentence_admm", tol=1e-12, max_iter=3).coef)
        optima.append(problem.solve(tol=1e-10).objective)
    assert optima[0] == pytest.approx(optima[1], rel=1e-9)
    assert np.abs(truncated[0] - truncated[1]).max() > 1e-3
