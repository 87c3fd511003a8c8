"""The partial likelihood of Cox by its definition, event by event: as a value, as a CVXPY expression, and its gains.

This module uses no code from the rest of the package, so that it is an independent check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.crosscheck.textbook.matrices import Array


def moments(term: dict[str, Any]) -> Iterator[tuple[Array, Array]]:
    """Yield the rows at risk and the rows with an event, for each time of an event in each stratum."""
    time, n = np.array(term["y"], dtype=float), len(term["y"])
    event = np.ones(n, dtype=bool) if term.get("event") is None else np.array(term["event"], dtype=bool)
    strata = np.zeros(n, dtype=int) if term.get("strata") is None else np.array(term["strata"])
    counted = np.ones(n, dtype=bool) if term["sample_weight"] is None else np.array(term["sample_weight"]) > 0
    for stratum in np.unique(strata):
        inside = (strata == stratum) & counted
        for moment in np.unique(time[inside & event]):
            yield np.flatnonzero(inside & (time >= moment)), np.flatnonzero(inside & event & (time == moment))


def _coefficients(term: dict[str, Any], s: Array) -> Iterator[tuple[Any, Array, Array, Array]]:
    """Yield w, the rows at risk, the coefficients of their exponentials, and the events, for each logarithm."""
    for risk, dead in moments(term):
        if term["ties"] == "breslow":
            yield s[dead].sum(), risk, s[risk], dead
            continue
        m = len(dead)
        for number in range(m):
            share = np.where(np.isin(risk, dead), 1.0 - number / m, 1.0)
            yield s[dead].sum() / m, risk, s[risk] * share, dead


def _constant(term: dict[str, Any], s: Array) -> Any:
    if term["ties"] == "breslow":
        return sum((np.sum(s[dead] * np.log(s[dead])) for _, dead in moments(term)), 0.0 * s[0])
    means = [(len(dead), s[dead].sum() / len(dead)) for _, dead in moments(term)]
    return sum((m * w * np.log(w) for m, w in means), 0.0 * s[0])


def survival_value(term: dict[str, Any], z: Array, size: Array, s: Array) -> tuple[Any, Any]:
    """Return minus the log partial likelihood, and its magnitude."""
    z, size, s = z[:, 0], size[:, 0], s[:, 0]
    total, magnitude = -_constant(term, s), 0.0 * s[0]
    for w, risk, shares, _ in _coefficients(term, s):
        logs = z[risk] + np.log(shares)
        top = logs.max()
        total += w * (top + np.log(np.sum(np.exp(logs - top))))
        magnitude += w * (np.max(size[risk]) + np.max(np.abs(np.log(shares))) + 1.0)
    for _, dead in moments(term):
        total -= np.sum(s[dead] * z[dead])
        magnitude += np.sum(s[dead] * (size[dead] + np.abs(np.log(s[dead]))))
    return total, 2.0 * magnitude


def survival_expression(term: dict[str, Any], z: cp.Expression, s: Array) -> cp.Expression:
    """Return minus the log partial likelihood of all rows."""
    total = -float(_constant(term, s))
    for w, risk, shares, _ in _coefficients(term, s):
        total = total + w * cp.log_sum_exp(z[risk, 0] + np.log(shares))
    for _, dead in moments(term):
        total = total - cp.sum(cp.multiply(s[dead], z[dead, 0]))
    return total


def survival_gains(term: dict[str, Any], z: cp.Expression) -> cp.Expression:
    """Return the gains of events over all rows at risk with them."""
    pairs = [(i, j) for risk, dead in moments(term) for i in dead for j in risk if i != j]
    if not pairs:
        return z[:1, :] * 0.0
    return z[[i for i, _ in pairs], :] - z[[j for _, j in pairs], :]
