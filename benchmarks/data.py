"""Data for the benchmarks: 20 Newsgroups from a local folder, and generated data. Nothing is downloaded."""

from __future__ import annotations

import gzip
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

import cvxstructreg as csr

MED_SPACE = ("sci.med", "sci.space")


def folder() -> Path:
    """The data folder: the environment variable CVXSTRUCTREG_DATA, or ../shared/data next to the project."""
    return Path(os.environ.get("CVXSTRUCTREG_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def available() -> bool:
    """Whether the data folder has 20 Newsgroups."""
    return (folder() / "20newsgroups" / "20news_bydate.jsonl.gz").exists()


@cache
def _posts() -> list[dict[str, str]]:
    with gzip.open(folder() / "20newsgroups" / "20news_bydate.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@cache
def newsgroups(categories: tuple[str, ...] | None, min_df: int = 2) -> tuple[Any, Any, list[str], CountVectorizer]:
    """Word counts of the training posts of some groups (all by default): X, labels, texts and the vectorizer."""
    posts = [p for p in _posts() if p["split"] == "train" and (categories is None or p["label"] in categories)]
    texts = [post["text"] for post in posts]
    vectorizer = CountVectorizer(min_df=min_df, token_pattern=r"(?u)\b[a-zA-Z][a-zA-Z]+\b")
    X = sp.csr_array(vectorizer.fit_transform(texts), dtype=float)
    return X, np.unique([post["label"] for post in posts], return_inverse=True)[1], texts, vectorizer


def cosine_graph(X: Any, neighbours: int = 25, least: float = 0.10) -> csr.Graph:
    """Link each word to its nearest words by the cosine of their document-presence vectors (directed)."""
    presence = normalize(sp.csr_array(X.T != 0, dtype=float))
    d = presence.shape[0]
    rows, columns, values = [], [], []
    for first in range(0, d, 500):
        block = (presence[first : first + 500] @ presence.T).toarray()
        block[np.arange(block.shape[0]), first + np.arange(block.shape[0])] = 0.0
        nearest = np.argpartition(-block, neighbours, axis=1)[:, :neighbours]
        cosines = np.take_along_axis(block, nearest, axis=1)
        kept = cosines >= least
        rows.append((first + np.nonzero(kept)[0]).astype(np.int64))
        columns.append(nearest[kept])
        values.append(cosines[kept])
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return csr.Graph(sp.csr_array(entries, shape=(d, d)))


def sentences(texts: list[str], vectorizer: CountVectorizer) -> csr.Groups:
    """One group for the words of each sentence."""
    words, vocabulary = vectorizer.build_analyzer(), vectorizer.vocabulary_
    indptr, indices = [0], []
    for text in texts:
        for sentence in re.split(r"(?<=[.!?])\s+|\n\s*\n", text):
            members = sorted({vocabulary[word] for word in words(sentence) if word in vocabulary})
            if members:
                indices.extend(members)
                indptr.append(len(indices))
    return csr.Groups.from_csr(indptr, indices, len(vocabulary))


def dense_problem(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated Gaussian features, and labels from sparse true weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    w = np.zeros(d)
    w[rng.choice(d, size=max(5, d // 20), replace=False)] = rng.normal(size=max(5, d // 20))
    return X, (X @ w + rng.normal(size=n) > 0).astype(int)


def sparse_problem(n: int, d: int, density: float = 0.01, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Sparse positive features with very different frequencies, and labels."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, d + 1) ** 0.7
    frequency *= density * d / frequency.sum()
    X = sp.csr_array((rng.random((n, d)) < np.minimum(frequency, 0.5)) * rng.integers(1, 4, size=(n, d)), dtype=float)
    w = rng.normal(size=d) * (rng.random(d) < 0.05)
    return X, (X @ w + 0.5 * rng.normal(size=n) > 0).astype(int)


def ring_graph(d: int, reach: int = 3) -> csr.Graph:
    """A ring in which each node is linked to the next ``reach`` nodes."""
    nodes = np.arange(d)
    pairs = [np.stack([nodes, (nodes + step) % d], axis=1) for step in range(1, reach + 1)]
    return csr.Graph.from_edges(np.concatenate(pairs), n_nodes=d)


def random_groups(d: int, count: int, seed: int = 0) -> csr.Groups:
    """Overlapping groups of three to twelve features."""
    rng = np.random.default_rng(seed)
    members = [rng.choice(d, size=rng.integers(3, 13), replace=False) for _ in range(count)]
    return csr.Groups([sorted(group.tolist()) for group in members], n_features=d)
