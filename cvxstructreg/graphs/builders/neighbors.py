"""Graphs that link examples to their nearest neighbours, for manifold methods."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.building.vocabulary import check_choice
from cvxstructreg.core.checks import plural
from cvxstructreg.graphs.builders.builder import MAX_FLOAT, GraphBuilder, checked_neighbors, checked_number
from cvxstructreg.graphs.graph import Graph

# Squared distances count as equal if they differ by less than this fraction of the squared norms of the rows.
EQUAL = 1e-11
# Most distances that are in memory at the same time.
BLOCK_ENTRIES = 4_000_000


class NeighborGraph(GraphBuilder):
    """W_ij = 1, exp(-||x_i - x_j||^2 / (2 sigma^2)) or cos(x_i, x_j) if j is among the k nearest of i, or i of j.

    Nodes are the rows of X, labelled or not. As in the experiments of Sindhwani and Goldberg, two examples are linked
    if either is among the nearest neighbours of the other, and sigma is by default the mean length of the edges.

    Parameters
    ----------
    n_neighbors : int
        Neighbours of each example, without the example itself; ties go to the first rows.
    weights : {"binary", "heat", "cosine"}
        The formulas above, in this order. Pairs with a cosine of zero or less are not linked.
    bandwidth : float, optional
        sigma of the heat weights; by default the mean distance of the linked pairs.
    metric : {"euclidean", "cosine"}, optional
        The distance between rows; by default "cosine" for cosine weights, otherwise "euclidean". Heat weights use the
        same distance. The cosine distance is ``||u_i - u_j||``, where u_i is row i scaled to length one.
    symmetrize : {"max", "mean", "min"}
        Link two rows if either is a neighbour of the other (max), likewise but with half the weight if only one is
        (mean), or only if both are (min: mutual neighbours).
    names : sequence of str, optional
        One name for each example.
    verbose : bool
        Whether to print progress.

    Attributes
    ----------
    graph_ : Graph
        Undirected, one node for each row of X.
    bandwidth_ : float or None
        The sigma of the heat weights.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> builder = NeighborGraph(n_neighbors=1, weights="heat").fit(X)
    >>> builder.graph_
    Graph(4 nodes, 3 edges, undirected)
    >>> round(builder.bandwidth_, 3)
    2.333
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        weights: str = "heat",
        bandwidth: float | None = None,
        metric: str | None = None,
        symmetrize: str = "max",
        names: Any = None,
        verbose: bool = False,
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.bandwidth = bandwidth
        self.metric = metric
        self.symmetrize = symmetrize
        self.names = names
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the graph of the rows of X, dense or sparse; y is not used."""
        self._check_parameters()
        metric = self.metric or ("cosine" if self.weights == "cosine" else "euclidean")
        X = self._validated(X)
        k = checked_neighbors(self.n_neighbors, X.shape[0], "n_samples")
        if self.verbose:
            print(f"{plural(k, 'nearest neighbour')} of {plural(X.shape[0], 'row')} ...", flush=True)
        points = unit_rows(X) if metric == "cosine" else X
        nearest, distances = nearest_neighbors(points, k)
        i = np.repeat(np.arange(len(nearest)), k)
        values = self._edge_weights(X, i, nearest.ravel(), distances.ravel())
        W = sparse.csr_array((values, (i, nearest.ravel())), shape=(len(nearest), len(nearest)))
        self.graph_ = Graph(W, self.names).symmetrized(self.symmetrize)
        return self

    def _check_parameters(self) -> None:
        check_choice(self.weights, ("binary", "heat", "cosine"), "weights")
        check_choice(self.symmetrize, ("max", "mean", "min"), "symmetrize")
        if self.metric is not None:
            check_choice(self.metric, ("euclidean", "cosine"), "metric")
        if self.bandwidth is not None and not checked_number(self.bandwidth, 0.0, MAX_FLOAT, "bandwidth"):
            raise ValueError("bandwidth must be positive, or None for the mean length of the edges")

    def _edge_weights(
        self, X: Any, i: NDArray[np.int64], j: NDArray[np.int64], distances: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        self.bandwidth_ = None
        if self.weights == "binary":
            return np.ones(len(i))
        if self.weights == "cosine":
            unit = unit_rows(X)
            products = unit[i] * unit[j]
            return np.maximum(np.asarray(products.sum(axis=1)), 0.0)
        self.bandwidth_ = self.bandwidth or _mean_edge_length(i, j, distances)
        return np.asarray(np.exp(-(distances**2) / (2.0 * self.bandwidth_**2)))


def nearest_neighbors(points: Any, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return indices and Euclidean distances (n x k) of the k nearest other rows of each row, nearest first.

    Ties up to round-off go to the first rows, so the result is the same on every machine. The search finds one more
    neighbour than k, to detect ties that it may have left out; then the distances to all rows are computed.
    """
    from sklearn.metrics.pairwise import euclidean_distances
    from sklearn.neighbors import NearestNeighbors

    n = points.shape[0]
    squares = np.asarray((points.multiply(points) if sparse.issparse(points) else points * points).sum(axis=1)).ravel()
    far, near = NearestNeighbors(n_neighbors=min(k + 1, n - 1), algorithm="brute").fit(points).kneighbors()
    indices, distances, decided = _first_of_nearest(near.astype(np.int64), far, k, squares[:, None] + squares[near])
    undecided = np.flatnonzero(~decided & (near.shape[1] < n - 1))
    block = max(1, BLOCK_ENTRIES // n)
    for start in range(0, len(undecided), block):
        part = undecided[start : start + block]
        far = euclidean_distances(points[part], points)
        far[np.arange(len(part)), part] = np.inf  # exclude the row itself
        near = np.broadcast_to(np.arange(n), far.shape)
        indices[part], distances[part], _ = _first_of_nearest(near, far, k, squares[part][:, None] + squares)
    return indices, distances


def _first_of_nearest(
    near: NDArray[np.int64], far: NDArray[np.float64], k: int, sizes: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the k nearest, and whether a farther one was given, so that no tie with the k-th is missing."""
    excess = far**2 - np.partition(far, k - 1, axis=1)[:, k - 1 : k] ** 2
    farther = excess > EQUAL * sizes
    level = farther + (excess >= -EQUAL * sizes).astype(np.int8)  # 0 for nearer, 1 for as near, 2 for farther
    chosen = np.lexsort((near, level))[:, :k]
    near, far = np.take_along_axis(near, chosen, axis=1), np.take_along_axis(far, chosen, axis=1)
    order = np.lexsort((near, far))
    all_given = np.asarray(farther.any(axis=1))
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(far, order, axis=1), all_given


def unit_rows(X: Any) -> Any:
    """Return X with rows scaled to length one; zero rows stay zero."""
    squares = (X.multiply(X) if sparse.issparse(X) else X * X).sum(axis=1)
    lengths = np.sqrt(np.asarray(squares)).ravel()
    inverse = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    return sparse.csr_array(sparse.diags_array(inverse) @ X) if sparse.issparse(X) else X * inverse[:, None]


def _mean_edge_length(i: NDArray[np.int64], j: NDArray[np.int64], distances: NDArray[np.float64]) -> float:
    """Mean distance of the linked pairs, each counted once."""
    n = int(max(i.max(), j.max())) + 1
    _, first = np.unique(np.minimum(i, j) * n + np.maximum(i, j), return_index=True)
    mean = float(distances[first].mean())
    if mean == 0.0:
        raise ValueError("all neighbours are at distance zero, so there is no default bandwidth; pass bandwidth=...")
    return mean
