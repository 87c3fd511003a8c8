"""How far apart the selected features are in a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csgraph

from cvxstructreg.core.checks import check_range, indices_of
from cvxstructreg.graphs import Graph

# distances are computed from this many features at a time, which limits memory to CHUNK x nodes
CHUNK = 256


@dataclass(frozen=True)
class Separation:
    """Mean distance of selected features in a graph, and the number of pairs in the mean.

    Attributes
    ----------
    mean : float
        The average separation; nan for fewer than two features, or if no pair counts.
    n_selected, n_pairs, n_unreachable : int
        Selected features, pairs of them, and pairs without a path.

    Examples
    --------
    >>> separation = feature_separation([0, 1, 3], Graph.from_edges([(0, 1), (1, 2), (2, 3)]))
    >>> separation.mean, separation.n_pairs
    (2.0, 3)
    """

    mean: float
    n_selected: int
    n_pairs: int
    n_unreachable: int

    def __float__(self) -> float:
        return self.mean

    def __str__(self) -> str:
        return (
            f"average separation {self.mean:.3f} of {self.n_selected} features; "
            f"{self.n_unreachable} of {self.n_pairs} pairs have no path"
        )


def feature_separation(
    selected: ArrayLike, graph: Graph, *, unreachable: str | float = "ignore", length: str = "hops"
) -> Separation:
    """Mean of the shortest-path lengths between all pairs of selected features.

    Parameters
    ----------
    selected : indices or names of features, or boolean mask
        Such as ``selected_features(coef)``. Feature j is the j-th node of the graph that is not virtual.
    graph : Graph
        Edges count in both directions, whatever their sign; paths may go through virtual nodes. To follow only
        similarity edges, pass ``graph.similarity()``.
    unreachable : {"ignore", "infinite", "error"} or float
        The distance of a pair without a path: left out, infinite (so the mean is infinite), an error, or this length.
    length : {"hops", "inverse"}
        The length of an edge: 1, or 1 / |weight|.

    Examples
    --------
    >>> graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], n_nodes=5)
    >>> print(feature_separation([0, 1, 3], graph))
    average separation 2.000 of 3 features; 0 of 3 pairs have no path
    >>> feature_separation([0, 2, 4], graph, unreachable=5).mean
    4.0
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"graph must be a Graph object, not {type(graph).__name__}; use Graph(adjacency)")
    if length not in ("hops", "inverse"):
        raise ValueError(f'length must be "hops" or "inverse", not {length!r}')
    counted = _counted(unreachable)
    nodes = _nodes(selected, graph)
    s = len(nodes)
    n_pairs = s * (s - 1) // 2
    total, reachable = _distances(nodes, graph, length)
    missing = n_pairs - reachable
    if missing and counted == "error":
        raise ValueError(
            f"{missing} of the {n_pairs} pairs of selected features have no path between them; "
            'set their distance: unreachable="ignore", "infinite" or a length'
        )
    if missing and not isinstance(counted, str):
        total, reachable = total + counted * missing, n_pairs
    return Separation(total / reachable if reachable else float("nan"), s, n_pairs, missing)


def average_feature_separation(
    selected: ArrayLike, graph: Graph, *, unreachable: str | float = "ignore", length: str = "hops"
) -> float:
    """Mean shortest path between selected features, as a number; parameters as in `feature_separation`.

    Examples
    --------
    >>> average_feature_separation([0, 2], Graph.from_edges([(0, 1), (1, 2)]))
    2.0
    """
    return feature_separation(selected, graph, unreachable=unreachable, length=length).mean


def _counted(unreachable: str | float) -> str | float:
    if isinstance(unreachable, str):
        if unreachable not in ("ignore", "infinite", "error"):
            raise ValueError(f'unreachable must be "ignore", "infinite", "error" or a length, not {unreachable!r}')
        return float("inf") if unreachable == "infinite" else unreachable
    if isinstance(unreachable, bool) or not isinstance(unreachable, int | float | np.number) or not unreachable >= 0:
        raise ValueError(f"unreachable must be a length of at least 0, not {unreachable!r}")
    return float(unreachable)


def _nodes(selected: ArrayLike, graph: Graph) -> NDArray[np.int64]:
    given = np.atleast_1d(np.asarray(selected))
    if given.ndim != 1:
        raise ValueError(f"selected must be a one-dimensional list of features, not of shape {given.shape}")
    if given.dtype == bool:
        if len(given) != graph.n_features:
            raise ValueError(
                f"selected is a mask of {len(given)} entries, expected {graph.n_features}, one per feature"
            )
        given = np.flatnonzero(given)
    features = indices_of(given, graph.feature_names, "feature")
    check_range(features, graph.n_features, "feature", "selected")
    if len(np.unique(features)) < len(features):
        raise ValueError("selected contains a feature twice; list each feature once, or give a mask")
    return graph.features[features]


def _distances(nodes: NDArray[np.int64], graph: Graph, length: str) -> tuple[Any, int]:
    """Return the sum of the finite distances over pairs of nodes, and their number."""
    lengths = abs(graph.weights)
    if graph.is_directed:
        lengths = lengths.maximum(lengths.T).tocsr()
    if length == "inverse":
        lengths.data = 1.0 / lengths.data
    total, reachable = 0.0, 0
    for start in range(0, len(nodes), CHUNK):
        sources = nodes[start : start + CHUNK]
        # the matrix is symmetric: following the edges in one direction is enough and takes half the time
        distances = csgraph.dijkstra(lengths, directed=True, indices=sources, unweighted=length == "hops")
        # count each pair once: only the columns after the node of the row
        later = np.arange(len(nodes)) > start + np.arange(len(sources))[:, None]
        between = distances[:, nodes]
        finite = np.isfinite(between) & later
        total += float(between[finite].sum())
        reachable += int(finite.sum())
    return total, reachable
