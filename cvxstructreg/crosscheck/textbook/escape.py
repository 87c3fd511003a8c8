"""Check by a linear program whether an objective decreases without end along some unpenalised direction.

With the logistic and the multinomial loss, a problem has no minimiser if and only if some direction of the weights and
intercepts decreases no margin, increases some margin, and increases no penalty. With the Poisson and the Tweedie loss,
the direction must not change the scores of rows with positive values, nor increase those of other rows.
"""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.crosscheck.recipe import Recipe, outputs_of
from cvxstructreg.crosscheck.textbook.composed import KINDS as COMPOSED
from cvxstructreg.crosscheck.textbook.composed import held_rows
from cvxstructreg.crosscheck.textbook.matrices import bounds, covered, differences, factor_of, one_hot, signs
from cvxstructreg.crosscheck.textbook.structured import KINDS as STRUCTURED
from cvxstructreg.crosscheck.textbook.structured import unseen_rows
from cvxstructreg.crosscheck.textbook.survival import survival_gains

#: Smallest total increase of the margins that counts, for directions with entries of at most 1 in units of the columns.
LEAST = 1e-9


def may_escape(recipe: Recipe) -> bool:
    """Return False only if there is clearly no such direction.

    Examples
    --------
    >>> loss = {"kind": "Logistic", "on": "rows", "scale": 1.0, "y": [0, 1], "k": 1, "rows": None}
    >>> recipe = {"model": {"kind": "linear", "matrix": [[-1.0], [2.0]], "intercept": True}}
    >>> recipe["terms"] = [loss | {"sample_weight": None}]
    >>> may_escape(recipe)
    True
    >>> recipe["terms"].append({"kind": "L1", "on": "weights", "scale": 0.1, "weights": None})
    >>> may_escape(recipe)
    False
    """
    A, k = np.array(recipe["model"]["matrix"], dtype=float), outputs_of(recipe)
    units = np.where(np.abs(A).max(axis=0) > 0, np.abs(A).max(axis=0), 1.0)
    v = cp.Variable((A.shape[1], k))
    b = cp.Variable((1, k)) if recipe["model"]["intercept"] else np.zeros((1, k))
    h = (A / units) @ v
    F = h + np.ones((len(A), 1)) @ b
    conditions: list[Any] = [cp.abs(v) <= 1.0, *([cp.abs(b) <= 1.0] if recipe["model"]["intercept"] else [])]
    gains = []
    for term in recipe["terms"]:
        if term["on"] == "rows":
            gains.append(_gain(term, F))
            conditions.append(gains[-1] >= 0.0)
        elif term["scale"] > 0 or term["kind"] in ("Box", "NonNegative"):
            theta = cp.multiply(np.broadcast_to((1.0 / units)[:, None], v.shape), v)
            conditions += _unpenalised(recipe, term, theta, F, h)
    problem = cp.Problem(cp.Maximize(cp.sum([cp.sum(gain) for gain in gains])), conditions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver="CLARABEL", max_threads=1)
        except (cp.SolverError, ValueError):
            return True
    return problem.status != "optimal" or bool(problem.value > LEAST)


def _gain(term: dict[str, Any], F: cp.Expression) -> cp.Expression:
    """Return the increase of the margins of the rows with positive weight."""
    weights = np.ones(len(term["y"])) if term["sample_weight"] is None else np.array(term["sample_weight"])
    counted = np.flatnonzero(weights > 0)
    rows = counted if term["rows"] is None else np.array(term["rows"])[counted]
    if term["kind"] == "Cox":
        return survival_gains(term, F if term["rows"] is None else F[term["rows"], :])
    labels, z = [term["y"][place] for place in counted], F[rows, :]
    if term["kind"] in ("Poisson", "Tweedie"):  # values of zero fall forever, other scores must not move
        y = np.array(labels, dtype=float)
        return cp.vstack([-z, z[np.flatnonzero(y > 0), :]])
    if term["kind"] != "Multinomial":
        return cp.multiply(signs(labels)[:, None], z)
    own = cp.sum(cp.multiply(one_hot(labels, term["k"]), z), axis=1, keepdims=True)
    return own @ np.ones((1, term["k"])) - z


def _unpenalised(
    recipe: Recipe, term: dict[str, Any], theta: cp.Expression, F: cp.Expression, h: cp.Expression
) -> list[Any]:
    """Return the conditions under which a penalty does not grow along a direction."""
    kind = term["kind"]
    if kind == "RKHSNorm" and recipe["model"]["kind"] == "kernel":
        return [h == 0]
    z = {"scores": F, "function": theta if kind == "RKHSNorm" else h}.get(term["on"], theta)
    m = z.shape[0]
    if kind in ("Box", "NonNegative"):
        lower, upper = bounds(term, m)
        low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        return ([z[low, :] >= 0] if low.size else []) + ([z[high, :] <= 0] if high.size else [])
    if kind == "L1":
        held = np.arange(m) if term["weights"] is None else np.flatnonzero(term["weights"])
    elif kind == "GroupLasso":
        held = _members(term, positive=True)
    elif kind == "LatentGroupLasso":
        free = _members(term, positive=False)
        held = np.setdiff1d(np.arange(m), free[covered(term)[free]])
    elif kind in (*STRUCTURED, *COMPOSED):
        rows = unseen_rows(term, m) if kind in STRUCTURED else held_rows(term, m)
        return [rows @ z == 0] if len(rows) else []
    elif kind == "FusedLasso":
        rows = differences(term["graph"])[0]
        return [rows @ z == 0] if len(rows) else []
    elif kind == "Dissimilarity":
        return []  # some of the pairs may grow: not a clear case
    else:
        N, B = factor_of(term, m)
        if term.get("matrix") is not None:  # rows of a matrix root: drop those that are round-off
            sizes = np.linalg.norm(N, axis=1)
            N = N[sizes > np.sqrt(m * np.finfo(float).eps) * sizes.max(initial=0.0)]
        if not len(N):
            return []
        return [N @ z == 0 if B is None else N @ z + B @ cp.Variable((B.shape[1], z.shape[1])) == 0]
    return [z[held, :] == 0] if len(held) else []


def _members(term: dict[str, Any], positive: bool) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the features of the groups with a positive weight, or with weight zero."""
    pairs = zip(term["groups"], term["weights"], strict=True)
    return np.array(sorted({j for group, c in pairs if (c > 0) == positive for j in group}), dtype=int)
