"""Reduce a recipe to some of its rows, columns, classes or terms."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from cvxstructreg.crosscheck.recipe import Recipe, outputs_of
from cvxstructreg.crosscheck.terms.usual import BY_ROW, RESIDUAL


def keep_rows(recipe: Recipe, kept: list[int]) -> Recipe:
    """Return the recipe restricted to these rows; for a kernel model, also to the corresponding weights."""
    smaller = copy.deepcopy(recipe)
    model = smaller["model"]
    matrix = np.array(model["matrix"], dtype=float)
    kernel = model["kind"] == "kernel"
    model["matrix"] = (matrix[np.ix_(kept, kept)] if kernel else matrix[kept]).tolist()
    for term in smaller["terms"]:
        if term["on"] == "rows":
            _keep_labels(term, kept, len(matrix))
        elif kernel or (term["on"] in ("scores", "function") and term["kind"] != "RKHSNorm"):
            _keep_places(term, kept)
    return smaller


def keep_columns(recipe: Recipe, kept: list[int]) -> Recipe:
    """Return the recipe restricted to these columns of a linear model."""
    smaller = copy.deepcopy(recipe)
    smaller["model"]["matrix"] = np.array(smaller["model"]["matrix"], dtype=float)[:, kept].tolist()
    for term in smaller["terms"]:
        if term["on"] == "weights":
            _keep_places(term, kept)
    return smaller


def keep_terms(recipe: Recipe, kept: list[int]) -> Recipe:
    """Return the recipe with these terms only."""
    return {**copy.deepcopy(recipe), "terms": [copy.deepcopy(recipe["terms"][number]) for number in kept]}


def fewer_classes(recipe: Recipe) -> Recipe | None:
    """Return the recipe with one class or target fewer; rows of the last class move to the first."""
    k = outputs_of(recipe)
    smaller = copy.deepcopy(recipe)
    losses = [term for term in smaller["terms"] if term["on"] == "rows"]
    if k == 1 or (k == 2 and losses[0]["kind"] not in RESIDUAL):
        return None
    for term in losses:
        if term.get("offset") is not None:
            term["offset"] = [row[: k - 1] if k > 2 else row[0] for row in term["offset"]]
        if term.get("task_weight") is not None:
            term["task_weight"] = term["task_weight"][: k - 1]
        if term["kind"] in RESIDUAL:
            columns = [row[: k - 1] for row in term["y"]]
            term["y"] = [row[0] for row in columns] if k == 2 else columns
        else:
            term |= {"k": k - 1, "classes": list(range(k - 1)), "y": [label % (k - 1) for label in term["y"]]}
    return smaller


def _keep_labels(term: dict[str, Any], kept: list[int], n: int) -> None:
    rows = list(range(n)) if term["rows"] is None else term["rows"]
    position = {row: place for place, row in enumerate(kept)}
    chosen = [number for number, row in enumerate(rows) if row in position]
    term["y"] = [term["y"][number] for number in chosen]
    for name in BY_ROW:
        if term.get(name) is not None:
            term[name] = [term[name][number] for number in chosen]
    moved = [position[rows[number]] for number in chosen]
    term["rows"] = None if moved == list(range(len(kept))) else moved


def _keep_places(term: dict[str, Any], kept: list[int]) -> None:
    """Restrict the structure of a penalty to some of its weights (or examples)."""
    position = {old: new for new, old in enumerate(kept)}
    for name in ("weights", "lower", "upper"):
        if isinstance(term.get(name), list) and not any(key in term for key in ("groups", "pairs", "indptr")):
            term[name] = [term[name][old] for old in kept]
    if term.get("matrix") is not None:
        term["matrix"] = np.array(term["matrix"])[np.ix_(kept, kept)].tolist()
    if term.get("factor") is not None:
        term["factor"] = np.array(term["factor"])[:, kept].tolist()
    if "indptr" in term:
        term["indptr"] = [sum(old < end for old in kept) for end in term["indptr"]]
    if "graph" in term:
        _keep_nodes(term["graph"], kept)
    if term["kind"] == "TotalVariation" or (term["kind"] == "NuclearNorm" and term["shape"] is not None):
        term["shape"] = [len(kept)] if term["kind"] == "TotalVariation" else [1, len(kept)]
    if "members" in term:
        held = [
            [m for j, m in zip(group, weights, strict=True) if j in position]
            for group, weights in zip(term["groups"], term["members"], strict=True)
        ]
        term["members"] = [m for m, old in zip(held, term["groups"], strict=True) if m or not old]
    if "groups" in term:
        groups = [[position[j] for j in group if j in position] for group in term["groups"]]
        pairs = [(g, c) for g, c, old in zip(groups, term["weights"], term["groups"], strict=True) if g or not old]
        term |= {"groups": [g for g, _ in pairs], "weights": [c for _, c in pairs], "n_features": len(kept)}
    if "pairs" in term:
        inside = [number for number, pair in enumerate(term["pairs"]) if all(row in position for row in pair)]
        if term["weights"] is not None:
            term["weights"] = [term["weights"][number] for number in inside]
        term["pairs"] = [[position[row] for row in term["pairs"][number]] for number in inside]


def _keep_nodes(graph: dict[str, Any], kept: list[int]) -> None:
    """Return the graph on some of its features and all of its virtual nodes."""
    virtual = set(graph["virtual"])
    features = [node for node in range(graph["n_nodes"]) if node not in virtual]
    nodes = sorted({features[place] for place in kept} | virtual)
    number = {node: new for new, node in enumerate(nodes)}
    inside = [place for place, edge in enumerate(graph["edges"]) if all(node in number for node in edge)]
    graph["edges"] = [[number[node] for node in graph["edges"][place]] for place in inside]
    graph["weights"] = [graph["weights"][place] for place in inside]
    graph["virtual"] = sorted(number[node] for node in virtual)
    graph["n_nodes"] = len(nodes)
