"""Features that occur in the same documents (Sandler, Talukdar, Ungar and Blitzer, NIPS 2008, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.graphs.builders.builder import GraphBuilder, checked_neighbors, checked_number, largest_of_rows
from cvxstructreg.graphs.graph import Graph
from cvxstructreg.runtime.progress import progress

# Most entries of the product that are in memory at the same time; 16 bytes each.
BLOCK_ENTRIES = 4_000_000
# A cosine may be below the threshold by this round-off.
ROUND_OFF = 1e-12


class CooccurrenceGraph(GraphBuilder):
    """W_ij = c_ij / sum_j c_ij over the nearest j, with c_ij the cosine of the document sets of i and j.

    With n_ij the number of rows of X in which columns i and j are both nonzero, c_ij = n_ij / sqrt(n_ii n_jj). Each
    feature is linked to the `n_neighbors` other features with the highest cosine, if it reaches the `threshold`. The
    graph is directed, because j may be a neighbour of i without the converse; ``graph_.symmetrized()`` makes it
    undirected. Features that occur in no document or have no neighbours are isolated nodes. The product is computed in
    blocks of sparse rows, so memory does not grow with the square of the number of features.

    Parameters
    ----------
    n_neighbors : int
        Most neighbours of a feature; ties go to the first columns.
    threshold : float from 0 to 1
        Smallest cosine of an edge. The paper uses 25 neighbours and a threshold of 0.10.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        Names of the columns of X; by default the column names of a data frame.
    verbose : bool
        Whether to print progress.

    Attributes
    ----------
    graph_ : Graph
        One node for each column of X.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> vectorizer = CountVectorizer()
    >>> X = vectorizer.fit_transform(["moon and star", "star and moon", "salt and bread"])
    >>> graph = CooccurrenceGraph(n_neighbors=1, vocabulary=vectorizer).fit(X).graph_
    >>> [(graph.names[i], graph.names[j]) for i, j, _ in zip(*graph.edges())]
    [('and', 'moon'), ('bread', 'salt'), ('moon', 'star'), ('salt', 'bread'), ('star', 'moon')]
    """

    def __init__(self, n_neighbors: int = 25, threshold: float = 0.10, vocabulary: Any = None, verbose: bool = False):
        self.n_neighbors = n_neighbors
        self.threshold = threshold
        self.vocabulary = vocabulary
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph of the columns of X, dense or sparse; y is not used."""
        X = self._validated(X)
        d = X.shape[1]
        names = self._column_names(self.vocabulary, d)
        k = checked_neighbors(self.n_neighbors, d, "n_features")
        threshold = checked_number(self.threshold, 0.0, 1.0, "threshold")
        presence = _presence(X)
        blocks = [*_near_pairs(presence, k, threshold, self.verbose)]
        i, j, cosine = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        W = sparse.csr_array((cosine, (i, j)), shape=(d, d))
        W.data /= np.repeat(np.asarray(W.sum(axis=1)), np.diff(W.indptr))
        self.graph_ = Graph(W, names)
        return self


def _presence(X: Any) -> sparse.csr_array:
    """Return 1 where X is nonzero, as integers, so that products are exact counts."""
    ones = sparse.csr_array(X != 0).astype(np.int32)
    ones.eliminate_zeros()
    return ones


def _near_pairs(
    presence: sparse.csr_array, k: int, threshold: float, verbose: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """Yield i, j and cosine of the pairs that are kept, block by block of features i."""
    documents = sparse.csr_array(presence.T)  # row i: the documents of feature i
    roots = np.sqrt(np.diff(documents.indptr))
    inverse = np.divide(1.0, roots, out=np.zeros(len(roots)), where=roots > 0)
    bounds = _block_bounds(documents, np.diff(presence.indptr))
    for low, high in progress(bounds, "co-occurrence", len(roots), verbose, lambda b: b[1] - b[0]):
        counts = documents[low:high] @ presence
        lengths = np.diff(counts.indptr)
        lowest = np.repeat(threshold * (1.0 - ROUND_OFF) * roots[low:high], lengths)
        near = np.flatnonzero(counts.data * inverse[counts.indices] >= lowest)
        i = np.repeat(np.arange(low, high), lengths)[near]
        j = counts.indices[near].astype(np.int64)
        cosine = counts.data[near] / (roots[i] * roots[j])
        others = i != j
        i, j, cosine = i[others], j[others], cosine[others]
        best = largest_of_rows(i, j, cosine, k)
        yield i[best], j[best], cosine[best]


def _block_bounds(documents: sparse.csr_array, document_sizes: NDArray[Any]) -> list[tuple[int, int]]:
    """Return ranges of features whose products have at most BLOCK_ENTRIES entries; a range has at least one feature."""
    d = documents.shape[0]
    entries = np.cumsum(np.minimum(documents @ document_sizes.astype(np.int64), d))
    block = (entries - 1).clip(0) // BLOCK_ENTRIES
    starts = np.flatnonzero(np.concatenate([[True], np.diff(block) > 0]))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), d], strict=True))
