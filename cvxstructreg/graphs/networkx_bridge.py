"""Conversion of graphs from and to networkx."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from cvxstructreg.graphs.alignment import aligned_graph
from cvxstructreg.graphs.graph import Graph
from cvxstructreg.runtime.optional import optional_import


def from_networkx(network: Any, vocabulary: Any = None, weight: str = "weight", missing: str = "ignore") -> Graph:
    """W_ij = the edge attribute `weight`, 1 if an edge has none; the weights of parallel edges are added.

    Parameters
    ----------
    network : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        If the nodes are 0, 1, ..., n-1, they keep these indices and have no names. Otherwise they keep the order of the
        network, with ``str(node)`` as names. Nodes with a true attribute "virtual" become virtual nodes.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column, optional
        Reorder the nodes as the columns of X; see `aligned_graph`.
    weight : str
        Name of the edge attribute; its value is negative for dissimilar nodes.
    missing : {"ignore", "error"}
        What to do with nodes that are not in the vocabulary.

    Examples
    --------
    >>> import networkx as nx
    >>> from_networkx(nx.Graph([("moon", "star"), ("star", "sky")]), ["star", "moon", "salt"])
    Graph(3 nodes, 1 edge, undirected)
    """
    if not hasattr(network, "edges") or not hasattr(network, "is_directed"):
        raise TypeError(f"expected a networkx graph, not {type(network).__name__}; for a matrix use Graph(weights)")
    nodes = list(network.nodes)
    numbered = all(isinstance(node, int | np.integer) for node in nodes) and set(nodes) == set(range(len(nodes)))
    nodes = sorted(nodes) if numbered else nodes
    position = {node: index for index, node in enumerate(nodes)}
    edges = [(position[u], position[v], value) for u, v, value in network.edges(data=weight, default=1.0)]
    for u, v, value in edges:
        if not isinstance(value, int | float | np.number):
            raise TypeError(f"edge ({nodes[u]!r}, {nodes[v]!r}) has the {weight} {value!r}, which is not a number")
    i, j, values = (np.array(part) for part in zip(*edges, strict=True)) if edges else (np.zeros(0, int),) * 3
    W = sparse.coo_array((values.astype(float), (i, j)), shape=(len(nodes), len(nodes)))
    if not network.is_directed():
        W = sparse.coo_array(W + W.T)
    virtual = [position[node] for node, mark in network.nodes(data="virtual") if mark]
    graph = Graph(W, None if numbered else [str(node) for node in nodes], virtual)
    return graph if vocabulary is None else aligned_graph(graph, vocabulary, missing)


def to_networkx(graph: Graph) -> Any:
    """Return a networkx.Graph, or DiGraph if directed, with the edge attribute "weight"; virtual nodes are marked.

    Nodes are the names, or 0, 1, ... if there are none.

    Examples
    --------
    >>> network = to_networkx(Graph.from_edges([("moon", "star")], -2.0, names=["moon", "star"]))
    >>> network["moon"]["star"]
    {'weight': -2.0}
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"expected a Graph, not {type(graph).__name__}; wrap it: Graph(weights)")
    nx = optional_import("networkx", "networks", "to_networkx")
    network = nx.DiGraph() if graph.is_directed else nx.Graph()
    nodes = range(graph.n_nodes) if graph.names is None else graph.names
    virtual = set(graph.virtual.tolist())
    for index, node in enumerate(nodes):
        network.add_node(node, **({"virtual": True} if index in virtual else {}))
    i, j, w = (part.tolist() for part in graph.edges())
    network.add_weighted_edges_from((nodes[a], nodes[b], c) for a, b, c in zip(i, j, w, strict=True))
    return network
