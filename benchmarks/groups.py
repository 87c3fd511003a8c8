"""The data of the group lasso benchmarks at any size, and their rows of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import cvxstructreg as csr


def sentences_like_text(
    n_documents: int, n_words: int, n_sentences: int, length: float = 17.8, seed: int = 0
) -> tuple[Any, np.ndarray, csr.Groups]:
    """Documents of random sentences over words of very different frequency: X, labels, and the sentences as groups.

    Word j is drawn in proportion to (j + 1)^-0.9; X counts words; the truth uses one word in twenty. Some documents are
    drawn at a time, so that little more memory is used than for the result.
    """
    rng = np.random.default_rng(seed)
    cumulated = np.cumsum(1.0 / np.arange(1, n_words + 1) ** 0.9)
    cumulated /= cumulated[-1]
    sizes = np.clip(rng.poisson(length, n_sentences), 1, n_words // 2)
    first = np.searchsorted(np.sort(rng.integers(0, n_documents, n_sentences)), np.arange(n_documents + 1))
    words = np.empty(sizes.sum(), dtype=np.int32)  # what is never written needs no memory
    columns, counts = np.empty(len(words), dtype=np.int32), np.empty(len(words))
    starts, rows = np.zeros(n_sentences + 1, dtype=np.int64), np.zeros(n_documents + 1, dtype=np.int64)
    for documents in np.array_split(np.arange(n_documents), max(1, n_sentences // 50_000)):
        a, b = first[documents[0]], first[documents[-1] + 1]
        drawn = np.searchsorted(cumulated, rng.random(sizes[a:b].sum()))
        keys = np.unique(np.repeat(np.arange(b - a), sizes[a:b]) * n_words + drawn)
        starts[a + 1 : b + 1] = starts[a] + np.cumsum(np.bincount(keys // n_words, minlength=b - a))
        words[starts[a] : starts[b]] = keys % n_words
        owner = np.repeat(
            np.repeat(np.arange(len(documents)), np.diff(first[documents[0] : documents[-1] + 2])), sizes[a:b]
        )
        keys, found = np.unique(owner * n_words + drawn, return_counts=True)
        i, j = documents[0], documents[-1] + 1
        rows[i + 1 : j + 1] = rows[i] + np.cumsum(np.bincount(keys // n_words, minlength=len(documents)))
        columns[rows[i] : rows[j]], counts[rows[i] : rows[j]] = keys % n_words, found
    X = sp.csr_array((counts[: rows[-1]], columns[: rows[-1]], rows), shape=(n_documents, n_words))
    groups = csr.Groups.from_csr(starts, words[: starts[-1]], n_words)
    truth = rng.normal(size=n_words) * (rng.random(n_words) < 0.05)
    z = X @ truth
    y = (z + z.std() * 0.3 * rng.logistic(size=n_documents) > np.median(z)).astype(int)
    return X, y, groups
