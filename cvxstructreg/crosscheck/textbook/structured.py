"""Textbook formulas of differences, sorted weights, singular values and squared L1 norms: values and CVXPY expressions.

This module uses no code from the rest of the package, so that it is an independent check.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.crosscheck.textbook.matrices import Array, differences

#: Penalties of absolute differences.
DIFFERENCES = ("TotalVariation", "TrendFilter")
KINDS = (*DIFFERENCES, "HuberDifferences", "SLOPE", "NuclearNorm", "ExclusiveLasso")


def cells(shape: list[int]) -> list[Array]:
    """Return, for each cell of a grid, the rows of its differences to the next cell of each dimension."""
    number = np.arange(int(np.prod(shape))).reshape(shape)
    found = []
    for place in np.ndindex(*shape):
        rows = []
        for axis in range(len(shape)):
            following = tuple(p + (a == axis) for a, p in enumerate(place))
            if following[axis] < shape[axis]:
                row = np.zeros(number.size)
                row[number[place]], row[number[following]] = -1.0, 1.0
                rows.append(row)
        if rows:
            found.append(np.array(rows))
    return found


def _is_isotropic(term: dict[str, Any]) -> bool:
    """Return whether the differences of a cell form one norm: not in one dimension."""
    return bool(term["isotropic"]) and sum(side > 1 for side in term["shape"]) > 1


def trend_rows(term: dict[str, Any], m: int) -> Array:
    """Return the matrix of differences of the order of the term, on a line or a graph."""
    if "graph" not in term:
        rows = np.eye(m)
        for _ in range(term["order"]):
            rows = np.diff(rows, axis=0)
        return rows
    edges, weights = differences(term["graph"])
    D = weights[:, None] * edges
    rows = D
    for step in range(1, term["order"]):
        rows = (D.T if step % 2 else D) @ rows
    return rows


def unseen_rows(term: dict[str, Any], m: int) -> Array:
    """Return rows R such that the penalty does not grow along z if and only if R z = 0."""
    if term["kind"] == "TotalVariation":
        return np.vstack(cells(term["shape"]))
    if term["kind"] == "TrendFilter":
        return trend_rows(term, m)
    if term["kind"] == "HuberDifferences":
        return differences(term["graph"])[0]
    if term["kind"] == "ExclusiveLasso":
        return np.eye(m)[sorted({j for group in term["groups"] for j in group})]
    return np.eye(m)


def structured_value(term: dict[str, Any], z: Array, size: Array) -> tuple[Any, Any] | None:
    """Return the value and its magnitude; None for other kinds."""
    kind, m = term["kind"], len(z)
    if kind == "TotalVariation":
        total = magnitude = np.longdouble(0.0)
        for rows in cells(term["shape"]):
            steps, sizes = rows @ z, np.abs(rows) @ size
            total += np.sqrt(np.sum(steps**2)) if _is_isotropic(term) else np.sum(np.abs(steps))
            magnitude += np.sum(sizes)
        return total, magnitude
    if kind == "TrendFilter":
        rows = trend_rows(term, m)
        return np.sum(np.abs(rows @ z)), np.sum(_sizes(term, m) @ size)
    if kind == "HuberDifferences":
        edges, weights = differences(term["graph"])
        steps, M, c = np.abs(edges @ z), term["M"], weights[:, None]
        near = np.minimum(steps, M)
        sizes = np.abs(edges) @ size
        slopes = 2.0 * np.minimum(np.maximum(near, np.finfo(float).eps * sizes), M)
        return np.sum(c * (near**2 + 2.0 * M * (steps - near))), np.sum(c * slopes * sizes)
    if kind == "SLOPE":
        c = np.array(term["weights"])[:, None]
        return np.sum(c * np.sort(np.abs(z), axis=0)[::-1]), np.sum(c * np.sort(size, axis=0)[::-1])
    if kind == "NuclearNorm":
        matrices = [np.asarray(x, dtype=float) for x in _matrices(term, z)]
        values = sum(float(np.linalg.svd(x, compute_uv=False).sum()) for x in matrices)
        norms = [float(np.linalg.norm(np.asarray(x, dtype=float))) for x in _matrices(term, size)]
        return values, min(matrices[0].shape) * sum(norms)
    if kind == "ExclusiveLasso":
        pairs = list(zip(term["groups"], term["weights"], strict=True))
        values = sum(c * np.sum(np.abs(z[group])) ** 2 for group, c in pairs)
        return values, sum(2.0 * c * np.sum(np.abs(z[group])) * np.sum(size[group]) for group, c in pairs)
    return None


def _sizes(term: dict[str, Any], m: int) -> Array:
    """Return the sums of absolute values behind the rows of a trend filter."""
    if "graph" not in term:
        return np.abs(trend_rows(term, m))
    edges, weights = differences(term["graph"])
    D = weights[:, None] * np.abs(edges)
    rows = D
    for step in range(1, term["order"]):
        rows = (D.T if step % 2 else D) @ rows
    return rows


def _matrices(term: dict[str, Any], z: Array) -> list[Array]:
    return [z] if term["shape"] is None else [z[:, j].reshape(term["shape"]) for j in range(z.shape[1])]


def structured_expression(term: dict[str, Any], z: cp.Expression) -> cp.Expression | None:
    """Return the CVXPY expression; None for other kinds, and for graphs without edges."""
    kind, (m, k) = term["kind"], z.shape
    if kind == "TotalVariation":
        parts = [rows @ z for rows in cells(term["shape"])]
        return cp.sum([cp.norm(part, "fro") if _is_isotropic(term) else cp.sum(cp.abs(part)) for part in parts])
    if kind == "TrendFilter":
        rows = trend_rows(term, m)
        return cp.sum(cp.abs(rows @ z)) if len(rows) else None
    if kind == "HuberDifferences":
        edges, weights = differences(term["graph"])
        if not len(edges):
            return None
        # the infimal convolution of a square and an absolute value
        steps, far, c = edges @ z, cp.Variable((len(edges), k)), np.repeat(weights[:, None], k, axis=1)
        near = cp.sum_squares(cp.multiply(np.sqrt(c), steps - far))
        return near + 2.0 * term["M"] * cp.sum(cp.multiply(c, cp.abs(far)))
    if kind == "SLOPE":
        steps = np.array(term["weights"]) - np.array([*term["weights"][1:], 0.0])
        return cp.sum(
            [steps[j] * cp.sum_largest(cp.abs(z[:, i]), j + 1) for j in range(m) for i in range(k) if steps[j] > 0]
        )
    if kind == "NuclearNorm":
        if term["shape"] is None:
            return cp.normNuc(z)
        return cp.sum([cp.normNuc(cp.reshape(z[:, j], term["shape"], order="C")) for j in range(k)])
    if kind == "ExclusiveLasso":
        pairs = zip(term["groups"], term["weights"], strict=True)
        return cp.sum([c * cp.square(cp.sum(cp.abs(z[group, :]))) for group, c in pairs])
    return None
