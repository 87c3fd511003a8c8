"""Tests of the sky and kitchen corpus."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import Bunch

from cvxstructreg.datasets import load_corpus


@pytest.fixture(scope="module")
def corpus() -> Bunch:
    return load_corpus()


def test_counts(corpus: Bunch) -> None:
    assert len(corpus.data) == len(corpus.sentences) == len(corpus.target) == 80
    assert corpus.DESCR


def test_labels(corpus: Bunch) -> None:
    assert corpus.target_names == ["kitchen", "sky"]
    assert np.issubdtype(corpus.target.dtype, np.integer)
    np.testing.assert_array_equal(np.bincount(corpus.target), [40, 40])


@pytest.mark.parametrize(("word", "name"), [("telescope", "sky"), ("oven", "kitchen")])
def test_label_meaning(corpus: Bunch, word: str, name: str) -> None:
    has_word = np.array([word in document for document in corpus.data])
    assert np.mean(corpus.target[has_word] == corpus.target_names.index(name)) > 0.8


def test_sentences(corpus: Bunch) -> None:
    for document, sentences in zip(corpus.data, corpus.sentences, strict=True):
        assert 3 <= len(sentences) <= 6
        assert document == " ".join(sentences)
        for sentence in sentences:
            assert 6 <= len(sentence.split()) <= 16
            assert sentence.endswith(".") and sentence.count(".") == 1
            assert sentence == sentence.strip()


def test_no_duplicate_documents(corpus: Bunch) -> None:
    assert len(set(corpus.data)) == len(corpus.data)


def test_topics_share_sentences(corpus: Bunch) -> None:
    kitchen, sky = (
        {sentence for i in np.flatnonzero(corpus.target == label) for sentence in corpus.sentences[i]}
        for label in (0, 1)
    )
    assert len(kitchen & sky) >= 20


def test_vocabulary_size(corpus: Bunch) -> None:
    vocabulary = CountVectorizer(min_df=2).fit(corpus.data).vocabulary_
    assert 250 <= len(vocabulary) <= 700


def test_cross_validated_accuracy(corpus: Bunch) -> None:
    model = make_pipeline(CountVectorizer(min_df=2), LogisticRegression(max_iter=1000))
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=5, random_state=0)
    assert cross_val_score(model, corpus.data, corpus.target, cv=folds).mean() > 0.8


def test_independent_copies() -> None:
    first = load_corpus()
    first.target_names.append("other")
    first.sentences[0].clear()
    second = load_corpus()
    assert second.target_names == ["kitchen", "sky"]
    assert second.sentences[0]
