"""Groups of a hierarchy: each node with everything below it (Zhao, Rocha and Yu 2009; Jenatton et al. 2011)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxstructreg.core.checks import checked_names, indices_of, inferred_count, show
from cvxstructreg.groups.groups import Groups, Weights

#: A node of a tree: its name if it has one, its own features, and its children.
_Node = tuple[Any, list[Any], list[int]]


class TreeGroups(Groups):
    """One group for each node of a tree: the features of the node and of all nodes below it.

    With :class:`~cvxstructreg.GroupLasso`, a group at zero removes a whole subtree: a child is selected only with its
    parent. The prox is exact: one pass from the leaves to the roots (Jenatton, Mairal, Obozinski and Bach 2011). Make
    trees with :meth:`from_nested`, :meth:`from_linkage` or :meth:`from_taxonomy`. The constructor takes the
    groups themselves, any two of which must be disjoint or nested.

    Examples
    --------
    >>> from cvxstructreg import GroupLasso, TreeGroups
    >>> tree = TreeGroups.from_nested([0, [1, 2], [3, [4]]])
    >>> [group.tolist() for group in tree], tree.parents.tolist()
    ([[0, 1, 2, 3, 4], [1, 2], [3, 4], [4]], [-1, 0, 0, 2])
    >>> GroupLasso(tree).prox([3.0, 0.1, 0.2, 4.0, 0.5], 1.0).round(3).tolist()
    [2.293, 0.0, 0.0, 2.293, 0.0]
    """

    def __init__(self, lists: Iterable[Iterable[Any]], *arguments: Any, **named: Any):
        """Check the groups as usual, and that they are nested; see the class."""
        super().__init__(lists, *arguments, **named)
        self._require_nested()

    @classmethod
    def from_csr(cls, *arguments: Any, **named: Any) -> TreeGroups:
        """As :meth:`Groups.from_csr`; the groups must be nested."""
        made = super().from_csr(*arguments, **named)
        assert isinstance(made, TreeGroups)
        made._require_nested()
        return made

    def _require_nested(self) -> None:
        if self.nesting is None:
            first, second = _crossing(self)
            raise ValueError(
                f"{self._group(first)} and {self._group(second)} overlap, but neither contains the other, so they form "
                "no tree; move their common features to one of them, or use Groups for overlapping groups"
            )

    @property
    def parents(self) -> NDArray[np.int64]:
        """The group above each group; -1 for roots."""
        assert self.nesting is not None
        return self.nesting.parents

    @classmethod
    def from_nested(
        cls,
        nested: Sequence[Any],
        n_features: int | None = None,
        weights: Weights = None,
        feature_names: Iterable[str] | None = None,
    ) -> TreeGroups:
        """Return the groups of nested lists: a list is a node with its own features and, as lists, its children.

        Examples
        --------
        >>> tree = TreeGroups.from_nested(["animal", ["dog", "cat"]], feature_names=["cat", "dog", "animal", "tea"])
        >>> [group.tolist() for group in tree]
        [[0, 1, 2], [0, 1]]
        """
        nodes: list[_Node] = []
        _add_nested(nested, nodes, ())
        return cls._from_nodes(nodes, n_features, weights, feature_names)

    @classmethod
    def from_linkage(
        cls, linkage: ArrayLike, weights: Weights = None, feature_names: Iterable[str] | None = None
    ) -> TreeGroups:
        """Return the groups of a hierarchical clustering of n features, as made by ``scipy.cluster.hierarchy.linkage``.

        The first n groups are the single features, the others the clusters in the order in which they were merged.

        Examples
        --------
        >>> from scipy.cluster.hierarchy import linkage
        >>> tree = TreeGroups.from_linkage(linkage([[0.0], [0.1], [5.0]]))
        >>> [group.tolist() for group in tree]
        [[0], [1], [2], [0, 1], [0, 1, 2]]
        """
        Z = np.asarray(linkage, dtype=float)
        if Z.ndim != 2 or Z.shape[1] < 2 or not len(Z):
            raise ValueError(
                f"linkage must have one row for each merge, got shape {Z.shape}; pass the result of "
                "scipy.cluster.hierarchy.linkage"
            )
        n, pairs = len(Z) + 1, Z[:, :2]
        merged = pairs.astype(np.int64)
        if np.any(merged != pairs) or np.any(merged < 0) or np.any(merged >= n + np.arange(n - 1)[:, None]):
            row = int(
                np.argmax(((merged != pairs) | (merged < 0) | (merged >= n + np.arange(n - 1)[:, None])).any(axis=1))
            )
            raise ValueError(
                f"row {row} of linkage merges clusters {Z[row, 0]:g} and {Z[row, 1]:g}, but only features and clusters "
                f"0 to {n + row - 1} exist at that point; pass the result of scipy.cluster.hierarchy.linkage"
            )
        nodes: list[_Node] = [(None, [j], []) for j in range(n)] + [(None, [], pair.tolist()) for pair in merged]
        return cls._from_nodes(nodes, n, weights, feature_names)

    @classmethod
    def from_taxonomy(
        cls,
        parents: Mapping[Any, Any] | Sequence[Any],
        feature_names: Iterable[str] | None = None,
        weights: Weights = None,
        n_features: int | None = None,
    ) -> TreeGroups:
        """Return one group for each node of a taxonomy, given by the parent of each node.

        Parameters
        ----------
        parents : mapping or list
            From the name of a node to that of its parent, None for roots. As a list: the parent of each feature, None
            or -1 for roots. Parents without an entry are roots.
        feature_names : sequence of str, optional
            The features. Nodes that are no features, such as categories, only group the features below them; nodes
            without any feature below them are left out. Without names, the features are the nodes that are integers.
        weights, n_features
            As for :class:`Groups`.

        Examples
        --------
        >>> taxonomy = {"dog": "mammal", "cat": "mammal", "mammal": "animal", "trout": "animal"}
        >>> tree = TreeGroups.from_taxonomy(taxonomy, feature_names=["cat", "dog", "trout", "animal"])
        >>> {name: group.tolist() for name, group in zip(tree.names, tree)}
        {'dog': [1], 'mammal': [0, 1], 'cat': [0], 'animal': [0, 1, 2, 3], 'trout': [2]}
        """
        pairs = parents.items() if isinstance(parents, Mapping) else enumerate(parents)
        above = {child: None if _is_root(parent) else parent for child, parent in pairs}
        for parent in list(above.values()):
            if parent is not None:
                above.setdefault(parent, None)
        _require_no_cycle(above)
        names = checked_names(feature_names, n_features, "feature")
        known = {node for node in above if isinstance(node, int | np.integer)} if names is None else set(names)
        if not known:
            raise TypeError("the nodes of the taxonomy are names; pass feature_names, the names of the features")
        if names is not None and known.isdisjoint(above):
            given, node = next(iter(names)), next(iter(above), None)
            raise ValueError(
                f"no feature is in the taxonomy: the first feature is {given!r}, the first node {node!r}; "
                "write both alike"
            )
        number = {node: place for place, node in enumerate(_in_order(above))}
        nodes: list[_Node] = [(node, [node] if node in known else [], []) for node in number]
        for child, parent in above.items():
            if parent is not None:
                nodes[number[parent]][2].append(number[child])
        return cls._from_nodes(nodes, n_features, weights, names)

    @classmethod
    def _from_nodes(
        cls, nodes: list[_Node], n_features: int | None, weights: Weights, feature_names: Iterable[str] | None
    ) -> TreeGroups:
        """The groups of nodes that each have at most one parent, without cycles; empty nodes are left out."""
        names = checked_names(feature_names, n_features, "feature")
        own = [indices_of(np.array(features), names, "feature") for _, features, _ in nodes]
        everything = np.concatenate([np.zeros(0, dtype=np.int64), *own])
        repeated = np.flatnonzero(np.bincount(everything[everything >= 0]) > 1)
        if repeated.size:
            feature = show(names, int(repeated[0]))
            raise ValueError(f"feature {feature} is at several nodes of the tree; keep it at one of them")
        below: dict[int, NDArray[np.int64]] = {}
        for place in _leaves_first(nodes):
            below[place] = np.concatenate([own[place], *(below[child] for child in nodes[place][2])])
        kept = [place for place in range(len(nodes)) if below[place].size]
        titles = [nodes[place][0] for place in kept]
        group_names = titles if titles and all(isinstance(title, str) for title in titles) else None
        count = inferred_count(n_features, names, everything, "n_features")
        return cls([below[place] for place in kept], count, weights, group_names, names)


def _add_nested(node: Any, nodes: list[_Node], above: tuple[int, ...]) -> int:
    """Append a nested list and all lists in it; return its number."""
    if isinstance(node, str) or not isinstance(node, Iterable):
        raise TypeError(f"a tree must be a list of features and of lists, its children, got {node!r}")
    if id(node) in above:
        raise ValueError("the nested lists form a cycle: a list contains itself; remove it from the inner list")
    place = len(nodes)
    nodes.append((None, [], []))
    for item in node:
        if isinstance(item, str) or not isinstance(item, Iterable):
            nodes[place][1].append(item)
        else:
            nodes[place][2].append(_add_nested(item, nodes, (*above, id(node))))
    return place


def _is_root(parent: Any) -> bool:
    return parent is None or bool(isinstance(parent, int | np.integer) and parent < 0)


def _require_no_cycle(above: Mapping[Any, Any]) -> None:
    """Raise if following the parents of a node leads back to it."""
    done: set[Any] = set()
    for start in above:
        path: list[Any] = []
        node: Any = start
        while node is not None and node not in done:
            if node in path:
                cycle = " -> ".join(repr(name) for name in [*path[path.index(node) :], node])
                raise ValueError(f"the taxonomy has a cycle: {cycle}; remove one of these links to a parent")
            path.append(node)
            node = above.get(node)
        done.update(path)


def _in_order(above: Mapping[Any, Any]) -> list[Any]:
    """The nodes in the order in which they were first named, as a child or as a parent."""
    order: dict[Any, None] = {}
    for child, parent in above.items():
        order[child] = None
        if parent is not None:
            order[parent] = None
    return list(order)


def _leaves_first(nodes: list[_Node]) -> list[int]:
    """The numbers of all nodes, children before parents."""
    children = {child for _, _, below in nodes for child in below}
    pending = [place for place in range(len(nodes)) if place not in children]
    order = []
    while pending:
        place = pending.pop()
        order.append(place)
        pending.extend(nodes[place][2])
    if len(order) < len(nodes) or len(set(order)) < len(order):
        raise ValueError("a node of the tree has two parents or is its own ancestor; give each node one parent")
    return order[::-1]


def _crossing(groups: Groups) -> tuple[int, int]:
    """Two groups that overlap without one containing the other."""
    sets = [set(group.tolist()) for group in groups]
    for first in range(len(sets)):
        for second in range(first):
            common = sets[first] & sets[second]
            if common and common not in (sets[first], sets[second]):
                return second, first
    raise AssertionError("the groups are nested")
