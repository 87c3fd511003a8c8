"""The features and groups that a fitted model selects, as rows; ``pandas.DataFrame(rows)`` makes a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.solution import Solution
from cvxstructreg.graphs import Graph
from cvxstructreg.groups import Groups


class SelectedFeature(NamedTuple):
    """A feature with a nonzero weight: its column, name and weight (one weight per class if there are several)."""

    number: int
    name: str
    weight: Any


class SelectedGroup(NamedTuple):
    """A group of the model: its index among the given groups, name, norm of its weights, names of features and size."""

    number: int
    name: str
    norm: float
    features: tuple[str, ...]
    size: int


class ClassMean(NamedTuple):
    """A virtual node of the graph of a model: its name, and the mean (one per class if there are several)."""

    name: str
    mean: Any


class CoefRow(NamedTuple):
    """A feature of a model: its name and weight, what a larger value speaks for, and its groups or neighbours."""

    name: str
    weight: Any
    favours: Any
    related: tuple[str, ...]


def selected_features(coef: NDArray[np.float64], names: Sequence[str]) -> list[SelectedFeature]:
    """Return the nonzero columns of coef (k x d), largest first."""
    sizes = np.abs(coef).max(axis=0)
    order = [int(j) for j in np.argsort(-sizes, kind="stable") if sizes[j] > 0]
    single = coef.shape[0] == 1
    return [SelectedFeature(j, names[j], float(coef[0, j]) if single else coef[:, j].copy()) for j in order]


def selected_groups(
    groups: Groups, kept: NDArray[np.bool_], norms: NDArray[np.float64], numbers: Any, names: Sequence[str]
) -> list[SelectedGroup]:
    """Return the chosen groups, largest norm first."""
    rows = []
    for g in np.argsort(-norms, kind="stable"):
        if kept[g]:
            number = int(numbers[g])
            name = f"group {number}" if groups.names is None else groups.names[g]
            features = tuple(names[j] for j in groups[int(g)])
            rows.append(SelectedGroup(number, name, float(norms[g]), features, len(features)))
    return rows


def virtual_means(solutions: Sequence[Solution]) -> list[ClassMean]:
    """Return the values of the virtual nodes of the first penalty that has some, at its minimum over them."""
    for number, term in enumerate(solutions[0].problem.terms):
        graph = getattr(term.atom, "graph", None)
        if isinstance(graph, Graph) and graph.n_virtual:
            values = []
            for solution in solutions:
                atom: Any = solution.problem.terms[number].atom
                values.append(atom.virtual_values(solution.coef.reshape(len(solution.coef), -1)))
            means = np.concatenate(values, axis=1)
            names = [f"virtual {v}" for v in range(graph.n_virtual)]
            if graph.names is not None:
                names = [graph.names[node] for node in graph.virtual]
            single = means.shape[1] == 1
            rows = zip(names, means, strict=True)
            return [ClassMean(name, float(mean[0]) if single else mean.copy()) for name, mean in rows]
    return []


def favoured(weight: Any, classes: Any) -> Any:
    """Return the class that a larger value of a feature speaks for; of a regressor, "higher" or "lower" targets.

    A regressor with several outputs has one answer for each.
    """
    weights = np.atleast_1d(weight)
    if classes is None:
        sides = tuple("higher" if w > 0 else "lower" if w < 0 else "neither" for w in weights)
        return sides[0] if weights.size == 1 else sides
    if weights.size == 1:
        return classes[1] if weights[0] > 0 else classes[0]
    return classes[int(np.argmax(weights))]


def related_names(number: int, graph: Graph | None, groups: Groups | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the groups of a feature, or of its neighbours in a graph."""
    if groups is not None:
        found = groups.owner[np.flatnonzero(groups.indices == number)]
        return tuple(f"group {g}" if groups.names is None else groups.names[g] for g in found)
    if graph is None:
        return ()
    node = int(graph.features[number])
    W = graph.weights
    linked = np.union1d(W[[node]].indices, W[:, [node]].nonzero()[0])
    labels: Sequence[str] = [*names, *(f"virtual {v}" for v in range(graph.n_virtual))]
    return tuple(graph.names[j] if graph.names is not None else labels[j] for j in linked)
