"""Matrices of the textbook formulas, computed from the raw lists of a recipe.

This module uses no code from the rest of the package, so that it is an independent check.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def adjacency(graph: dict[str, Any]) -> Array:
    """Return W with W_ij the weight of edge (i, j), and W_ji = W_ij unless the graph is directed."""
    W = np.zeros((graph["n_nodes"], graph["n_nodes"]))
    for (i, j), weight in zip(graph["edges"], graph["weights"], strict=True):
        W[i, j] += weight
        if not graph["directed"]:
            W[j, i] += weight
    return W


def differences(graph: dict[str, Any]) -> tuple[Array, Array]:
    """Return the row e_i - s_ij e_j and the weight |W_ij| of each edge."""
    rows = np.zeros((len(graph["edges"]), graph["n_nodes"]))
    for number, ((i, j), weight) in enumerate(zip(graph["edges"], graph["weights"], strict=True)):
        rows[number, i] = 1.0
        rows[number, j] = -np.sign(weight)
    return rows, np.abs(np.array(graph["weights"], dtype=float))


def laplacian_factor(term: dict[str, Any]) -> Array:
    """Return N with ||N w||^2 = 1/2 sum_ij |W_ij| (w_i - s_ij w_j)^2; normalized: w_i / sqrt(D_i) in place of w_i."""
    rows, weights = differences(term["graph"])
    N = np.sqrt(weights)[:, None] * rows
    if term["normalized"]:
        degrees = np.abs(adjacency(term["graph"])).sum(axis=1)
        N = N / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    return N


def power_factor(N: Array, power: int) -> Array:
    """Return R with R'R = (N'N)^power."""
    L, R = N.T @ N, np.eye(N.shape[1]) if power % 2 == 0 else N
    for _ in range(power // 2):
        R = R @ L
    return R


def network_factor(term: dict[str, Any]) -> Array:
    """Return the rows e_i - sum_j P_ij e_j of the nodes with outgoing edges.

    Dissimilar neighbours have separate rows, with a plus sign, or (joint) are averaged in the same row.
    """
    W = adjacency(term["graph"])
    parts = [W] if term["signed"] == "joint" else [np.maximum(W, 0.0), np.minimum(W, 0.0)]
    rows = []
    for part in parts:
        for i in range(len(W)):
            total = np.abs(part[i]).sum()
            if total > 0:
                row = -part[i] / total
                row[i] += 1.0
                rows.append(row)
    return np.array(rows).reshape(-1, len(W))


def factor_of(term: dict[str, Any], m: int) -> tuple[Array, Array | None]:
    """Return (A, B) for the penalty min over mu of ||A w + B mu||^2; B is None without virtual nodes."""
    kind = term["kind"]
    if kind in ("Ridge", "RKHSNorm"):
        weights = term.get("weights")
        return np.diag(np.sqrt(np.ones(m) if weights is None else np.array(weights))), None
    if kind == "Quadratic":
        if term["matrix"] is None:
            return np.array(term["factor"], dtype=float), None
        values, vectors = np.linalg.eigh(np.array(term["matrix"], dtype=float))
        return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T, None
    N = laplacian_factor(term) if kind == "Laplacian" else network_factor(term)
    if term.get("power", 1) > 1:
        return power_factor(N, term["power"]), None
    virtual = list(term["graph"]["virtual"])
    real = [node for node in range(term["graph"]["n_nodes"]) if node not in virtual]
    return N[:, real], N[:, virtual] if virtual else None


def signs(y: list[Any]) -> Array:
    """Return binary labels as -1/+1: the larger of the two values is positive."""
    labels = np.array(y, dtype=float)
    return np.where(labels > 0, 1.0, -1.0)


def one_hot(y: list[Any], k: int) -> Array:
    """Return the matrix whose row i has a one at class y_i."""
    return np.eye(k)[np.array(y, dtype=int)]


def bounds(term: dict[str, Any], m: int) -> tuple[Array, Array]:
    """Return lower and upper bounds of all m weights."""
    if term["kind"] == "NonNegative":
        return np.zeros(m), np.full(m, np.inf)
    return _filled(term["lower"], m, -np.inf), _filled(term["upper"], m, np.inf)


def _filled(given: Any, m: int, none: float) -> Array:
    values = given if isinstance(given, list) else [given] * m
    return np.array([none if value is None else value for value in values], dtype=float)


def covered(term: dict[str, Any]) -> Array:
    """Return whether each feature is in a group."""
    held = np.zeros(term["n_features"], dtype=bool)
    for group in term["groups"]:
        held[list(group)] = True
    return held
