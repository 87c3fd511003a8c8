"""Align graphs with the columns of X, by name."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cvxstructreg.building.vocabulary import ColumnFinder, vocabulary_names
from cvxstructreg.core.checks import chosen_names, plural
from cvxstructreg.graphs.files import FilePath, read_edge_list
from cvxstructreg.graphs.graph import Graph


def aligned_graph(graph: Graph, vocabulary: Any, missing: str = "ignore") -> Graph:
    """Return the graph on the columns of X: nodes in the order of the vocabulary, virtual nodes after them.

    Words of the vocabulary that are not in the graph become isolated nodes.

    Parameters
    ----------
    graph : Graph
        Its nodes must have names.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column
    missing : {"ignore", "error"}
        What to do with nodes that are not in the vocabulary; an ignored node is removed with its edges.

    Examples
    --------
    >>> graph = Graph.from_edges([("a", "b"), ("b", "c")], [1.0, 2.0], names=["a", "b", "c"])
    >>> aligned_graph(graph, ["c", "d", "b"]).weights.toarray()
    array([[0., 0., 2.],
           [0., 0., 0.],
           [2., 0., 0.]])
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"expected a Graph, not {type(graph).__name__}; wrap it: Graph(weights, names=...)")
    if graph.names is None:
        raise ValueError("the nodes of the graph have no names; create it with Graph(weights, names=...)")
    names = vocabulary_names(vocabulary)
    columns, _ = ColumnFinder(names, len(names), missing).find(graph.feature_names or (), "node")
    position = {name: node for node, name in enumerate(graph.names)}
    virtual = graph.virtual
    old = np.concatenate([[position[names[column]] for column in columns], virtual]).astype(np.int64)
    new = np.concatenate([columns, len(names) + np.arange(len(virtual))])
    part = sparse.coo_array(graph.weights[old][:, old])
    n = len(names) + len(virtual)
    W = sparse.coo_array((part.data, (new[part.row], new[part.col])), shape=(n, n))
    virtual_names = chosen_names(graph.names, virtual) or ()
    return Graph(W, [*names, *virtual_names], virtual=np.arange(len(names), n))


def edge_list_graph(
    edges: FilePath | Sequence[Any],
    vocabulary: Any,
    weights: ArrayLike | None = None,
    directed: bool = False,
    missing: str = "ignore",
) -> Graph:
    """W_ij = sum of the weights of the listed edges between the words i and j of the vocabulary.

    Parameters
    ----------
    edges : file of two or three columns (see `read_edge_list`), or sequence of pairs of names
    vocabulary : fitted vectorizer, sequence of str or dict from name to column
        Names of the columns of X: the nodes of the graph.
    weights : float or one per edge, optional
        1 by default; negative for dissimilar nodes. Not allowed with a file, which contains the weights.
    directed : bool
        Whether (i, j) and (j, i) are different edges.
    missing : {"ignore", "error"}
        What to do with edges whose names are not in the vocabulary.

    Examples
    --------
    >>> edge_list_graph([("moon", "star"), ("star", "galaxy")], ["moon", "star", "table"])
    Graph(3 nodes, 1 edge, undirected)
    """
    names = vocabulary_names(vocabulary)
    if isinstance(edges, str | PathLike):
        if weights is not None:
            raise ValueError("weights are read from the file; leave the argument out")
        pairs, values = read_edge_list(edges)
    else:
        pairs = [tuple(pair) for pair in edges]
        values = np.broadcast_to(np.asarray(1.0 if weights is None else weights, dtype=float), len(pairs)).tolist()
    for pair in pairs:
        if len(pair) != 2:
            raise ValueError(f"an edge has two ends, not {plural(len(pair), 'entry')}: {pair}; pass weights separately")
    ColumnFinder(names, len(names), missing).find((name for pair in pairs for name in pair), "node")
    known = set(names)
    kept = [(pair, value) for pair, value in zip(pairs, values, strict=True) if known.issuperset(pair)]
    return Graph.from_edges(
        [pair for pair, _ in kept],
        [value for _, value in kept],
        names=names,
        directed=directed,
        duplicates="sum",
    )
