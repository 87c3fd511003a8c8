"""Solve a recipe as an ordinary CVXPY problem, written from textbook formulas, with tight tolerances.

Only the point that a solver returns is used. Its value is computed by :mod:`cvxstructreg.crosscheck.textbook.value`,
so an inaccurate solver can hide a violation but cannot cause a false one.
"""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np

from cvxstructreg.crosscheck.recipe import Recipe, outputs_of
from cvxstructreg.crosscheck.textbook.composed import KINDS as COMPOSED
from cvxstructreg.crosscheck.textbook.composed import composed_expression
from cvxstructreg.crosscheck.textbook.matrices import Array, bounds, covered, differences, factor_of, one_hot, signs
from cvxstructreg.crosscheck.textbook.regression import regression_expression, with_offset
from cvxstructreg.crosscheck.textbook.structured import KINDS as STRUCTURED
from cvxstructreg.crosscheck.textbook.structured import structured_expression
from cvxstructreg.crosscheck.textbook.survival import survival_expression

#: Solvers in the order in which they are tried, with their options for tight tolerances.
SOLVERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CLARABEL", {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10, "max_threads": 1, "time_limit": 5.0}),
    ("ECOS", {"abstol": 1e-9, "reltol": 1e-9, "feastol": 1e-9, "max_iters": 200}),
    ("SCS", {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 20_000, "time_limit_secs": 3.0}),
)


def textbook_optimum(recipe: Recipe) -> tuple[Array, Array] | None:
    """Return weights (d, k) and intercepts (k,) near the optimum; None if no solver finds any.

    Examples
    --------
    >>> loss = {"kind": "Squared", "on": "rows", "scale": 1.0, "y": [3.0], "rows": None, "sample_weight": None}
    >>> ridge = {"kind": "Ridge", "on": "weights", "scale": 1.0, "weights": None}
    >>> model = {"kind": "linear", "matrix": [[2.0]], "dtype": "float64", "format": "dense", "intercept": False}
    >>> theta, b = textbook_optimum({"model": model, "terms": [loss, ridge]})
    >>> theta.round(6).tolist(), b.tolist()
    ([[1.0]], [0.0])
    """
    model, k = recipe["model"], outputs_of(recipe)
    A = np.array(model["matrix"], dtype=float)
    units = _powers_of_two(np.abs(A).max(axis=0))
    v = cp.Variable((A.shape[1], k))
    b = cp.Variable((1, k)) if model["intercept"] else None
    theta = cp.multiply(np.broadcast_to((1.0 / units)[:, None], v.shape), v)
    h = (A / units) @ v
    F = h if b is None else h + np.ones((len(A), 1)) @ b
    expressions, constraints = [], []
    for term in recipe["terms"]:
        expression, conditions = _term(recipe, term, theta, F, h)
        constraints += conditions
        if expression is not None and term["scale"] > 0:
            expressions.append(term["scale"] * expression)
    unit = float(_powers_of_two(np.abs([_value_at_zero(recipe)]))[0])
    problem = cp.Problem(cp.Minimize(cp.sum([expression / unit for expression in expressions])), constraints)
    if not _solved(problem) or v.value is None:
        return None
    weights = np.asarray(v.value, dtype=float).reshape(v.shape) / units[:, None]
    intercepts = np.zeros(k) if b is None or b.value is None else np.asarray(b.value, dtype=float).reshape(k)
    if not (np.isfinite(weights).all() and np.isfinite(intercepts).all()):
        return None
    return feasible(recipe, weights), intercepts


def feasible(recipe: Recipe, theta: Array) -> Array:
    """Return the weights moved into the bounds of the recipe, and to zero for features in no latent group."""
    theta = np.array(theta, dtype=float)
    for term in recipe["terms"]:
        if term["on"] == "weights" and term["kind"] in ("Box", "NonNegative"):
            lower, upper = bounds(term, len(theta))
            theta = np.clip(theta, lower[:, None], upper[:, None])
    for term in recipe["terms"]:
        if term["on"] == "weights" and term["kind"] == "LatentGroupLasso" and term["scale"] > 0:
            theta[~covered(term)] = 0.0
    return theta


def _powers_of_two(sizes: Array) -> Array:
    with np.errstate(divide="ignore"):
        exponents = np.round(np.log2(sizes))
    return np.exp2(np.where(np.isfinite(exponents), exponents, 0.0))


def _value_at_zero(recipe: Recipe) -> float:
    from cvxstructreg.crosscheck.textbook.value import value

    d, k = len(recipe["model"]["matrix"][0]), outputs_of(recipe)
    losses = [term for term in recipe["terms"] if term["on"] == "rows"]
    return value({**recipe, "terms": losses}, np.zeros((d, k)), np.zeros(k)).high


def _solved(problem: cp.Problem) -> bool:
    for name, options in SOLVERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                problem.solve(solver=name, **options)
            except (cp.SolverError, ValueError, ArithmeticError):
                continue
        if problem.status in ("optimal", "optimal_inaccurate"):
            return True
    return False


def _term(
    recipe: Recipe, term: dict[str, Any], theta: cp.Expression, F: cp.Expression, h: cp.Expression
) -> tuple[cp.Expression | None, list[Any]]:
    if term["on"] == "rows":
        return _loss(term, F), []
    if term["kind"] == "RKHSNorm" and recipe["model"]["kind"] == "kernel":
        gram = np.array(recipe["model"]["matrix"], dtype=float)
        values, vectors = np.linalg.eigh(gram)
        return cp.sum_squares((np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T) @ theta), []
    z = {"scores": F, "function": theta if term["kind"] == "RKHSNorm" else h}.get(term["on"], theta)
    return _penalty(term, z)


def _loss(term: dict[str, Any], F: cp.Expression) -> cp.Expression:
    z = with_offset(term, F if term["rows"] is None else F[term["rows"], :])
    m = z.shape[0]
    s = np.ones(m) if term["sample_weight"] is None else np.array(term["sample_weight"], dtype=float)
    if term["kind"] == "Cox":
        return survival_expression(term, z, s)
    counted = np.flatnonzero(s > 0)
    z, s, kind = z[counted, :], s[counted], term["kind"]
    column = np.broadcast_to(s[:, None], z.shape)
    found = regression_expression(term, z, s, counted)
    if found is not None:
        return found
    labels = [term["y"][place] for place in counted]
    if kind == "Multinomial":
        own = cp.sum(cp.multiply(one_hot(labels, term["k"]), z), axis=1)
        return cp.sum(cp.multiply(s, cp.log_sum_exp(z, axis=1) - own))
    if kind == "MulticlassHinge":
        k = term["k"]
        wrong = 1.0 - one_hot(labels, k)
        centred = z @ (np.eye(k) - np.ones((k, k)) / k)
        return cp.sum(cp.multiply(column * wrong, cp.pos(centred + 1.0 / (k - 1))))
    margin = cp.multiply(signs(labels)[:, None], z)
    if kind == "Logistic":
        return cp.sum(cp.multiply(column, cp.logistic(-margin)))
    if kind == "Hinge":
        return cp.sum(cp.multiply(column, cp.pos(1.0 - margin)))
    return cp.sum_squares(cp.multiply(np.sqrt(column), cp.pos(1.0 - margin)))


def _penalty(term: dict[str, Any], z: cp.Expression) -> tuple[cp.Expression | None, list[Any]]:
    kind, (m, k) = term["kind"], z.shape
    if kind == "L1":
        c = np.ones(m) if term["weights"] is None else np.array(term["weights"])
        return cp.sum(cp.multiply(np.broadcast_to(c[:, None], (m, k)), cp.abs(z))), []
    if kind in ("Box", "NonNegative"):
        lower, upper = bounds(term, m)
        low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        conditions = [z[low, :] >= np.repeat(lower[low, None], k, axis=1)] if low.size else []
        conditions += [z[high, :] <= np.repeat(upper[high, None], k, axis=1)] if high.size else []
        return None, conditions
    if kind == "FusedLasso":
        rows, weights = differences(term["graph"])
        return (
            (cp.sum(cp.multiply(np.repeat(weights[:, None], k, axis=1), cp.abs(rows @ z))), [])
            if len(rows)
            else (None, [])
        )
    if kind == "GroupLasso":
        return _group_norms(term, z), []
    if kind == "LatentGroupLasso":
        return _latent(term, z) if term["scale"] > 0 else (None, [])
    if kind == "Dissimilarity":
        return _pairs(term, z), []
    if kind in STRUCTURED:
        return structured_expression(term, z), []
    if kind in COMPOSED:
        return composed_expression(term, z), []
    A, B = factor_of(term, m)
    if not len(A):
        return None, []
    return cp.sum_squares(A @ z if B is None else A @ z + B @ cp.Variable((B.shape[1], k))), []


def _group_norms(term: dict[str, Any], z: cp.Expression) -> cp.Expression:
    k = z.shape[1]
    columns = [list(range(k))] if term.get("across_outputs", True) else [[j] for j in range(k)]
    members = term.get("members") or [[1.0] * len(group) for group in term["groups"]]
    norms = [
        c * cp.norm(np.diag(m) @ z[group, :][:, outputs], "fro")
        for group, c, m in zip(term["groups"], term["weights"], members, strict=True)
        for outputs in columns
    ]
    return cp.sum(norms)


def _latent(term: dict[str, Any], z: cp.Expression) -> tuple[cp.Expression, list[Any]]:
    m, k = z.shape
    parts = [cp.Variable((len(group), k)) for group in term["groups"]]
    places = [np.eye(m)[:, list(group)] for group in term["groups"]]
    total = cp.sum([place @ part for place, part in zip(places, parts, strict=True)])
    costs = [c * cp.norm(part, "fro") for c, part in zip(term["weights"], parts, strict=True)]
    return cp.sum(costs), [z == total]


def _pairs(term: dict[str, Any], z: cp.Expression) -> cp.Expression | None:
    k, power = z.shape[1], term["power"]
    if not term["pairs"]:
        return None
    c = np.ones(len(term["pairs"])) if term["weights"] is None else np.array(term["weights"])
    sums = z[[pair[0] for pair in term["pairs"]], :] + z[[pair[1] for pair in term["pairs"]], :]
    centred = sums @ (np.eye(k) - np.ones((k, k)) / k)
    margin = term.get("margin", 0.0)
    excess = cp.pos(cp.abs(sums) - margin) if k == 1 else cp.pos(centred - (k - 2) / (k - 1) - margin)
    if power == 2:
        return cp.sum_squares(cp.multiply(np.sqrt(np.repeat(c[:, None], k, axis=1)), excess))
    return cp.sum(cp.multiply(np.repeat(c[:, None], k, axis=1), excess))


def latent_norm(term: dict[str, Any], z: Array) -> tuple[list[Array], Array]:
    """Return the cheapest parts v_g, each of the shape of z, with a sum near z; and a dual point."""
    unit = float(np.abs(z).max(initial=0.0))
    parts = [np.zeros_like(z) for _ in term["groups"]]
    if unit == 0.0:
        return parts, np.zeros_like(z)
    x = cp.Variable(z.shape)
    cost, (link,) = _latent(term, x)
    cost_unit = max(term["weights"]) or 1.0
    given = x == z / unit
    problem = cp.Problem(cp.Minimize(cost / cost_unit), [link, given])
    if not _solved(problem):
        for j in range(len(z)):  # assign each weight to its cheapest group: feasible, not optimal
            holders = [g for g, group in enumerate(term["groups"]) if j in group]
            if holders:
                parts[min(holders, key=lambda g: float(term["weights"][g]))][j] = z[j]
        return parts, np.zeros_like(z)
    for number, (part, variable) in enumerate(zip(parts, _parts_of(problem, x), strict=True)):
        part[term["groups"][number]] = unit * np.asarray(variable.value).reshape(-1, z.shape[1])
    u = np.asarray(given.dual_value, dtype=float).reshape(z.shape) * cost_unit
    return parts, u if np.sum(u * z) >= 0 else -u


def _parts_of(problem: cp.Problem, x: cp.Variable) -> list[cp.Variable]:
    return sorted(
        (variable for variable in problem.variables() if variable.id != x.id), key=lambda variable: variable.id
    )
