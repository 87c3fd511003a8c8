"""Plot of weights on a graph of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cvxstructreg.graphs import Graph
from cvxstructreg.plots.canvas import DISSIMILAR, SIMILAR, axes_for, signed_colours
from cvxstructreg.plots.layout import spread_nodes
from cvxstructreg.runtime.optional import optional_import

POINTS_PER_INCH = 72.0
#: Half the size of a node, of a letter (width) and of a line of text (height), in points.
NODE, LETTER, LINE = 6.0, 3.0, 5.0
#: Distance of a name from the centre of its node, beside it and above or below it, in points.
BESIDE, ABOVE = 9.0, 13.0
#: Up to so many nodes have markers of full size; the area of others shrinks, at most to this part.
FULL_SIZE, SMALLEST = 100, 0.2


def feature_graph(
    graph: Graph,
    coef: Any,
    n_shown: int = 60,
    positions: Any = None,
    n_named: int = 20,
    random_state: int = 0,
    ax: Any = None,
) -> Any:
    """Draw a graph with weights as colours; selected features are discs, others are small rings.

    Similarity edges are grey, dissimilarity edges purple and dashed.

    Parameters
    ----------
    graph : Graph
        Its features correspond to ``coef``; virtual nodes are drawn as squares.
    coef : array of shape (d,)
        The weights.
    n_shown : int
        Most features to draw: those with the largest weights, then their neighbours. If the graph is larger, all other
        features are left out.
    positions : dict or array of (x, y), optional
        Positions of the nodes; by default each connected part is laid out by springs (which needs networkx), and nodes
        without an edge come below them.
    n_named : int
        Number of selected features that are labelled with their names.
    random_state : int
        Seed of the layout.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> graph = csr.Graph.from_edges([(0, 1), (1, 2)], names=["up", "rise", "fall"])
    >>> ax = feature_graph(graph, [1.0, 0.5, 0.0], positions=[(0, 0), (1, 0), (2, 0)])
    >>> sorted(text.get_text() for text in ax.texts)
    ['rise', 'up']
    """
    weights = np.asarray(coef, dtype=float)
    if weights.shape != (graph.n_features,):
        raise ValueError(
            f"coef must have one weight for each of {graph.n_features} features, got shape {weights.shape}"
        )
    values = np.zeros(graph.n_nodes)
    values[graph.features] = weights
    shown = _shown(graph, values, n_shown)
    at = _positions(graph, shown, positions, random_state)
    ax = axes_for(ax, figsize=(7.0, 4.8))
    _draw_edges(ax, graph, shown, at, faint=len(shown) > FULL_SIZE)
    colours, mapping = signed_colours(values[shown])
    virtual, selected = np.isin(shown, graph.virtual), values[shown] != 0
    shrink = max(SMALLEST, min(1.0, FULL_SIZE / len(shown)))  # many nodes need smaller markers
    for kept, marker, size in ((selected & ~virtual, "o", 120), (~selected & ~virtual, "o", 25), (virtual, "s", 60)):
        if kept.any():
            look = {"c": colours[kept], "s": shrink * size, "marker": marker, "linewidths": 0.6 * np.sqrt(shrink)}
            ax.scatter(*at[kept].T, edgecolors="black", zorder=2, **look)
    names = graph.names or tuple(map(str, range(graph.n_nodes)))
    largest = sorted(np.flatnonzero(selected), key=lambda i: -abs(values[shown[i]]))[:n_named]
    ax.figure.colorbar(mapping, ax=ax, label="weight", shrink=0.7)
    ax.margins(0.1)
    _write_names(ax, [names[shown[i]] for i in largest], at[largest])
    ax.set_axis_off()
    hidden = graph.n_nodes - len(shown)
    title = f"{int((values != 0).sum())} of {graph.n_features} features selected"
    ax.set_title(f"{title}, {hidden} nodes not shown" if hidden else title)
    return ax


def _write_names(ax: Any, names: Sequence[str], at: Any) -> None:
    """Place each name above, below or beside its node, where it covers the fewest other names and nodes.

    Names have a white outline, so that they stay readable on edges.
    """
    effects = optional_import("matplotlib.patheffects", "plots", "a picture")
    rim = [effects.withStroke(linewidth=3.0, foreground="white")]
    points = ax.transData.transform(at) * POINTS_PER_INCH / ax.figure.dpi if len(at) else at
    taken = [(place, np.array([NODE, NODE])) for place in points]  # centres and half sizes in points
    for name, place, node in zip(names, points, at, strict=True):
        half = np.array([LETTER * len(name), LINE])
        aside = BESIDE + half[0]
        around = np.array([(0.0, ABOVE), (0.0, -ABOVE), (aside, 0.0), (-aside, 0.0)])
        offset = around[np.argmin([_n_covered(place + move, half, taken) for move in around])]
        taken.append((place + offset, half))
        ax.annotate(
            name,
            node,
            xytext=offset,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize="small",
            path_effects=rim,
            zorder=3,
        )


def _n_covered(centre: Any, half: Any, taken: Sequence[tuple[Any, Any]]) -> int:
    return sum(bool(np.all(np.abs(centre - other) < half + size)) for other, size in taken)


def _shown(graph: Graph, values: Any, n_shown: int) -> Any:
    """Return the nodes with the largest weights, then their neighbours, at most ``n_shown``."""
    if n_shown < 1:
        raise ValueError(f"n_shown must be at least 1, got {n_shown!r}")
    links = abs(graph.weights) + abs(graph.weights.T)
    near = np.asarray(links @ np.abs(values)).ravel()
    order = np.lexsort((-near, -np.abs(values)))
    if graph.n_nodes <= n_shown:
        return np.sort(order)
    first = order[:n_shown]
    related = (values[first] != 0) | (near[first] > 0)
    return np.sort(first[related] if related.any() else first)


def _positions(graph: Graph, shown: Any, positions: Any, random_state: int) -> Any:
    if positions is not None:
        every = np.array([positions[i] for i in range(graph.n_nodes)]) if isinstance(positions, Mapping) else positions
        every = np.asarray(every, dtype=float)
        if every.shape != (graph.n_nodes, 2):
            raise ValueError(
                f"positions must have one point for each of {graph.n_nodes} nodes, got shape {every.shape}"
            )
        return every[shown]
    links = abs(graph.weights)[shown][:, shown]
    return spread_nodes(links + links.T, random_state)


def _draw_edges(ax: Any, graph: Graph, shown: Any, at: Any, faint: bool) -> None:
    collections = optional_import("matplotlib.collections", "plots", "a picture")
    block = graph.weights[shown][:, shown].tocoo()
    rows, columns = block.coords
    strongest = float(np.abs(block.data).max(initial=0.0)) or 1.0
    for sign, colour, style in ((1, SIMILAR, "solid"), (-1, DISSIMILAR, "dashed")):
        kept = (np.sign(block.data) == sign) & (rows != columns)
        if kept.any():
            lines = np.stack([at[rows[kept]], at[columns[kept]]], axis=1)
            widths = (0.3 + 1.2 * np.abs(block.data[kept]) / strongest) * (0.5 if faint else 1.0)
            ax.add_collection(
                collections.LineCollection(lines, colors=colour, linewidths=widths, linestyles=style, zorder=1)
            )
