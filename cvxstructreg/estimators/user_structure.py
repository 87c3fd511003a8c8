"""Graphs and groups of columns in the forms that users have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import Any

import numpy as np

from cvxstructreg.graphs import Graph
from cvxstructreg.graphs.builders.pathways import pathway_graph, read_gmt
from cvxstructreg.graphs.conversion import as_graph
from cvxstructreg.groups import Groups
from cvxstructreg.groups.conversion import as_groups
from cvxstructreg.groups.weighted_members import split_weights

GRAPH_FORMS = "a Graph, a square matrix, pairs of features, a data frame of edges, a networkx graph or a .gmt file"
GROUP_FORMS = "a Groups, a list of lists, a dict of lists, a data frame (group, feature) or a .gmt file"


def given_graph(graph: Any, count: int, names: tuple[str, ...] | None) -> Graph | None:
    """Return a Graph from any of its forms; None for None.

    Parameters
    ----------
    graph : Graph, square matrix, pairs, mapping, data frame of edges, networkx graph or path of a .gmt file
        Pairs and tables have names or numbers of columns, and perhaps weights. In a .gmt file, the members of each set
        are linked.
    count, names
        The columns of X.

    Examples
    --------
    >>> given_graph([("a", "b", 2.0)], 3, ("a", "b", "c")).names
    ('a', 'b')
    >>> given_graph([(0, 1)], 3, None).n_nodes
    3
    """
    if graph is None or isinstance(graph, Graph):
        return graph
    if isinstance(graph, str | PathLike):
        path = _gmt_path(graph, "graph", GRAPH_FORMS)
        if names is None:
            raise ValueError(f"{path!r} has names, but X has none: pass a data frame, or feature_names= to fit")
        return pathway_graph(path, names)
    return as_graph(graph, "graph=", count)


def given_groups(groups: Any, count: int, names: tuple[str, ...] | None) -> Groups:
    """Return Groups from any of its forms; their features are matched to the columns later.

    A mapping from features to numbers, in place of a list, has member weights.

    Examples
    --------
    >>> given_groups({"sky": ["moon", "star"]}, 3, ("salt", "star", "moon")).feature_names
    ('moon', 'star')
    """
    if isinstance(groups, Groups):
        return groups
    if isinstance(groups, str | PathLike):
        groups = read_gmt(_gmt_path(groups, "groups", GROUP_FORMS))
    if hasattr(groups, "columns") and hasattr(groups, "to_numpy"):
        groups = _sets_of_table(groups)
    if hasattr(groups, "indptr") or (isinstance(groups, np.ndarray) and groups.ndim == 2):
        return as_groups(groups, "groups=")
    titles = [str(title) for title in groups] if isinstance(groups, Mapping) else None
    if not isinstance(groups, Iterable):
        raise TypeError(f"groups must be {GROUP_FORMS}, got {type(groups).__name__}")
    given = list(groups.values() if isinstance(groups, Mapping) else groups)
    as_given = (str, Mapping)
    lists, member_weights = split_weights(
        [list(group) if isinstance(group, Iterable) and not isinstance(group, as_given) else group for group in given]
    )
    members = [member for group in lists if isinstance(group, list) for member in group]
    if members and all(isinstance(member, str) for member in members):
        if names is None:
            raise ValueError(
                "groups use names, but X has none: pass a data frame, or feature_names= to fit, or use column numbers"
            )
        if titles is None:
            _require_no_pairs(lists, set(names))
        known = list(dict.fromkeys(members))
        return Groups(lists, names=titles, feature_names=known, member_weights=member_weights)
    return Groups(lists, n_features=count, names=titles, feature_names=names, member_weights=member_weights)


def _require_no_pairs(lists: list[Any], columns: set[str]) -> None:
    """Refuse pairs (group, feature): as lists of features, each would name a feature that no column has."""
    if all(len(pair) == 2 and pair[0] not in columns and pair[1] in columns for pair in lists):
        title, member = lists[0]
        raise ValueError(
            f"groups looks like pairs (group, feature), such as ({title!r}, {member!r}), but each entry is read as the "
            "features of one group; pass a dict from groups to lists of features, or a data frame with the columns "
            "group and feature"
        )


def _gmt_path(path: Any, what: str, forms: str) -> str:
    text = fspath(path)
    if not str(text).endswith((".gmt", ".gmt.gz")):
        raise ValueError(f"{what} must be {forms}, got {text!r}")
    return str(text)


def _sets_of_table(table: Any) -> dict[str, list[Any]]:
    """The members of each group, in a table with the columns group and feature."""
    values = table.to_numpy()
    if values.shape[1] != 2:
        columns = [str(name) for name in table.columns]
        raise ValueError(f"a table of groups has two columns, group and feature, got {len(columns)}: {columns[:5]}")
    sets: dict[str, list[Any]] = {}
    for title, member in values.tolist():
        sets.setdefault(str(title), []).append(member)
    return sets


def with_singles(groups: Groups) -> Groups:
    """Return the groups, followed by one group of weight 1 for each feature that is in none.

    Examples
    --------
    >>> [group.tolist() for group in with_singles(Groups([[1, 2]], n_features=4))]
    [[1, 2], [0], [3]]
    """
    alone = np.flatnonzero(~groups.covered)
    if not alone.size:
        return groups
    labels = groups.feature_names or tuple(f"x{j}" for j in range(groups.n_features))
    names = None if groups.names is None else [*groups.names, *(labels[j] for j in alone)]
    starts = np.concatenate([groups.indptr, groups.indptr[-1] + 1 + np.arange(alone.size)])
    members = None if groups.member_weights is None else np.concatenate([groups.member_weights, np.ones(alone.size)])
    return Groups.from_csr(
        starts,
        np.concatenate([groups.indices, alone]),
        groups.n_features,
        np.concatenate([groups.weights, np.ones(alone.size)]),
        names,
        groups.feature_names,
        members,
    )
