"""Graphs from what a user has: a matrix, pairs, a mapping, an edge table or a networkx graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from cvxstructreg.graphs.alignment import aligned_graph
from cvxstructreg.graphs.graph import Graph
from cvxstructreg.graphs.networkx_bridge import from_networkx


def as_graph(given: Any, owner: str, n_nodes: int | None = None) -> Graph:
    """Return a Graph as it is, and make one of anything that says unambiguously what its edges are.

    Parameters
    ----------
    given : Graph, square matrix, networkx graph, data frame, mapping or sequence of pairs
        A matrix, dense or sparse, has the weights W. A data frame has the weights if it is square with equal names of
        rows and columns, and else one edge in each row: two ends and perhaps a weight. Pairs, or triples with a weight,
        are names or numbers of features. A mapping has weights of pairs, or the neighbours of each feature.
    owner : str
        Who needs the graph, for the message.
    n_nodes : int, optional
        The number of features; by default the largest number in the pairs plus one.

    Examples
    --------
    >>> as_graph([(0, 1), (1, 2)], "FusedLasso")
    Graph(3 nodes, 2 edges, undirected)
    """
    if isinstance(given, Graph):
        return given
    if isinstance(given, Mapping | list | tuple | set | frozenset) and not given:
        raise ValueError(
            f"{owner} needs a graph, got an empty {type(given).__name__}, which names no features; for d features "
            "without edges pass Graph.from_edges([], n_nodes=d), or leave the graph out"
        )
    if hasattr(given, "edges") and hasattr(given, "is_directed"):
        return from_networkx(given)
    if hasattr(given, "columns") and hasattr(given, "to_numpy"):
        return _from_table(given, n_nodes)
    if isinstance(given, Mapping):
        return _from_edges(_edges_of_mapping(given), n_nodes)
    if sparse.issparse(given) or _is_matrix(given):
        return Graph(given)
    if isinstance(given, np.ndarray | list | tuple | set | frozenset) and len(given):
        rows = [tuple(row) if np.ndim(row) == 1 or isinstance(row, tuple) else (row,) for row in given]
        if {len(row) for row in rows} <= {2, 3}:
            return _from_edges(rows, n_nodes)
    raise TypeError(
        f"{owner} needs a Graph, got {type(given).__name__}; pass Graph(W), a square matrix, pairs of features "
        "(names or numbers), a data frame of edges, or a networkx graph"
    )


def is_graph_like(given: Any) -> bool:
    """Whether :func:`as_graph` could make a graph of it, and not a number or a tuple of numbers."""
    if isinstance(given, Graph) or hasattr(given, "edges") or hasattr(given, "columns") or sparse.issparse(given):
        return True
    if isinstance(given, np.ndarray):
        return given.ndim == 2
    return isinstance(given, list | tuple | set | frozenset) and any(np.ndim(row) == 1 for row in given)


class OnGraph:
    """The part of a penalty with the field ``graph`` that finds the features of the data by their names."""

    graph: Any

    @property
    def needs_names(self) -> bool:
        """Whether the features are known by name only: those of a table of edges or of pairs of names."""
        return bool(getattr(self.graph, "by_name", False))

    def aligned(self, names: tuple[str, ...]) -> Self:
        """The same penalty on features of these names, in this order; features without a node have no edges."""
        return replace(self, graph=aligned_graph(self.graph, names, missing="error"))  # type: ignore[type-var]


def _named(graph: Graph) -> Graph:
    """Mark a graph whose order of nodes is only that in which they were met."""
    graph.by_name = True  # type: ignore[attr-defined]
    return graph


def _is_matrix(given: Any) -> bool:
    """Whether this is a square matrix of numbers; lists could also be pairs, unless they are symmetric."""
    if isinstance(given, np.ndarray):
        return given.ndim == 2 and given.shape[0] == given.shape[1] and given.dtype.kind in "biuf"
    if not isinstance(given, list) or not all(isinstance(row, list) and len(row) == len(given) for row in given):
        return False
    matrix = np.array(given)
    return matrix.dtype.kind in "biuf" and not matrix.diagonal().any() and np.array_equal(matrix, matrix.T)


def _edges_of_mapping(given: Mapping[Any, Any]) -> list[tuple[Any, ...]]:
    """The edges of {(i, j): weight}, {i: [j, ...]} or {i: {j: weight}}; a pair given from both ends counts once."""
    if all(isinstance(key, tuple) and len(key) == 2 for key in given):
        return [(*pair, weight) for pair, weight in given.items()]
    found: dict[tuple[Any, Any], tuple[Any, ...]] = {}
    for node, neighbours in given.items():
        if isinstance(neighbours, str) or not isinstance(neighbours, Iterable):
            raise TypeError(f"the neighbours of {node!r} must be a list or a mapping to weights, got {neighbours!r}")
        weights = neighbours if isinstance(neighbours, Mapping) else dict.fromkeys(neighbours, 1.0)
        for other, weight in weights.items():
            if (other, node) not in found:
                found[node, other] = (node, other, weight)
    return list(found.values())


def _from_edges(rows: list[tuple[Any, ...]], n_nodes: int | None) -> Graph:
    """The graph of pairs (i, j) or triples (i, j, weight) of names or numbers of nodes."""
    weights = np.array([row[2] if len(row) == 3 else 1.0 for row in rows], dtype=float)
    if all(isinstance(end, str) for row in rows for end in row[:2]):
        return _named(Graph.from_edges([(str(row[0]), str(row[1])) for row in rows], weights))
    pairs = np.array([row[:2] for row in rows])
    if pairs.dtype.kind == "f" and np.all(pairs == np.round(pairs)):  # numbers beside weights in one array
        pairs = pairs.astype(np.int64)
    return Graph.from_edges(pairs, weights, n_nodes)


def _from_table(table: Any, n_nodes: int | None) -> Graph:
    """The graph of a data frame: a square one with equal names has the weights, any other one has the edges."""
    names = [str(name) for name in table.columns]
    index = [str(name) for name in getattr(table, "index", [])]
    values = table.to_numpy()
    if names == index and values.shape[0] == values.shape[1]:
        numbered = names == [str(i) for i in range(len(names))]
        return Graph(np.asarray(values, dtype=float), names=None if numbered else names)
    if len(names) not in (2, 3):
        raise ValueError(
            f"an edge table has two columns of ends and perhaps one of weights, got {len(names)} columns {names[:5]}"
        )
    weights = [1.0] * len(values) if len(names) == 2 else [float(weight) for weight in values[:, 2]]
    ends = values[:, :2]
    if all(isinstance(end, str) for end in ends.ravel()):
        return _from_edges([(i, j, w) for (i, j), w in zip(ends.tolist(), weights, strict=True)], n_nodes)
    return _from_edges([(int(i), int(j), w) for (i, j), w in zip(ends.tolist(), weights, strict=True)], n_nodes)
