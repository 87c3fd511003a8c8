"""Groups of sentences, on small made texts and the corpus of the library."""

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

import cvxstructreg as csr
from cvxstructreg import GroupLasso
from cvxstructreg.datasets import load_corpus
from cvxstructreg.groups import PunktSplitter, SentenceGroups


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


LINES = ["the moon rose\nwe ate bread\nMOON, the rose", "we ate the bread\n\n \nbread we ate", "!!!\nmoon"]


def words_of(builder):
    names = builder.groups_.feature_names
    return [{names[j] for j in group} for group in builder.groups_]


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
