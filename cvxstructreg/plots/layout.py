"""Positions of the nodes of a graph: connected parts side by side, nodes without an edge in rows below."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.runtime.optional import optional_import

#: Space between parts, and between nodes without an edge, in units of the distance between neighbours.
GAP, APART = 1.5, 1.0
#: Width of the picture relative to its height.
ASPECT = 1.5
#: Steps of the layout of a part, for small and for large parts, and what is large.
STEPS, FEWER_STEPS, LARGE = 200, 60, 150


def spread_nodes(links: Any, random_state: int) -> NDArray[np.float64]:
    """Return a point for each node of an undirected graph, given by its (symmetric, nonnegative) weights.

    Each connected part is laid out by springs in a square whose area is proportional to its number of nodes. The
    squares are placed in rows, large parts first. Nodes without an edge would push all others together; they come last,
    in rows of their own.
    """
    count, part = sparse.csgraph.connected_components(links, directed=False)
    sizes = np.bincount(part, minlength=count)
    at = np.zeros((links.shape[0], 2))
    several = [number for number in np.argsort(-sizes, kind="stable") if sizes[number] > 1]
    sides = {number: np.sqrt(sizes[number]) + GAP for number in several}
    lonely = np.flatnonzero(sizes[part] == 1)
    area = sum(side**2 for side in sides.values()) + APART**2 * len(lonely)
    width = max(ASPECT * np.sqrt(area / ASPECT), max(sides.values(), default=0.0), APART)
    across, down, height = 0.0, 0.0, 0.0
    for number in several:
        side = sides[number]
        if across and across + side > width:
            across, down, height = 0.0, down - height, 0.0
        nodes = np.flatnonzero(part == number)
        square = _by_springs(links[nodes][:, nodes], random_state)
        at[nodes] = [across + side / 2, down - side / 2] + square * (side - GAP) / 2
        across, height = across + side, max(height, side)
    if lonely.size:
        per_row = max(1, int(width / APART))
        rows, columns = np.divmod(np.arange(len(lonely)), per_row)
        at[lonely, 0] = APART * (columns + 0.5)
        at[lonely, 1] = down - height - APART * (rows + 0.5)
    return at


def _by_springs(links: Any, random_state: int) -> NDArray[np.float64]:
    """Return the layout of one connected part, within the square from -1 to 1."""
    networkx = optional_import("networkx", "plots", "the layout of a graph")
    n = links.shape[0]
    network = networkx.from_scipy_sparse_array(links)
    steps = STEPS if n <= LARGE else FEWER_STEPS
    layout = networkx.spring_layout(network, k=2.0 / np.sqrt(n), iterations=steps, seed=random_state)
    at = np.array([layout[i] for i in range(n)])
    at = at - (at.max(axis=0) + at.min(axis=0)) / 2
    return np.asarray(at / max(float(np.abs(at).max()), 1e-12))
