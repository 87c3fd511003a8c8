"""Communities of words that occur close together (Skianis, Rousseau and Vazirgiannis, EMNLP 2016)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.core.checks import plural
from cvxstructreg.groups.builder import GroupBuilder, checked_integer
from cvxstructreg.groups.groups import Weights
from cvxstructreg.groups.words import Words, checked_documents
from cvxstructreg.runtime.optional import optional_import
from cvxstructreg.runtime.progress import progress


class GraphOfWordsGroups(GroupBuilder):
    """g_c = community c of the graph whose edge (i, j) counts how often words i and j are within a sliding window.

    The collection graph joins the graphs of all documents: nodes are the words of the vocabulary, and W_ij is the
    number of times that i and j occur at most ``window - 1`` words apart (words outside the vocabulary are removed
    first). The communities, which are disjoint, are found by the Louvain method of igraph
    (``pip install "cvxstructreg[text]"``). Columns of X that are n-grams are in no group.

    Parameters
    ----------
    window : int
        Number of consecutive words that are linked with each other, at least 2.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        Names of the columns of X. By default a CountVectorizer is fitted on the documents and kept in `vectorizer_`.
    resolution : float
        Larger values give more and smaller communities; 1 is the modularity of Louvain.
    min_size : int
        Drop communities with fewer words; by default single words are dropped.
    weights : float or function of the sizes, optional
        Weights of the groups; 1 by default.
    random_state : int, optional
    verbose : bool
        Whether to print progress.

    Attributes
    ----------
    groups_ : Groups
        Largest community first.
    cooccurrence_ : scipy.sparse.csr_array
        The matrix W of the collection graph.
    modularity_ : float
    n_merged_ : int
    vectorizer_ : the vectorizer whose columns are grouped

    Examples
    --------
    >>> documents = ["moon star sky", "sky star", "bread salt oven", "oven bread"]
    >>> builder = GraphOfWordsGroups(window=3, random_state=0).fit(documents)
    >>> sorted([builder.groups_.feature_names[j] for j in group] for group in builder.groups_)
    [['bread', 'oven', 'salt'], ['moon', 'sky', 'star']]
    """

    def __init__(
        self,
        window: int = 4,
        vocabulary: Any = None,
        resolution: float = 1.0,
        min_size: int = 2,
        weights: Weights = None,
        random_state: int | None = None,
        verbose: bool = False,
    ):
        self.window = window
        self.vocabulary = vocabulary
        self.resolution = resolution
        self.min_size = min_size
        self.weights = weights
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, documents: Sequence[str], y: Any = None) -> Self:
        """Count the windows of the documents and find the communities; y is not used."""
        window = checked_integer(self.window, 2, "window")
        min_size = checked_integer(self.min_size, 1, "min_size")
        if not (isinstance(self.resolution, int | float) and 0 < self.resolution < np.inf):
            raise ValueError(f"resolution must be positive and finite, not {self.resolution!r}")
        texts = checked_documents(documents)
        words = Words(self.vocabulary, texts)
        self.vectorizer_ = words.vectorizer
        sequences = [words.sequence(text) for text in progress(texts, "words of documents", len(texts), self.verbose)]
        self.cooccurrence_ = window_counts(sequences, window, len(words.names))
        if self.cooccurrence_.nnz == 0:
            raise ValueError(f"no two words of the vocabulary occur within {plural(window, 'word')} of each other")
        labels, self.modularity_ = _louvain(self.cooccurrence_, float(self.resolution), self.random_state)
        occurring = np.unique(np.concatenate([np.array(s, dtype=np.int64) for s in sequences]))
        members = _communities(labels[occurring], occurring, min_size)
        self._set_groups(members, len(words.names), self.weights, feature_names=words.names)
        return self


def window_counts(sequences: Sequence[Sequence[int]], window: int, n_words: int) -> sparse.csr_array:
    """W_ij = how often i and j are less than `window` places apart in a sequence; symmetric, with zero diagonal.

    Examples
    --------
    >>> window_counts([[0, 1, 2], [1, 0]], window=2, n_words=3).toarray()
    array([[0., 2., 0.],
           [2., 0., 1.],
           [0., 1., 0.]])
    """
    gap = np.full(window, -1, dtype=np.int64)  # no window crosses from one sequence into the next
    stream = np.concatenate([part for s in sequences for part in (np.array(s, dtype=np.int64), gap)] or [gap])
    total = sparse.csr_array((n_words, n_words))
    for apart in range(1, window):
        one, other = stream[:-apart], stream[apart:]
        linked = (one >= 0) & (other >= 0) & (one != other)
        ends = (one[linked], other[linked])
        total = total + sparse.coo_array((np.ones(len(ends[0])), ends), shape=(n_words, n_words)).tocsr()
    return sparse.csr_array(total + total.T)


def _louvain(W: sparse.csr_array, resolution: float, random_state: int | None) -> tuple[NDArray[np.int64], float]:
    """Return the community of each node and the modularity."""
    igraph = optional_import("igraph", "text", "finding communities in the graph of words")
    upper = sparse.coo_array(sparse.triu(W, k=1))
    edges = np.column_stack([upper.row, upper.col])
    graph = igraph.Graph(n=W.shape[0], edges=edges, directed=False)
    igraph.set_random_number_generator(random.Random(random_state))
    try:
        found = graph.community_multilevel(weights=upper.data.tolist(), resolution=resolution)
    finally:
        igraph.set_random_number_generator(random)
    return np.array(found.membership, dtype=np.int64), float(found.modularity)


def _communities(labels: NDArray[np.int64], words: NDArray[np.int64], min_size: int) -> list[NDArray[np.int64]]:
    """Return the words of each community that is large enough, the largest first."""
    groups = [words[labels == label] for label in np.unique(labels)]
    return sorted((group for group in groups if len(group) >= min_size), key=lambda g: (-len(g), int(g[0])))
