"""Losses of numbers instead of classes by textbook formulas: as a value with its magnitude, and as a CVXPY expression.

This module uses no code from the rest of the package, so that it is an independent check.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.crosscheck.textbook.matrices import Array

EPS = float(np.finfo(float).eps)
#: Margins within this many units of round-off of a kink count as being at the kink.
KINK = 64


def with_offset(term: dict[str, Any], z: Any) -> Any:
    """Return the scores plus the offset of the loss, an array or an expression."""
    offset = term.get("offset")
    return z if offset is None else z + np.array(offset, dtype=float).reshape(len(offset), -1)


def regression_value(term: dict[str, Any], z: Array, size: Array, s: Array) -> tuple[Any, Any] | None:
    """Return the value and its magnitude; None for other kinds of losses."""
    kind = term["kind"]
    if kind in ("Poisson", "Gamma", "Tweedie"):
        return _of_means(term, z, size, s)
    if kind not in ("Squared", "MultiTask", "Huber", "Absolute", "Quantile"):
        return None
    y = np.array(term["y"], dtype=np.longdouble).reshape(z.shape)
    residual, size = z - y, size + np.abs(y)
    if kind in ("Squared", "MultiTask"):
        s = s * np.array(term.get("task_weight") or 1.0, dtype=np.longdouble)
        return 0.5 * np.sum(s * residual**2), np.sum(s * (np.abs(residual) * size + EPS * size**2))
    if kind == "Huber":
        delta = np.longdouble(term["delta"])
        square, line = residual**2 / 2, delta * np.abs(residual) - delta**2 / 2
        slopes = np.minimum(np.abs(residual) + EPS * size, delta)
        return np.sum(s * np.where(np.abs(residual) <= delta, square, line)), np.sum(s * slopes * size)
    q = np.longdouble(term.get("quantile", 0.5))
    losses = np.where(residual < 0, -q * residual, (1 - q) * residual)
    factor = 2.0 if kind == "Absolute" else 1.0
    return factor * np.sum(s * losses), factor * np.sum(s * size)


def _of_means(term: dict[str, Any], z: Array, size: Array, s: Array) -> tuple[Any, Any]:
    """Return half the deviance of the means exp(z); errors of z are multiplied by the slopes of both of its parts."""
    y = np.array(term["y"], dtype=np.longdouble).reshape(z.shape)
    logs = np.log(np.where(y > 0, y, 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        if term["kind"] == "Gamma":
            ratio = y * np.exp(-z)
            losses, slopes = ratio - 1 + z - logs, ratio + 1
        elif term["kind"] == "Poisson":
            exposure = term.get("exposure")
            t = np.longdouble(1) if exposure is None else np.array(exposure, dtype=np.longdouble)[:, None]
            mean = t * np.exp(z)
            losses, slopes = mean - y + y * (logs - np.log(t) - z), mean + y
            size = size + np.abs(np.log(t))
        else:
            p = np.longdouble(term["power"])
            up, down = np.exp((2 - p) * z), np.where(y > 0, y * np.exp((1 - p) * z), 0.0)
            constant = np.where(y > 0, np.exp((2 - p) * logs), 0.0) / ((2 - p) * (p - 1))
            losses, slopes = up / (2 - p) + down / (p - 1) - constant, up + down + constant
        size = size + np.abs(logs) + 1.0
        counted = s > 0
        return np.sum(np.where(counted, s * losses, 0.0)), np.sum(np.where(counted, s * slopes * size, 0.0))


def regression_expression(term: dict[str, Any], z: cp.Expression, s: Array, counted: Array) -> cp.Expression | None:
    """Return the CVXPY expression of the rows ``counted``, with scores z and weights s; None for other kinds."""
    kind = term["kind"]
    if kind not in ("Squared", "MultiTask", "Huber", "Absolute", "Quantile", "Poisson", "Gamma", "Tweedie"):
        return None
    y = np.array(term["y"], dtype=float).reshape(len(term["y"]), -1)[counted]
    column = np.broadcast_to(s[:, None], z.shape)
    if kind in ("Squared", "MultiTask"):
        weights = column * np.array(term.get("task_weight") or 1.0)
        return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(weights), z - y))
    if kind == "Huber":  # the infimal convolution of a square and an absolute value
        far = cp.Variable(z.shape)
        near = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(column), z - y - far))
        return near + term["delta"] * cp.sum(cp.multiply(column, cp.abs(far)))
    if kind == "Absolute":
        return cp.sum(cp.multiply(column, cp.abs(z - y)))
    if kind == "Quantile":
        q = term["quantile"]
        return cp.sum(cp.multiply(column, cp.maximum(q * (y - z), (q - 1.0) * (y - z))))
    logs = np.log(np.where(y > 0, y, 1.0))
    if kind == "Gamma":
        return cp.sum(cp.multiply(column, cp.exp(logs - z) + z - logs - 1.0))
    if kind == "Poisson":
        exposure = term.get("exposure")
        shift = np.zeros(y.shape) if exposure is None else np.log(np.array(exposure, dtype=float)[counted])[:, None]
        eta = z + shift
        return cp.sum(cp.multiply(column, cp.exp(eta) - cp.multiply(y, eta) + y * logs - y))
    p = term["power"]
    parts = cp.exp((2.0 - p) * z) / (2.0 - p) + cp.multiply(y, cp.exp((1.0 - p) * z)) / (p - 1.0)
    constant = np.where(y > 0, np.exp((2.0 - p) * logs), 0.0) / ((2.0 - p) * (p - 1.0))
    return cp.sum(cp.multiply(column, parts - constant))
