"""The data sets of the sentence regularizer that are available: four newsgroup pairs, movie reviews and two domains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from cvxstructreg.datasets import fetch_20newsgroups, load_corpus, load_movie_reviews, load_multi_domain_reviews
from cvxstructreg.groups import Groups, PunktSplitter

PAIRS = ("science", "sports", "religion", "computer")
REVIEWS = ("movie", "electronics", "kitchen")
#: The name of the small built-in corpus, for quick runs.
MADE = "made texts"
#: Which words are features. "all": every run of letters, digits and underscores (of the movie reviews those in at least
#: 3 documents), chosen because the number of words is then closest to that of the paper. "frequent": words of at least
#: two letters in at least 2 documents. Both count training documents only.
VOCABULARIES = {"all": (1, r"(?u)\b\w+\b"), "frequent": (2, r"(?u)\b[a-zA-Z][a-zA-Z]+\b")}
LEAST_OF_MOVIES = 3


@dataclass(frozen=True, eq=False)
class Part:
    """Documents as counts, their labels (0 or 1), and the groups of their sentences if they are for training."""

    X: Any
    y: Any
    groups: Groups | None = None

    def right(self, coef: Any, intercept: float) -> Any:
        """Which documents a model classifies correctly."""
        return (self.X @ coef + intercept > 0) == (self.y == 1)


@dataclass(frozen=True, eq=False)
class TextData:
    """A data set, split for tuning and testing."""

    training: Part
    development: Part
    whole: Part
    test: Part
    sentences: int
    texts: list[str]
    vectorizer: Any
    splitter: Any


def _texts(name: str, data_home: str | None, split: int) -> tuple[list[str], Any, list[str], Any, float]:
    """Training and test texts with labels, and the share of the development documents."""
    if name in PAIRS:
        train, test = (fetch_20newsgroups(part, name, data_home=data_home) for part in ("train", "test"))
        return list(train.data), train.target, list(test.data), test.target, 0.2
    if name == MADE:
        data = load_corpus()
    else:
        load = load_movie_reviews if name == "movie" else load_multi_domain_reviews
        data = load(data_home=data_home) if name == "movie" else load(name, data_home=data_home)
    y = np.unique(data.target, return_inverse=True)[1]
    texts, first, same = np.unique(np.array(data.data, dtype=object), return_index=True, return_inverse=True)
    chosen = train_test_split(np.arange(len(texts)), test_size=0.1, random_state=split, stratify=y[first])
    train, test = (np.flatnonzero(np.isin(same, part)) for part in chosen)  # repeated reviews stay together
    return [data.data[i] for i in train], y[train], [data.data[i] for i in test], y[test], 1.0 / 9.0


def sentence_groups(counts: Any, tokens: bool) -> Groups:
    """One group for each sentence with a word; equal ones are merged. A word that occurs m times has weight sqrt(m)."""
    counts = sp.csr_array(counts[np.diff(counts.indptr) > 0])
    members = np.sqrt(counts.data.astype(float)) if tokens else None
    return Groups.from_csr(counts.indptr, counts.indices, counts.shape[1], member_weights=members).merged()


@cache
def text_data(
    name: str, data_home: str | None, split: int = 0, vocabulary: str = "all", copies: str = "tokens"
) -> TextData:
    """Counts of the words of the vocabulary, headers included, and the groups of the sentences.

    ``copies`` is "tokens" if a word that a sentence repeats has as many copies there, as in the paper, or "types".
    """
    texts, y, test_texts, test_y, share = _texts(name, data_home, split)
    least, pattern = VOCABULARIES[vocabulary]
    least = LEAST_OF_MOVIES if name == "movie" and vocabulary == "all" else least
    vectorizer = CountVectorizer(min_df=least, token_pattern=pattern)
    X = sp.csr_array(vectorizer.fit_transform(texts), dtype=float)
    first, second = train_test_split(np.arange(len(y)), test_size=share, random_state=split, stratify=y)
    splitter: Any = str.splitlines if name == "movie" else PunktSplitter().fit(texts)
    sentences = [[sentence for sentence in splitter(text) if sentence.strip()] for text in texts]
    numbers = [len(found) for found in sentences]
    counts = sp.csr_array(vectorizer.transform([sentence for found in sentences for sentence in found]))
    document = np.repeat(np.arange(len(texts)), numbers)

    def part(rows: Any) -> Part:
        return Part(X[rows], y[rows], sentence_groups(counts[np.isin(document, rows)], copies == "tokens"))

    development = Part(X[second], y[second])
    test = Part(sp.csr_array(vectorizer.transform(test_texts), dtype=float), test_y)
    count = sum(numbers[i] for i in first)
    return TextData(part(first), development, part(np.arange(len(y))), test, count, texts, vectorizer, splitter)
