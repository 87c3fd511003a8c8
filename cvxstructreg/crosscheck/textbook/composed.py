"""Textbook formulas of Huber functions, norms of blocks, compositions and expressions: values and CVXPY expressions.

This module uses no code from the rest of the package, so that it is an independent check.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.crosscheck.textbook.matrices import Array

KINDS = ("HuberPenalty", "BlockNorms", "compose", "FromExpression")
EPS = float(np.finfo(float).eps)


def _blocks(term: dict[str, Any]) -> list[tuple[float, list[int]]]:
    """Return the weight and the rows of each block."""
    ends = term["indptr"]
    return [(c, list(range(a, z))) for c, a, z in zip(term["weights"], ends[:-1], ends[1:], strict=True)]


def _weights(term: dict[str, Any], m: int) -> Array:
    return np.ones((m, 1)) if term.get("weights") is None else np.array(term["weights"])[:, None]


def composed_value(term: dict[str, Any], z: Array, size: Array) -> tuple[Any, Any] | None:
    """Return the value and its magnitude; None for other kinds."""
    kind = term["kind"]
    if kind == "compose":
        K = np.array(term["factor"], dtype=np.longdouble)
        return composed_value(term["outer"], K @ z, np.abs(K) @ size)
    if kind == "L1":  # inside a composition
        c = _weights(term, len(z))
        return np.sum(c * np.abs(z)), np.sum(c * size)
    if kind == "HuberPenalty":
        c, M, near = _weights(term, len(z)), term["M"], np.minimum(np.abs(z), term["M"])
        slopes = 2.0 * np.minimum(near + EPS * size, M)
        return np.sum(c * (near**2 + 2.0 * M * (np.abs(z) - near))), np.sum(c * slopes * size)
    if kind == "BlockNorms":
        sums = [[c * np.sqrt(np.sum(x[rows] ** 2)) for c, rows in _blocks(term)] for x in (z, size)]
        return sum(sums[0], np.longdouble(0.0)), sum(sums[1], np.longdouble(0.0))
    if kind == "FromExpression":
        return _expression_value(term, np.abs(z), z, size)
    return None


def _expression_value(term: dict[str, Any], sizes: Array, z: Array, size: Array) -> tuple[Any, Any]:
    form = term["form"]
    if form == "norm_inf":
        return np.sum(sizes.max(axis=0)), np.sum(size)
    if form == "two largest":
        return np.sum(np.sort(sizes, axis=0)[-2:]), np.sum(size)
    if form == "power":
        return np.sum(sizes**1.5), np.sum(1.5 * np.sqrt(sizes + EPS * size) * size)
    if form == "steps":
        return np.sum(sizes) + np.sum(np.abs(np.diff(z, axis=0))), 3.0 * np.sum(size)
    # log(1 + e^z) + log(1 + e^-z)
    return np.sum(sizes + 2.0 * np.log1p(np.exp(-sizes))), np.sum(size + 2.0)


def composed_expression(term: dict[str, Any], z: cp.Expression) -> cp.Expression:
    """Return the CVXPY expression."""
    kind, (m, k) = term["kind"], z.shape
    if kind == "compose":
        return composed_expression(term["outer"], np.array(term["factor"]) @ z)
    if kind == "L1":
        return cp.sum(cp.multiply(np.repeat(_weights(term, m), k, axis=1), cp.abs(z)))
    if kind == "HuberPenalty":  # the infimal convolution of a square and an absolute value
        c, far = np.repeat(_weights(term, m), k, axis=1), cp.Variable((m, k))
        near = cp.sum_squares(cp.multiply(np.sqrt(c), z - far))
        return near + 2.0 * term["M"] * cp.sum(cp.multiply(c, cp.abs(far)))
    if kind == "BlockNorms":
        return cp.sum([weight * cp.norm(z[rows, :], "fro") for weight, rows in _blocks(term) if rows])
    form = term["form"]
    if form == "norm_inf":
        return cp.sum(cp.max(cp.abs(z), axis=0))
    if form == "two largest":
        return cp.sum([cp.sum_largest(cp.abs(z[:, j]), 2) for j in range(k)])
    if form == "power":
        return cp.sum(cp.power(cp.abs(z), 1.5))
    if form == "steps":
        return cp.sum(cp.abs(z)) + cp.sum(cp.abs(z[1:, :] - z[:-1, :]))
    return cp.sum(cp.logistic(z)) + cp.sum(cp.logistic(-z))


def held_rows(term: dict[str, Any], m: int) -> Array:
    """Return rows R such that the penalty does not grow along z if and only if R z = 0."""
    if term["kind"] == "compose":
        K = np.array(term["factor"], dtype=float)
        return held_rows(term["outer"], len(K)) @ K
    if term["kind"] == "BlockNorms":
        return np.eye(m)[[row for c, rows in _blocks(term) if c > 0 for row in rows]]
    return np.eye(m) if term.get("weights") is None else np.eye(m)[np.flatnonzero(term["weights"])]
