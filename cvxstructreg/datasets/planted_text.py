"""Texts whose label depends on a few of their sentences: small readable ones, and large sparse matrices."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Bunch

from cvxstructreg.core.checks import checked_count
from cvxstructreg.datasets.seeding import checked_at_most, checked_number, generator
from cvxstructreg.groups import Groups

_DESCR = """Planted relevant sentences.

Words follow Zipf's law: the frequency of the j-th most common word is proportional to j^-exponent. In a few sentences
of each document some words are drawn from the topic words of its label instead.
"""


def make_relevant_sentences(
    n_samples: int = 200,
    n_features: int = 300,
    *,
    n_sentences: float = 6.0,
    sentence_length: float = 8.0,
    n_relevant: int = 1,
    n_topic_words: int = 10,
    purity: float = 0.5,
    exponent: float = 1.0,
    label_noise: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Make documents in which a few sentences determine the label.

    Parameters
    ----------
    n_samples, n_features : int
        Number of documents, and number of words in the vocabulary.
    n_sentences, sentence_length : float
        Mean number of sentences per document and of words per sentence, at least 1: one plus a Poisson variable.
    n_relevant : int
        Number of relevant sentences in a document (all of them if it has fewer).
    n_topic_words : int
        Number of words of each of the two topics; the most common tenth of the vocabulary is excluded.
    purity : float from 0 to 1
        Probability that a word of a relevant sentence is a topic word.
    exponent : float
        Exponent of Zipf's law; 0 makes all words equally common.
    label_noise : float from 0 to 1
        Share of documents with a flipped label.
    random_state : int, Generator or None

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data (list of str), sentences (list of list of str), target (0/1), target_names; X (sparse counts),
        feature_names (words in the order of the columns, most common first); groups (`Groups`, the words of each
        sentence in turn), group_document, relevant_groups (mask: the truth); coef (-1, +1 on the topic words of label
        0, 1, else 0), DESCR.

    Examples
    --------
    >>> bunch = make_relevant_sentences(40, 100, n_relevant=2, random_state=0)
    >>> bunch.X.shape, len(bunch.sentences), int(bunch.relevant_groups.sum()) <= 80
    ((40, 100), 40, True)
    >>> bunch.sentences[0][0]
    'Word30 word50 word07 word12 word03 word06 word00 word48.'
    """
    tokens = _drawn(
        n_samples,
        n_features,
        (n_sentences, sentence_length),
        (n_relevant, n_topic_words, purity),
        exponent,
        label_noise,
        generator(random_state),
    )
    width = len(str(n_features - 1))
    names = [f"word{column:0{max(2, width)}d}" for column in range(n_features)]
    ends = np.cumsum(tokens.lengths)
    columns = np.split(tokens.words, ends[:-1])
    written = [" ".join(names[column] for column in sentence).capitalize() + "." for sentence in columns]
    borders = np.searchsorted(tokens.document, np.arange(tokens.n_samples + 1))
    sentences = [written[start:stop] for start, stop in pairwise(borders)]
    bunch = tokens.bunch(tokens.n_samples)
    return Bunch(
        data=[" ".join(document) for document in sentences],
        sentences=sentences,
        X=bunch.pop("data"),
        feature_names=names,
        **bunch,
    )


def make_sparse_text(
    n_samples: int = 1000,
    n_features: int = 1000,
    *,
    n_sentences: float = 5.0,
    sentence_length: float = 10.0,
    n_relevant: int = 1,
    n_topic_words: int = 50,
    purity: float = 0.3,
    exponent: float = 1.0,
    label_noise: float = 0.05,
    n_grouped: int | None = None,
    random_state: Any = None,
) -> Bunch:
    """Make a large sparse matrix of word counts with one group per sentence, for benchmarks.

    The model is that of `make_relevant_sentences`, but no texts are written: 100,000 documents over 5,000 words take
    seconds.

    Parameters
    ----------
    n_grouped : int, optional
        The sentences of this many documents, the first ones, become groups; by default those of all documents.
    others
        As in `make_relevant_sentences`.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data (`scipy.sparse.csr_array` of counts), target (0/1), target_names, groups, group_document, relevant_groups,
        coef, DESCR, as in `make_relevant_sentences`.

    Examples
    --------
    >>> bunch = make_sparse_text(100, 500, random_state=0)
    >>> bunch.data.shape, bunch.groups.n_features, len(bunch.groups) == len(bunch.relevant_groups)
    ((100, 500), 500, True)
    """
    grouped = n_samples if n_grouped is None else checked_at_most(n_grouped, n_samples, "n_grouped", "n_samples")
    tokens = _drawn(
        n_samples,
        n_features,
        (n_sentences, sentence_length),
        (n_relevant, n_topic_words, purity),
        exponent,
        label_noise,
        generator(random_state),
    )
    return tokens.bunch(grouped)


@dataclass(frozen=True)
class _Tokens:
    """A sequence of words, split into sentences and documents."""

    words: NDArray[np.int64]
    lengths: NDArray[np.int64]  # number of words of each sentence
    document: NDArray[np.int64]  # document of each sentence
    relevant: NDArray[np.bool_]  # whether each sentence is relevant
    target: NDArray[np.int64]
    coef: NDArray[np.float64]

    @property
    def n_samples(self) -> int:
        return len(self.target)

    def bunch(self, n_grouped: int) -> Bunch:
        """Return counts, labels, and groups for the sentences of the first documents."""
        n_groups = int(np.searchsorted(self.document, n_grouped))
        sentences = np.repeat(np.arange(len(self.lengths)), self.lengths)
        within = sentences < n_groups
        d = len(self.coef)
        members = _counts(sentences[within], self.words[within], (n_groups, d))
        return Bunch(
            data=_counts(self.document[sentences], self.words, (self.n_samples, d)),
            target=self.target,
            target_names=["0", "1"],
            groups=Groups.from_csr(members.indptr, members.indices, d),
            group_document=self.document[:n_groups],
            relevant_groups=self.relevant[:n_groups],
            coef=self.coef,
            DESCR=_DESCR,
        )


def _counts(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape).tocsr()


def _drawn(
    n_samples: int,
    n_features: int,
    lengths: tuple[float, float],
    topics: tuple[int, int, float],
    exponent: float,
    label_noise: float,
    rng: np.random.Generator,
) -> _Tokens:
    n, d = checked_count(n_samples, "n_samples"), checked_count(n_features, "n_features")
    per_document, per_sentence = (
        checked_number(value, name) for value, name in zip(lengths, ("n_sentences", "sentence_length"), strict=True)
    )
    if min(per_document, per_sentence) < 1:
        raise ValueError(f"n_sentences and sentence_length must be at least 1, not {per_document:g}, {per_sentence:g}")
    n_relevant, n_topic_words, purity = topics
    checked_at_most(n_relevant, np.iinfo(np.int32).max, "n_relevant", "sentences")
    rare = np.arange(d // 10, d)
    checked_at_most(n_topic_words, len(rare) // 2, "n_topic_words", "half of nine tenths of the vocabulary")
    share, flipped = checked_number(purity, "purity", 1.0), checked_number(label_noise, "label_noise", 1.0)

    label = rng.integers(2, size=n)
    topic = rng.choice(rare, (2, n_topic_words), replace=False)
    counts = 1 + rng.poisson(per_document - 1.0, size=n)
    document = np.repeat(np.arange(n), counts)
    sizes = 1 + rng.poisson(per_sentence - 1.0, size=len(document))
    relevant = _first_of_each(rng, document, counts, n_relevant)

    frequencies = (1.0 + np.arange(d)) ** -checked_number(exponent, "exponent")
    cumulative = np.cumsum(frequencies / frequencies.sum())
    words = np.minimum(np.searchsorted(cumulative, rng.random(sizes.sum()), side="right"), d - 1)
    if n_topic_words:
        at = np.flatnonzero(np.repeat(relevant, sizes) & (rng.random(len(words)) < share))
        words[at] = topic[np.repeat(label[document], sizes)[at], rng.integers(n_topic_words, size=len(at))]
    coef = np.zeros(d)
    coef[topic[0]], coef[topic[1]] = -1.0, 1.0
    target = np.where(rng.random(n) < flipped, 1 - label, label)
    return _Tokens(words, sizes, document, relevant, target, coef)


def _first_of_each(
    rng: np.random.Generator, document: NDArray[np.int64], counts: NDArray[np.int64], chosen: int
) -> NDArray[np.bool_]:
    """Return a mask with the given number of random sentences of each document."""
    order = np.lexsort((rng.random(len(document)), document))
    starts = np.cumsum(counts) - counts
    mask = np.zeros(len(document), dtype=bool)
    mask[order] = np.arange(len(document)) - starts[document] < chosen
    return mask
