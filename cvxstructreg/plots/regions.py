"""Plot of the decision regions of a classifier of two features, with the edges of its graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.graphs import Graph
from cvxstructreg.plots.canvas import DISSIMILAR, MARKERS, PALETTE, SIMILAR, axes_for
from cvxstructreg.runtime.optional import optional_import


def decision_regions(
    classifier: Any,
    X: Any,
    y: Any = None,
    graph: Graph | None = None,
    pairs: Any = None,
    unlabeled: Any = -1,
    resolution: int = 200,
    ax: Any = None,
) -> Any:
    """Plot the decision regions of a classifier in the plane, the examples, and similar and dissimilar (dashed) edges.

    Parameters
    ----------
    classifier : fitted estimator
        Must have ``predict`` and ``classes_``.
    X : array or data frame of shape (n, 2)
        The examples; the column names of a data frame label the axes.
    y : array, optional
        The labels; unlabelled examples (marked ``unlabeled``) are small grey dots.
    graph : Graph, optional
        Edges between the examples; dissimilarity edges have negative weights.
    pairs : array of shape (m, 2), optional
        Dissimilar pairs of examples, if the graph has no dissimilarity edges.
    resolution : int
        Number of grid points in each direction.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.array([0, 1, 1])
    >>> ax = decision_regions(SVC().fit(X, y), X, y, pairs=[(0, 1)])
    >>> ax.get_legend_handles_labels()[1]
    ['dissimilar', 'class 0', 'class 1']
    """
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"X must have two columns, got shape {points.shape}; choose two columns")
    classes = np.asarray(classifier.classes_)
    colours = [PALETTE[number % len(PALETTE)] for number in range(len(classes))]
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.1 * np.where(high > low, high - low, 1.0)
    width, height = high - low + 2.0 * margin
    ax = axes_for(ax, figsize=(7.0, float(np.clip(6.0 * height / width + 1.1, 2.5, 8.0))))
    axis_x, axis_y = (np.linspace(low[j] - margin[j], high[j] + margin[j], resolution) for j in range(2))
    grid = np.stack(np.meshgrid(axis_x, axis_y), axis=-1).reshape(-1, 2)
    codes = np.searchsorted(classes, classifier.predict(grid)).reshape(resolution, resolution)
    edges = np.arange(len(classes) + 1) - 0.5
    ax.contourf(axis_x, axis_y, codes, levels=edges, colors=colours, alpha=0.15)
    _draw_links(ax, points, graph, pairs)
    if y is not None:
        labels = np.asarray(y)
        waiting = labels == unlabeled if unlabeled not in classes else np.zeros(len(labels), dtype=bool)
        if waiting.any():
            ax.scatter(*points[waiting].T, s=8, color="0.5", label="unlabeled", zorder=2)
        for number, (label, colour) in enumerate(zip(classes, colours, strict=True)):
            of_class = (labels == label) & ~waiting
            look = {"marker": MARKERS[number % len(MARKERS)], "color": colour, "edgecolors": "black"}
            if of_class.any():
                ax.scatter(*points[of_class].T, s=70, label=f"class {label}", zorder=3, **look)
    else:
        ax.scatter(*points.T, s=8, color="0.5", zorder=2)
    handles, names = ax.get_legend_handles_labels()
    if names:
        ax.legend(
            handles, names, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False
        )
    ax.set_aspect("equal", adjustable="box")
    names = list(getattr(X, "columns", ("feature 0", "feature 1")))
    ax.set(xlabel=str(names[0]), ylabel=str(names[1]))
    return ax


def _draw_links(ax: Any, points: Any, graph: Graph | None, pairs: Any) -> None:
    similar = dissimilar = np.zeros((0, 2), dtype=int)
    if graph is not None:
        if graph.n_nodes != len(points):
            raise ValueError(
                f"the graph has {graph.n_nodes} nodes, but there are {len(points)} examples; give one node per example"
            )
        first, second, weights = graph.symmetrized().edges()
        links = np.stack([first, second], axis=1)
        similar, dissimilar = links[weights > 0], links[weights < 0]
    if pairs is not None:
        dissimilar = np.concatenate([dissimilar, np.asarray(pairs, dtype=int).reshape(-1, 2)])
    collections = optional_import("matplotlib.collections", "plots", "a picture")
    for links, colour, style, width, label in (
        (similar, SIMILAR, "solid", 0.7, "similar"),
        (dissimilar, DISSIMILAR, "dashed", 1.3, "dissimilar"),
    ):
        if len(links):
            look = {"colors": colour, "linewidths": width, "linestyles": style}
            ax.add_collection(collections.LineCollection(points[links], label=label, zorder=1.5, **look))
