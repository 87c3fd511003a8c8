"""The objective of a recipe by textbook formulas, in extended precision.

Each value comes with its *magnitude*: the sum of the absolute values of everything that was added to obtain it, times
the derivative of the last step. A computation in double precision is accurate to a few units of round-off of this
number and cannot be better: with X w = 1e9 - 1e9, a loss can only be computed to about 1e-7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.crosscheck.recipe import Recipe
from cvxstructreg.crosscheck.textbook.composed import composed_value
from cvxstructreg.crosscheck.textbook.matrices import Array, bounds, covered, differences, factor_of, one_hot, signs
from cvxstructreg.crosscheck.textbook.regression import EPS, KINK, regression_value, with_offset
from cvxstructreg.crosscheck.textbook.structured import structured_value
from cvxstructreg.crosscheck.textbook.survival import survival_value

#: Allowed round-off: this fraction of the terms, plus this many units in the last place of the magnitudes.
RELATIVE, UNITS = 1e-12, 32.0
#: Relative accuracy of a norm that is itself a minimum.
INNER = 1e-8


@dataclass(frozen=True)
class Value:
    """An objective between ``low`` and ``high``, which are equal unless a norm is itself a minimum.

    Such a norm is computed by a cone solver, both in the package and here; ``inner`` is its part of the objective.
    """

    high: float
    low: float
    magnitude: float
    inner: float = 0.0

    @property
    def slack(self) -> float:
        """Allowed error of a computation in double precision."""
        return RELATIVE * abs(self.high) + UNITS * EPS * self.magnitude

    @property
    def spread(self) -> float:
        """Additional allowed error of a norm that is itself a minimum."""
        return self.high - self.low + INNER * self.inner


@dataclass(frozen=True)
class _Argument:
    """The argument of a term, and the magnitudes of the sums behind it."""

    z: Array
    size: Array


def value(recipe: Recipe, theta: Array, b: Array) -> Value:
    """Return the objective at weights (d, k) and intercepts (k,).

    Examples
    --------
    >>> loss = {"kind": "Squared", "on": "rows", "scale": 1.0, "y": [3.0], "rows": None, "sample_weight": None}
    >>> model = {"kind": "linear", "matrix": [[2.0]], "dtype": "float64", "format": "dense", "intercept": True}
    >>> value({"model": model, "terms": [loss]}, np.array([[1.0]]), np.array([-1.0])).high
    2.0
    """
    A = np.array(recipe["model"]["matrix"], dtype=np.longdouble)
    theta, b = np.asarray(theta, dtype=np.longdouble), np.asarray(b, dtype=np.longdouble)
    h = _Argument(A @ theta, np.abs(A) @ np.abs(theta))
    F = _Argument(h.z + b, h.size + np.abs(b))
    high = low = magnitude = inner = np.longdouble(0.0)
    for term in recipe["terms"]:
        if term["scale"] == 0 and term["kind"] not in ("Box", "NonNegative"):
            continue
        top, bottom, size = _term_value(recipe, term, _Argument(theta, np.abs(theta)), F, h)
        scale = 1.0 if term["kind"] in ("Box", "NonNegative") else term["scale"]
        high, low, magnitude = high + scale * top, low + scale * bottom, magnitude + scale * (size + abs(top))
        inner += scale * top if term["kind"] == "LatentGroupLasso" else 0.0
    return Value(float(high), float(low), float(magnitude), float(inner))


def _term_value(recipe: Recipe, term: dict[str, Any], w: _Argument, F: _Argument, h: _Argument) -> tuple[Any, Any, Any]:
    if term["on"] == "rows":
        top, size = _loss(term, F)
    elif term["kind"] == "RKHSNorm" and recipe["model"]["kind"] == "kernel":
        top = np.sum(w.z * h.z)
        size = np.sum(w.size * h.size) + negative_part(recipe) * np.sum(w.z**2) / EPS
    else:
        argument = {"scores": F, "function": w if term["kind"] == "RKHSNorm" else h}.get(term["on"], w)
        if term["kind"] == "LatentGroupLasso":
            return _latent(term, argument)
        top, size = _penalty(term, argument)
    return top, top, size


def term_value(term: dict[str, Any], z: Array) -> Value:
    """Return the value of one term of strength 1 at its argument (for a loss: the scores of its rows), unrounded."""
    z = np.asarray(z, dtype=np.longdouble)
    argument = _Argument(z, np.abs(z))
    if term["kind"] == "LatentGroupLasso":
        top, bottom, size = _latent(term, argument)
        return Value(top, bottom, size, top)
    top, size = _loss({**term, "rows": None}, argument) if term["on"] == "rows" else _penalty(term, argument)
    return Value(top, top, size)


def negative_part(recipe: Recipe) -> float:
    """Return how far the smallest eigenvalue of the Gram matrix is below zero because of its precision."""
    return max(0.0, -float(np.linalg.eigvalsh(np.array(recipe["model"]["matrix"], dtype=float))[0]))


def _loss(term: dict[str, Any], F: _Argument) -> tuple[Any, Any]:
    rows = slice(None) if term["rows"] is None else term["rows"]
    z, size = with_offset(term, F.z[rows]), F.size[rows] + 1.0
    size = with_offset({"offset": None if term.get("offset") is None else np.abs(term["offset"])}, size)
    s = np.ones(len(z)) if term["sample_weight"] is None else np.array(term["sample_weight"])
    s = s.astype(np.longdouble)[:, None]
    kind = term["kind"]
    if kind == "Cox":
        return survival_value(term, z, size, s)
    found = regression_value(term, z, size, s)
    if found is not None:
        return found
    if kind == "Multinomial":
        top = z.max(axis=1, keepdims=True)
        own = np.sum(one_hot(term["y"], term["k"]) * z, axis=1, keepdims=True)
        others = np.where(one_hot(term["y"], term["k"]) > 0, -np.inf, z - own)
        # log(1 + sum over the other classes) is accurate if the score of the true class is much larger
        peak = np.maximum(others.max(axis=1, keepdims=True), 0.0)
        small = np.log1p(np.sum(np.exp(np.minimum(others, 0.0)), axis=1, keepdims=True))
        large = peak + np.log(np.sum(np.exp(z - own - peak), axis=1, keepdims=True))
        losses = np.where(top - own > 0, large, small)
        chance = np.minimum(1.0, 4.0 * losses + KINK * EPS * size.max(axis=1, keepdims=True))
        # log(sum of exp) is accurate to a unit in the last place of 1, even if it is much smaller than 1
        return np.sum(s * losses), np.sum(s * (1.0 + chance * size.max(axis=1, keepdims=True) * 2.0))
    if kind == "MulticlassHinge":
        k = term["k"]
        centred, size = z - z.mean(axis=1, keepdims=True), size + size.mean(axis=1, keepdims=True)
        excess = (centred + np.longdouble(1.0) / (k - 1)) * (1.0 - one_hot(term["y"], k))
        return np.sum(s * np.maximum(excess, 0.0)), np.sum(s * size * (excess > -KINK * EPS * size))
    margin = signs(term["y"])[:, None] * z
    if kind == "Logistic":
        losses = np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)
        chance = np.minimum(1.0, losses + KINK * EPS * size)
        return np.sum(s * losses), np.sum(s * chance * size)
    excess = np.maximum(1.0 - margin, 0.0)
    if kind == "Hinge":
        return np.sum(s * excess), np.sum(s * size * (1.0 - margin > -KINK * EPS * size))
    return np.sum(s * excess**2), np.sum(s * (2.0 * excess * size + EPS * size**2))


def _penalty(term: dict[str, Any], argument: _Argument) -> tuple[Any, Any]:
    z, size = argument.z, argument.size
    kind, m = term["kind"], len(argument.z)
    if kind == "L1":
        c = np.ones(m) if term["weights"] is None else np.array(term["weights"])
        return np.sum(c[:, None] * np.abs(z)), np.sum(c[:, None] * size)
    if kind in ("Box", "NonNegative"):
        lower, upper = (bound[:, None] for bound in bounds(term, m))
        return (0.0 if np.all((z >= lower) & (z <= upper)) else np.inf), 0.0
    if kind == "FusedLasso":
        rows, weights = differences(term["graph"])
        return np.sum(weights[:, None] * np.abs(rows @ z)), np.sum(weights[:, None] * (np.abs(rows) @ size))
    if kind == "GroupLasso":
        return _group_norms(term, z), _group_norms(term, size)
    if kind == "Dissimilarity":
        return _pairs(term, z, size)
    found = structured_value(term, z, size) or composed_value(term, z, size)
    if found is not None:
        return found
    return _quadratic(term, z, size)


def _group_norms(term: dict[str, Any], z: Array) -> Any:
    """Return sum c ||diag(m) w_g||, of all outputs together or of each output."""
    columns = [z] if term.get("across_outputs", True) else [z[:, [j]] for j in range(z.shape[1])]
    members = term.get("members") or [[1.0] * len(group) for group in term["groups"]]
    return sum(
        (
            c * _norm(np.array(m, dtype=np.longdouble)[:, None] * x[group])
            for x in columns
            for group, c, m in zip(term["groups"], term["weights"], members, strict=True)
        ),
        np.longdouble(0.0),
    )


def _pairs(term: dict[str, Any], z: Array, size: Array) -> tuple[Any, Any]:
    """Return sum c (F_sj + F_tj - (k-2)/(k-1) - m)_+^p of centred scores; (|f_s + f_t| - m)_+^p for one output."""
    k, margin = z.shape[1], np.longdouble(term.get("margin", 0.0))
    first, second = (np.array([pair[side] for pair in term["pairs"]], dtype=int) for side in (0, 1))
    c = np.ones(len(first)) if term["weights"] is None else np.array(term["weights"])
    if k == 1:
        excess = np.maximum(np.abs(z[first] + z[second]) - margin, 0.0)
        size = size[first] + size[second] + margin
    else:
        z, size = z - z.mean(axis=1, keepdims=True), size + size.mean(axis=1, keepdims=True)
        excess = np.maximum(z[first] + z[second] - np.longdouble(k - 2) / (k - 1) - margin, 0.0)
        size = size[first] + size[second] + 1.0 + margin
    slope = excess if term["power"] == 2 else excess**0
    return np.sum(c[:, None] * excess ** term["power"]), np.sum(c[:, None] * (2.0 * slope * size + EPS * size**2))


def _quadratic(term: dict[str, Any], z: Array, size: Array) -> tuple[Any, Any]:
    if term["kind"] in ("Ridge", "RKHSNorm"):
        c = np.ones(len(z)) if term.get("weights") is None else np.array(term["weights"])
        return np.sum(c[:, None] * z**2), np.sum(c[:, None] * size**2)
    if term["kind"] == "Quadratic" and term["matrix"] is not None:
        Q = np.array(term["matrix"], dtype=np.longdouble)
        return np.sum(z * (Q @ z)), np.sum(size * (np.abs(Q) @ size))
    A, B = factor_of(term, len(z))
    residual, sizes = A @ z, np.abs(A) @ size
    if term.get("power", 1) > 1:  # the entries of powers of L are sums of terms of both signs
        N = np.abs(factor_of({**term, "power": 1}, len(z))[0])
        sizes = _power_sizes(N, term["power"], size)
    if B is not None:
        for _ in range(3):  # optimal values of the virtual nodes, refined twice
            means = np.linalg.lstsq(B, np.asarray(-residual, dtype=float), rcond=None)[0]
            residual, sizes = residual + B @ means, sizes + np.abs(B) @ np.abs(means)
    return np.sum(residual**2), np.sum(sizes**2)


def _power_sizes(N: Array, power: int, size: Array) -> Array:
    L = N.T @ N
    for _ in range(power // 2):
        size = L @ size
    return N @ size if power % 2 else size


def _norm(z: Array) -> Any:
    top = np.abs(z).max(initial=0.0)
    return top * np.sqrt(np.sum((z / top) ** 2)) if top > 0 else np.longdouble(0.0)


def _latent(term: dict[str, Any], argument: _Argument) -> tuple[Any, Any, Any]:
    """Return an upper bound (a decomposition w = sum_g v_g) and a lower bound (u'w with ||u_g|| <= c_g) of the norm."""
    from cvxstructreg.crosscheck.textbook.program import latent_norm

    z = argument.z
    if np.any(z[~covered(term)]):
        return np.inf, np.inf, 0.0
    costs = np.array(term["weights"], dtype=np.longdouble)
    free = sorted({j for c, group in zip(costs, term["groups"], strict=True) if c == 0 for j in group})
    z = z.copy()
    z[free] = 0.0  # a group of cost zero takes its features for free
    parts, u = latent_norm(term, np.asarray(z, dtype=float))
    top = sum((c * _norm(part) for c, part in zip(costs, parts, strict=True)), np.longdouble(0.0))
    # the parts must add up to z: the cost of the rounding error is added
    left = z - sum((part for part in parts), np.zeros_like(z))
    for j in np.flatnonzero(np.any(left != 0, axis=1)):
        top += _norm(left[[j]]) * min(c for c, group in zip(costs, term["groups"], strict=True) if j in group)
    u[free] = 0.0
    ratios = [_norm(u[group]) / c for c, group in zip(costs, term["groups"], strict=True) if c > 0]
    bottom = np.sum(u * z) / max([1.0, *ratios])
    return top, min(top, max(bottom, 0.0)), top
