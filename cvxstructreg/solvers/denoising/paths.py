"""The edges of a chain, a grid or a volume as sets of paths that share no node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array

#: Distinct distances between the numbers of neighbours: one for a chain, two for an image, three for a volume.
MOST_DIRECTIONS = 6


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths first, first + offset, ... that share no node and cover all: their first nodes, in order, and lengths.

    ``edges[i]`` is the row of K between i and i + offset, -1 at the end of a path, and ``signs[i]`` is +1 if this row
    is (w_i - w_(i + offset)) times its weight.
    """

    offset: int
    first: np.ndarray
    lengths: np.ndarray
    edges: np.ndarray
    signs: Array
    sizes: Array

    def strengths(self, weights: Array) -> Array:
        """The strength of the edge from each node for weights of the rows of K; 0 at the end of a path."""
        return np.where(self.edges >= 0, weights[self.edges] * self.sizes, 0.0)


def directions(K: Any) -> list[Paths] | None:
    """The rows of K by the distance of their two nodes; None if some row is no difference, or there are too many.

    All edges (i, i + o) with one distance o form paths i, i + o, i + 2 o, ... that share no node.
    """
    K = K.tocsr()
    if K.shape[0] == 0 or np.any(np.diff(K.indptr) != 2):
        return None
    chain = _chain(K)
    if chain is not None:
        return [chain]
    pairs, values = K.indices.reshape(-1, 2).astype(np.int64), K.data.reshape(-1, 2)
    if np.any(values[:, 0] != -values[:, 1]) or np.any(values[:, 0] == 0) or np.any(pairs[:, 0] == pairs[:, 1]):
        return None
    flipped = pairs[:, 0] > pairs[:, 1]
    first, second = np.where(flipped, pairs[:, 1], pairs[:, 0]), np.where(flipped, pairs[:, 0], pairs[:, 1])
    values_first = np.where(flipped, values[:, 1], values[:, 0])
    distance = second - first
    parts: list[Paths] = []
    rest = np.arange(len(first))
    while rest.size:
        same = distance[rest] == distance[rest[0]]
        chosen = rest[same]
        paths = _paths(K.shape[1], int(distance[rest[0]]), first[chosen], chosen, values_first[chosen])
        if paths is None or len(parts) == MOST_DIRECTIONS:
            return None
        parts.append(paths)
        rest = rest[~same]
    return parts


def _chain(K: Any) -> Paths | None:
    """The only path of a chain whose edge i joins the nodes i and i + 1, in a few passes; None for other edges."""
    m, n = K.shape
    if m != n - 1:
        return None
    nodes, pairs, values = np.arange(n, dtype=np.int64), K.indices.reshape(-1, 2), K.data.reshape(-1, 2)
    if not (np.array_equal(pairs[:, 0], nodes[:m]) and np.array_equal(pairs[:, 1], nodes[1:])):
        return None
    if np.any(values[:, 0] != -values[:, 1]) or not np.all(values[:, 0]):
        return None
    edges, value = nodes.copy(), np.zeros(n)
    edges[m], value[:m] = -1, values[:, 0]
    return Paths(1, np.array([0]), np.array([n]), edges, np.sign(value), np.abs(value))


def _paths(n: int, offset: int, first: np.ndarray, rows: np.ndarray, values: Array) -> Paths | None:
    """The paths over the edges (i, i + offset) for i in ``first``; None if an edge is there twice."""
    edges, value = np.full(n, -1, dtype=np.int64), np.zeros(n)
    edges[first], value[first] = rows, values
    if np.count_nonzero(edges >= 0) < len(first):
        return None
    # nodes by their remainder, so that i + offset follows i; numbers from n on fill the last row
    steps = -(-n // offset)
    last = np.ones(steps * offset, dtype=bool)
    last[:n] = edges < 0
    ends = np.flatnonzero(last.reshape(steps, offset).T)
    starts = np.concatenate([[0], ends[:-1] + 1])
    begin, lengths = starts // steps + offset * (starts % steps), ends - starts + 1
    order = np.argsort(begin)
    order = order[begin[order] < n]  # the first of neighbours in memory are in paths that follow each other
    return Paths(offset, begin[order], lengths[order], edges, np.sign(value), np.abs(value))
