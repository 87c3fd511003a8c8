"""Pairs of examples from different classes, and graphs that contain them (Goldberg, Zhu and Wright 2007)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cvxstructreg.building.vocabulary import check_choice
from cvxstructreg.core.checks import check_range, indices_of, plural, show, weight_array
from cvxstructreg.graphs.graph import Graph
from cvxstructreg.graphs.weight_matrix import pair_indices


def mixed_graph(graph: Graph, pairs: Any, weights: ArrayLike | None = None, conflict: str = "replace") -> Graph:
    """W_st = -weight for each pair (s, t); all other edges are those of the graph.

    Parameters
    ----------
    graph : Graph
        Undirected; similarity of the examples, such as ``NeighborGraph().fit(X).graph_``.
    pairs : sequence of (node, node)
        Dissimilar examples, by index or name. A pair given twice counts once, with its largest weight.
    weights : float or one per pair, optional
        Strength of the dissimilarity, > 0; 1 by default.
    conflict : {"replace", "error"}
        What to do if a pair is already linked: replace the edge by the dissimilarity, or raise an error.

    Examples
    --------
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], n_nodes=4)
    >>> mixed_graph(graph, [(0, 3), (1, 2)])
    Graph(4 nodes, 3 edges: 1 similar, 2 dissimilar, undirected)
    """
    check_choice(conflict, ("replace", "error"), "conflict")
    if not isinstance(graph, Graph):
        raise TypeError(f"expected a Graph, not {type(graph).__name__}; wrap it: Graph(weights)")
    if graph.is_directed:
        raise ValueError("pairs can only be added to an undirected graph; use graph.symmetrized()")
    ends = np.sort(pair_indices(pairs, graph.names), axis=1)
    check_range(ends, graph.n_nodes, "node", "pairs")
    values = weight_array(weights, len(ends), "pair")
    good = np.isfinite(values) & (values > 0)
    if not good.all():
        raise ValueError(f"weights of pairs must be positive and finite, not {values[~good][0]}")
    ends, values = _largest(ends, values, graph.n_nodes)
    W = graph.weights
    linked = np.flatnonzero(np.asarray(W[ends[:, 0], ends[:, 1]]) != 0) if len(ends) else ends[:, 0]
    if len(linked) and conflict == "error":
        edge = show(graph.names, *ends[linked[0]])
        raise ValueError(f'pair ({edge}) is already linked ({len(linked)} such); use conflict="replace"')
    taken = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=W.shape)
    added = sparse.csr_array((-values, (ends[:, 0], ends[:, 1])), shape=W.shape)
    return Graph(W - W.multiply(taken + taken.T) + added + added.T, graph.names, graph.virtual)


def oracle_pairs(
    y: ArrayLike,
    n_pairs: int,
    rows: ArrayLike | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> NDArray[np.int64]:
    """Draw n_pairs distinct pairs (s, t), s < t, with y_s != y_t, each such pair equally likely.

    This is for experiments in which an oracle gives pairs of examples from different classes, but not the classes.

    Parameters
    ----------
    y : sequence of labels
        The labels of all examples.
    n_pairs : int
    rows : indices, optional
        Draw from these examples only, such as the unlabelled ones.
    random_state : int, Generator or RandomState, optional

    Returns
    -------
    pairs : int64 array of shape (n_pairs, 2)
        Indices of the examples in y, in random order: the first m pairs are a random draw of m pairs.

    Examples
    --------
    >>> sorted(oracle_pairs(["cat", "cat", "dog"], n_pairs=2, random_state=0).tolist())
    [[0, 2], [1, 2]]
    """
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be one-dimensional, one label per example, not of shape {labels.shape}")
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError(f"y[{int(np.argmax(np.isnan(labels)))}] is NaN; draw from the labelled examples with rows=...")
    chosen = np.arange(len(labels)) if rows is None else np.unique(indices_of(np.asarray(rows), None, "row"))
    check_range(chosen, len(labels), "example", "rows")
    if not isinstance(n_pairs, int | np.integer) or n_pairs < 0:
        raise ValueError(f"n_pairs must be an integer of at least 0, not {n_pairs!r}")
    _, group, sizes = np.unique(labels[chosen], return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(sizes)[group[order]]
    # in this order the partners of position p are all positions after the end of its class
    n_partners = len(chosen) - ends
    offsets = np.concatenate([[0], np.cumsum(n_partners)])
    if n_pairs > offsets[-1]:
        given = f"{plural(len(chosen), 'example')} with {plural(len(sizes), 'label')}"
        raise ValueError(
            f"{given} have {plural(offsets[-1], 'pair')} of different classes, fewer than n_pairs={n_pairs}"
        )
    rank = _generator(random_state).choice(offsets[-1], size=n_pairs, replace=False)
    first = np.searchsorted(offsets, rank, side="right") - 1
    second = ends[first] + rank - offsets[first]
    return np.sort(chosen[order[np.column_stack([first, second])]], axis=1)


def _largest(
    ends: NDArray[np.int64], values: NDArray[np.float64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return each pair once, with its largest value."""
    keys, pair = np.unique(ends[:, 0] * n + ends[:, 1], return_inverse=True)
    largest = np.zeros(len(keys))
    np.maximum.at(largest, pair, values)
    return np.column_stack([keys // n, keys % n]), largest


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint64))
    return np.random.default_rng(random_state)
