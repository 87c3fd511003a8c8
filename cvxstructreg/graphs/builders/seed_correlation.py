"""Features with similar correlations with seed words (Sandler, Talukdar, Ungar and Blitzer, NIPS 2008, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.building.vocabulary import ColumnFinder, check_choice
from cvxstructreg.core.checks import plural
from cvxstructreg.graphs.builders.builder import GraphBuilder, checked_neighbors
from cvxstructreg.graphs.builders.neighbors import nearest_neighbors, unit_rows
from cvxstructreg.graphs.graph import Graph

# A variance below this fraction of the mean square is round-off: the column is constant.
ROUND_OFF = 1e-12


class SeedCorrelationGraph(GraphBuilder):
    """W_ij = 1 if i and j are mutual k-nearest neighbours, as vectors of correlations with the seeds.

    Feature i is represented by the vector r_i of Pearson correlations, over the rows of X, of column i with each seed
    column. Two features are linked, with weight one, if each is among the `n_neighbors` nearest of the other. The graph
    is undirected. Constant columns have no correlation and are isolated nodes.

    Parameters
    ----------
    seeds : sequence of names or column numbers
        The paper uses about 200 sentiment words; see `sentiment_seeds`.
    n_neighbors : int
        100 in the paper; ties go to the first features.
    metric : {"euclidean", "cosine"}
        Distance of two vectors of correlations.
    binary : bool
        Whether to correlate presence (X != 0) instead of the values.
    missing : {"ignore", "error"}
        What to do with seeds that are not in the vocabulary.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        Names of the columns of X; needed if seeds are names and X is not a data frame.
    verbose : bool
        Whether to print progress.

    Attributes
    ----------
    graph_ : Graph
        One node for each column of X.
    seeds_ : int64 array
        Columns of the seeds found in the vocabulary, in the given order.
    missing_seeds_ : list of str
        Seeds that are not in the vocabulary.
    correlations_ : array of shape (n_features, n_seeds)

    Examples
    --------
    >>> X = np.array([[1, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 1], [0, 0, 3, 2.0]])
    >>> names = ["good", "great", "bad", "awful"]
    >>> builder = SeedCorrelationGraph(["good", "bad", "nice"], n_neighbors=1, vocabulary=names).fit(X)
    >>> builder.missing_seeds_
    ['nice']
    >>> [(names[i], names[j]) for i, j, _ in zip(*builder.graph_.edges())]
    [('good', 'great'), ('bad', 'awful')]
    """

    def __init__(
        self,
        seeds: Iterable[Any] = (),
        n_neighbors: int = 100,
        metric: str = "euclidean",
        binary: bool = False,
        missing: str = "ignore",
        vocabulary: Any = None,
        verbose: bool = False,
    ):
        self.seeds = seeds
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.binary = binary
        self.missing = missing
        self.vocabulary = vocabulary
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph of the columns of X, dense or sparse; y is not used."""
        check_choice(self.metric, ("euclidean", "cosine"), "metric")
        X = self._validated(X)
        d = X.shape[1]
        names = self._column_names(self.vocabulary, d)
        k = checked_neighbors(self.n_neighbors, d, "n_features")
        self.seeds_, self.missing_seeds_ = self._find_seeds(names, d)
        self.correlations_ = column_correlations((X != 0) * 1.0 if self.binary else X, self.seeds_)
        linkable = np.flatnonzero(np.any(self.correlations_ != 0, axis=1))
        if self.verbose:
            print(f"{plural(k, 'nearest neighbour')} of {plural(len(linkable), 'feature')} ...", flush=True)
        self.graph_ = Graph(_mutual_links(self.correlations_, linkable, k, self.metric), names)
        return self

    def _find_seeds(self, names: Any, d: int) -> tuple[NDArray[np.int64], list[str]]:
        if isinstance(self.seeds, str):
            raise TypeError(f"seeds must be a list of names or columns, not the single string {self.seeds!r}")
        found, unknown = ColumnFinder(names, d, self.missing).find(self.seeds, "seed")
        if len(found) == 0:
            given = f"none of the {plural(len(unknown), 'seed')}" if unknown else "no seed"
            raise ValueError(f"{given} is in the vocabulary; pass seeds that occur among the columns of X")
        return found[np.sort(np.unique(found, return_index=True)[1])], unknown


def column_correlations(X: Any, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return Pearson correlations of each column with each chosen one, 0 for constant columns; X stays sparse."""
    n = X.shape[0]
    columns = sparse.csc_array(X)[:, chosen] if sparse.issparse(X) else X[:, chosen]
    products = X.T @ columns
    products = products.toarray() if sparse.issparse(products) else products
    means = np.asarray(X.sum(axis=0)).ravel() / n
    squares = np.asarray((X.multiply(X) if sparse.issparse(X) else X * X).sum(axis=0)).ravel() / n
    variances = squares - means**2
    varies = variances > ROUND_OFF * squares
    inverse = np.divide(1.0, np.sqrt(variances.clip(0)), out=np.zeros(len(means)), where=varies)
    centred = products / n - np.outer(means, means[chosen])
    return np.asarray(centred * inverse[:, None] * inverse[chosen])


def _mutual_links(points: NDArray[np.float64], linkable: NDArray[np.int64], k: int, metric: str) -> sparse.csr_array:
    """Return 1 for pairs of linkable rows that are among the k nearest of each other."""
    d, n = len(points), len(linkable)
    if n < 2:
        return sparse.csr_array((d, d))
    k = min(k, n - 1)
    vectors = points[linkable]
    nearest, _ = nearest_neighbors(unit_rows(vectors) if metric == "cosine" else vectors, k)
    near = sparse.csr_array((np.ones(n * k), nearest.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    mutual = sparse.coo_array(near.multiply(near.T))
    return sparse.csr_array((mutual.data, (linkable[mutual.row], linkable[mutual.col])), shape=(d, d))
