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
from cvxstructreg.groups import Groups, PunktSplitter, SentenceGroups

PAIRS = ("science", "sports", "religion", "computer")
REVIEWS = ("movie", "electronics", "kitchen")
#: The name of the small built-in corpus, for quick runs.
MADE = "made texts"


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
    train, test, y_train, y_test = train_test_split(data.data, y, test_size=0.1, random_state=split, stratify=y)
    return list(train), y_train, list(test), y_test, 1.0 / 9.0


@cache
def text_data(name: str, data_home: str | None, split: int = 0) -> TextData:
    """Counts of the words (letters only) that occur in at least two training documents, headers included."""
    texts, y, test_texts, test_y, share = _texts(name, data_home, split)
    vectorizer = CountVectorizer(min_df=2, token_pattern=r"(?u)\b[a-zA-Z][a-zA-Z]+\b")
    X = sp.csr_array(vectorizer.fit_transform(texts), dtype=float)
    first, second = train_test_split(np.arange(len(y)), test_size=share, random_state=split, stratify=y)
    splitter: Any = str.splitlines if name == "movie" else PunktSplitter().fit(texts)
    sentences = {text: splitter(text) for text in texts}
    builder = SentenceGroups(vectorizer, splitter=sentences.__getitem__)

    def part(rows: Any) -> Part:
        return Part(X[rows], y[rows], builder.fit([texts[i] for i in rows]).groups_)

    development = Part(X[second], y[second])
    test = Part(sp.csr_array(vectorizer.transform(test_texts), dtype=float), test_y)
    count = sum(len(sentences[texts[i]]) for i in first)
    return TextData(part(first), development, part(np.arange(len(y))), test, count, texts, vectorizer, splitter)
