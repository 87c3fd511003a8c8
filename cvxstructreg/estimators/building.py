"""Fit graph and group builders on the rows given to ``fit``."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from cvxstructreg.building.builder import Builder
from cvxstructreg.graphs import NeighborGraph
from cvxstructreg.graphs.builders.builder import GraphBuilder
from cvxstructreg.groups.topics import TopicGroups


def fit_column_builder(structure: Any, X: Any, undirected: bool = False) -> Any:
    """Fit a builder on X and return its graph or groups of columns; return any other structure unchanged.

    The builder itself is not changed: a copy is fitted. With ``undirected``, the built graph is symmetrised, because
    the user cannot do so.

    Examples
    --------
    >>> from cvxstructreg.graphs import CooccurrenceGraph
    >>> fit_column_builder(CooccurrenceGraph(n_neighbors=1), [[1.0, 2.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    Graph(3 nodes, 1 edge, undirected)
    """
    if not isinstance(structure, Builder):
        return structure
    name = type(structure).__name__
    if getattr(X, "is_row_blocks", False):
        raise TypeError(
            f"{name} cannot be fitted on blocks of rows; fit it on a sample, and pass its graph_ or groups_"
        )
    if isinstance(structure, NeighborGraph):
        raise TypeError(
            f"{name} links the rows of X, but this estimator needs a graph on its columns; use CooccurrenceGraph"
        )
    if isinstance(structure, GraphBuilder):
        graph = clone(structure).fit(X).graph_
        return graph.symmetrized() if undirected else graph
    if isinstance(structure, TopicGroups):
        return clone(structure).fit(X).groups_
    raise TypeError(
        f"{name} cannot be fitted on X alone: fit it on its own data, such as the documents, and pass its groups_"
    )


def fit_row_builder(structure: Any, X: Any) -> Any:
    """Fit a builder on X and return its graph on the rows; return any other structure unchanged."""
    if not isinstance(structure, Builder):
        return structure
    if isinstance(structure, NeighborGraph):
        return clone(structure).fit(X).graph_
    raise TypeError(f"{type(structure).__name__} does not link the rows of X; give 'knn', NeighborGraph or a Graph")
