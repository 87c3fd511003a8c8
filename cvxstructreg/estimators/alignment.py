"""Align graphs and groups with the columns of X, by name if there are names."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cvxstructreg.core.checks import checked_names, plural
from cvxstructreg.estimators.user_structure import given_graph, given_groups
from cvxstructreg.graphs import Graph
from cvxstructreg.groups import Groups

Names = tuple[str, ...] | None


class Columns:
    """The columns of X: their number, their names, and what to do with unknown names.

    ``what`` is "column" for features and "row" for examples, for the messages.
    """

    def __init__(self, count: int, names: Names, missing: str, what: str = "column") -> None:
        if missing not in ("error", "ignore"):
            raise ValueError(f"missing must be 'error' or 'ignore', got {missing!r}")
        self.count, self.names, self.missing, self.what = count, names, missing, what
        self.structure: Any = None  # what X carries, if anything

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the columns, or x0, x1, ..."""
        return self.names or tuple(f"x{j}" for j in range(self.count))

    def positions(self, wanted: Iterable[str], where: str) -> NDArray[np.int64]:
        """Return the column of each name, -1 for names to be ignored."""
        assert self.names is not None
        place = {name: j for j, name in enumerate(self.names)}
        if len(place) < len(self.names):
            name, times = Counter(self.names).most_common(1)[0]
            raise ValueError(f"{self.what} name {name!r} occurs {times} times in X; {where} needs distinct names")
        wanted = list(wanted)
        found = np.array([place.get(name, -1) for name in wanted], dtype=np.int64)
        absent = [name for name, j in zip(wanted, found, strict=True) if j < 0]
        if wanted and len(absent) == len(wanted):
            raise ValueError(
                f"none of the names in {where} is a {self.what} of X: {reprlib.repr(absent)} against "
                f"{reprlib.repr(list(self.names))}"
            )
        if absent and self.missing == "error":
            raise ValueError(
                f"{plural(len(absent), 'name')} in {where} not among the {self.what}s of X: {reprlib.repr(absent)}; "
                "missing='ignore' leaves them out"
            )
        return found

    def size_error(self, where: str, count: int, remedy: str) -> ValueError:
        """Return the error for a structure of the wrong size."""
        return ValueError(f"{where} has {count} features, X has {plural(self.count, self.what)}; {remedy}")


def column_names(estimator: Any, feature_names: Any) -> Names:
    """Return the names of the columns of X: those of the data frame, or the ``feature_names`` given to ``fit``."""
    d = estimator.n_features_in_
    own = getattr(estimator, "feature_names_in_", None)
    given = None if feature_names is None else checked_names(feature_names, d, "feature", unique=False)
    if own is None:
        return given
    own = tuple(map(str, own))
    if given is not None and given != own:
        j = next(j for j in range(d) if given[j] != own[j])
        raise ValueError(
            f"feature_names calls column {j} {given[j]!r}, but in X it is {own[j]!r}; leave out feature_names"
        )
    return own


def aligned_graph(graph: Any, columns: Columns) -> Graph | None:
    """Return the graph with node j for column j, followed by the virtual nodes.

    If both the graph and X have names, nodes are matched by name; columns without a node become isolated nodes.
    Otherwise the nodes are the columns, in order.
    """
    given = given_graph(graph, columns.count, columns.names)
    if given is None:
        return None
    if given.names is None or columns.names is None:
        if given.n_features != columns.count:
            raise columns.size_error(f"the graph ({given!r})", given.n_features, _graph_remedy(given, columns))
        return given
    if given.feature_names == columns.names:  # a copy without the mark of graphs whose order means nothing
        return Graph(given.weights, given.names, given.virtual) if getattr(given, "by_name", False) else given
    assert given.feature_names is not None
    target = np.full(given.n_nodes, -1, dtype=np.int64)
    target[given.features] = columns.positions(given.feature_names, "the graph")
    target[given.virtual] = columns.count + np.arange(given.n_virtual)
    W = given.weights.tocoo()
    i, j = target[W.row], target[W.col]
    kept = (i >= 0) & (j >= 0)
    size = columns.count + given.n_virtual
    moved = sparse.coo_array((W.data[kept], (i[kept], j[kept])), shape=(size, size))
    names = columns.names + tuple(given.names[node] for node in given.virtual)
    return Graph(moved, names, columns.count + np.arange(given.n_virtual))


def _graph_remedy(graph: Graph, columns: Columns) -> str:
    if columns.what == "row":
        return (
            "the graph needs one node for each row given to fit; if X has only some of the rows, pass their sample_ids"
        )
    if graph.names is not None:
        return (
            "X has no names to match with those of the graph: pass a data frame, or feature_names= to fit, or create "
            "the vectorizer with vocabulary=graph.feature_names"
        )
    return "the graph needs one node for each column, in order, or names (Graph(..., names=...)) and X as a data frame"


def aligned_groups(groups: Any, columns: Columns, weights: Any = None) -> tuple[Groups, NDArray[np.int64]]:
    """Return the groups of columns of X, and the index of each among the given groups.

    ``groups`` is a Groups, or one of its forms in ``user_structure.given_groups``. None makes each column a group.
    Groups that become empty are dropped.
    """
    if groups is None:
        d = columns.count
        singles = Groups.from_csr(np.arange(d + 1), np.arange(d), d, None, columns.labels, columns.names)
        return _weighted(singles, weights), np.arange(d)
    given = given_groups(groups, columns.count, columns.names)
    by_size = isinstance(weights, str) or callable(weights)
    if weights is not None and not by_size:
        given = given.with_weights(weights)
    moved, numbers = _moved(given, columns)
    return (_weighted(moved, weights) if by_size else moved), numbers


def _moved(given: Groups, columns: Columns) -> tuple[Groups, NDArray[np.int64]]:
    everything = np.arange(given.n_groups)
    if given.feature_names is None or columns.names is None:
        if given.n_features != columns.count:
            raise columns.size_error(f"groups ({given!r})", given.n_features, _groups_remedy(given))
        return given, everything
    if given.feature_names == columns.names and not getattr(given, "by_name", False):
        return given, everything
    place = np.full(given.n_features, -1, dtype=np.int64)
    used = np.flatnonzero(given.covered)
    place[used] = columns.positions([given.feature_names[j] for j in used], "groups")
    indices = place[given.indices]
    kept = indices >= 0
    sizes = np.bincount(given.owner[kept], minlength=given.n_groups)
    numbers = np.flatnonzero(sizes)
    names = None if given.names is None else [given.names[g] for g in numbers]
    starts = np.concatenate([[0], np.cumsum(sizes[numbers])])
    weights = given.weights[numbers]
    members = None if given.member_weights is None else given.member_weights[kept]
    moved = type(given).from_csr(starts, indices[kept], columns.count, weights, names, columns.names, members)
    return moved, numbers


def _weighted(groups: Groups, weights: Any) -> Groups:
    if isinstance(weights, str):
        if weights != "sqrt":
            raise ValueError(f"group_weights must be None, 'sqrt', numbers or a function of sizes, got {weights!r}")
        weights = np.sqrt
    return groups if weights is None else groups.with_weights(weights)


def _groups_remedy(groups: Groups) -> str:
    if groups.feature_names is not None:
        return (
            "X has no names to match with those of the groups: pass a data frame, or feature_names= to fit, or create "
            "the vectorizer with vocabulary=groups.feature_names"
        )
    return "create the groups with n_features=X.shape[1], or with feature_names, and pass X as a data frame"
