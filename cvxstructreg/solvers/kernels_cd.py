"""Coordinate descent on a quadratic model: compiled free functions over plain arrays.

A design matrix is a tuple, ``(A,)`` for a dense A with contiguous columns (Fortran order), ``(data, indices, indptr)``
for compressed columns with uint32 indices (signed ones cost a sign extension at every entry). The two only differ in
the three column operations at the head; everything else is written once. Import this module where it is used: the
import brings numba along.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload

from cvxstructreg.core.atom import Array

Columns = tuple[Any, ...]

# sums may be reordered, so that they use vector instructions; infinities (bounds) keep their meaning
FAST = {"reassoc", "contract", "nsz"}
#: Passes over the features that are not at zero before a jump, and conjugate gradient steps of a jump at most.
SETTLING = 2
MOST_CG = 25


def column_dot(X: Columns, j: int, r: Array) -> float:
    """x_j'r."""
    raise NotImplementedError("compiled code only")


def column_moments(X: Columns, j: int, h: Array) -> tuple[float, float]:
    """(sum_i h_i x_ij^2, sum_i h_i x_ij)."""
    raise NotImplementedError("compiled code only")


def column_add(X: Columns, j: int, step: float, h: Array, r: Array) -> None:
    """r_i += step h_i x_ij."""
    raise NotImplementedError("compiled code only")


@overload(column_dot, jit_options={"fastmath": FAST})
def _column_dot(X: Any, j: Any, r: Any) -> Any:
    def dense(X: Any, j: Any, r: Any) -> Any:
        total = 0.0
        for i in range(r.size):
            total += X[0][i, j] * r[i]
        return total

    def sparse(X: Any, j: Any, r: Any) -> Any:
        data, indices, indptr = X
        total = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            total += data[p] * r[indices[p]]
        return total

    return dense if len(X) == 1 else sparse


@overload(column_moments, jit_options={"fastmath": FAST})
def _column_moments(X: Any, j: Any, h: Any) -> Any:
    def dense(X: Any, j: Any, h: Any) -> Any:
        square = first = 0.0
        for i in range(h.size):
            first += h[i] * X[0][i, j]
            square += h[i] * X[0][i, j] * X[0][i, j]
        return square, first

    def sparse(X: Any, j: Any, h: Any) -> Any:
        data, indices, indptr = X
        square = first = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            first += h[indices[p]] * data[p]
            square += h[indices[p]] * data[p] * data[p]
        return square, first

    return dense if len(X) == 1 else sparse


@overload(column_add, jit_options={"fastmath": FAST})
def _column_add(X: Any, j: Any, step: Any, h: Any, r: Any) -> Any:
    def dense(X: Any, j: Any, step: Any, h: Any, r: Any) -> None:
        for i in range(r.size):
            r[i] += step * h[i] * X[0][i, j]

    def sparse(X: Any, j: Any, step: Any, h: Any, r: Any) -> None:
        data, indices, indptr = X
        for p in range(indptr[j], indptr[j + 1]):
            r[indices[p]] += step * h[indices[p]] * data[p]

    return dense if len(X) == 1 else sparse


@njit(cache=True)
def gradient_on(X: Columns, features: Any, r: Array, out: Array) -> None:
    """out_j = x_j'r for the given features."""
    for j in features:
        out[j] = column_dot(X, j, r)


@njit(cache=True)
def all_moments(X: Columns, features: Any, h: Array) -> Array:
    """The sums of h x_j^2 (first row) and of h x_j (second row) for the given features."""
    out = np.empty((2, features.size))
    for k in range(features.size):
        out[0, k], out[1, k] = column_moments(X, features[k], h)
    return out


@njit(cache=True)
def violation(w: float, slope: float, c: float, lower: float, upper: float) -> float:
    """How much c|w| + slope w decreases per unit of w, in the better of the two directions that the bounds allow.

    Zero or less at a minimum; below zero it says by how much the nearest kink or bound holds w.
    """
    up = -slope - (c if w >= 0.0 else -c) if w < upper else -np.inf
    down = slope - (c if w <= 0.0 else -c) if w > lower else -np.inf
    return max(up, down)


@njit(cache=True)
def violations(features: Any, w: Array, slope: Array, box: Array, out: Array) -> float:
    """:func:`violation` of the given features into ``out``, and the largest. ``box`` has rows c, lower, upper."""
    worst = 0.0
    for j in features:
        out[j] = violation(w[j], slope[j], box[0, j], box[1, j], box[2, j])
        worst = max(worst, out[j])
    return worst


@njit(cache=True)
def descend(
    X: Columns,
    Q: Columns,
    features: Any,
    curvature: Array,
    centre: Array,
    box: Array,
    h: Array,
    inverse: float,
    total: float,
    r: Array,
    w: Array,
    Qw: Array,
) -> tuple[float, float]:
    """One pass over the features; r, w and Qw are updated. Returns the largest step in gradient units, and sum(r).

    The model is  g'Xd + 1/2 (Xd)'H(Xd) + 1/2 w'Qw + sum c|w|  with r = g + HXd, minimised over the intercept at every
    step: its gradient is x_j'r - centre_j sum(r) / sum(h), with centre_j = sum_i h_i x_ij.
    """
    worst = 0.0
    for k in range(features.size):
        j = features[k]
        c, bend, old = box[0, j], curvature[k], w[j]
        slope = column_dot(X, j, r) - centre[k] * inverse * total + Qw[j]
        if bend > 0.0:
            point = old - slope / bend
            new = max(abs(point) - c / bend, 0.0)
            new = new if point > 0.0 else -new
        else:  # an empty column
            new = 0.0 if c > 0.0 else old
        new = min(max(new, box[1, j]), box[2, j])
        if new != old:
            step = new - old
            w[j] = new
            column_add(X, j, step, h, r)
            total += step * centre[k]
            for p in range(Q[2][j], Q[2][j + 1]):
                Qw[Q[1][p]] += step * Q[0][p]
            worst = max(worst, abs(step) * bend)
    return worst, total


@njit(cache=True)
def add_quadratic(Q: Columns, features: Any, step: Array, Qw: Array) -> None:
    """Qw += Q step, for a step on some features."""
    for k in range(features.size):
        for p in range(Q[2][features[k]], Q[2][features[k] + 1]):
            Qw[Q[1][p]] += step[k] * Q[0][p]


@njit(cache=True)
def conjugate_gradients(
    X: Columns,
    Q: Columns,
    features: Any,
    model: tuple[Array, Array, Array, float],
    slope: Array,
    scratch: Array,
    tol: float,
) -> tuple[Array, Array]:
    """The minimiser of the model over features whose signs stay, with its scores: as the step and X step.

    Solves ``A step = -slope`` with A = X'HX - centre centre' / sum(h) + Q by conjugate gradients with a diagonal
    preconditioner, until the residual is within ``tol``. ``scratch`` is zero on all features before and after.
    """
    curvature, centre, h, inverse = model
    step, residual = np.zeros(features.size), -slope
    scores, image = np.zeros(h.size), np.empty(h.size)
    ones, product = np.ones(h.size), np.empty(features.size)
    scaled = residual / curvature
    direction = scaled.copy()
    energy = np.dot(residual, scaled)
    for _ in range(min(features.size, MOST_CG)):
        image[:] = 0.0
        for k in range(features.size):
            column_add(X, features[k], direction[k], ones, image)
        common = inverse * np.dot(centre, direction)
        add_quadratic(Q, features, direction, scratch)
        weighted = h * image
        for k in range(features.size):
            product[k] = column_dot(X, features[k], weighted) - centre[k] * common + scratch[features[k]]
        for k in range(features.size):
            for p in range(Q[2][features[k]], Q[2][features[k] + 1]):
                scratch[Q[1][p]] = 0.0
        bend = np.dot(direction, product)
        if not bend > 0.0:
            break
        length = energy / bend
        step += length * direction
        scores += length * image
        residual -= length * product
        if np.abs(residual).max() <= tol:
            break
        scaled = residual / curvature
        previous, energy = energy, np.dot(residual, scaled)
        direction = scaled + (energy / previous) * direction
    return step, scores


@njit(cache=True)
def stay_inside(features: Any, step: Array, box: Array, w: Array) -> float:
    """The largest t <= 1 for which w + t step changes no sign and leaves no bound."""
    t = 1.0
    for k in range(features.size):
        j = features[k]
        lower, upper = box[1, j], box[2, j]
        if box[0, j] > 0.0:
            lower, upper = (max(lower, 0.0), upper) if w[j] > 0.0 else (lower, min(upper, 0.0))
        if w[j] + step[k] > upper:
            t = min(t, (upper - w[j]) / step[k])
        elif w[j] + step[k] < lower:
            t = min(t, (lower - w[j]) / step[k])
    return t


@njit(cache=True)
def jump(
    X: Columns,
    Q: Columns,
    features: Any,
    model: tuple[Array, Array, Array, float],
    box: Array,
    total: float,
    r: Array,
    w: Array,
    Qw: Array,
    scratch: Array,
    tol: float,
) -> float:
    """A step of all features that can move freely towards the minimum of the model; returns sum(r)."""
    curvature, centre, h, inverse = model
    free = np.flatnonzero(
        (curvature > 0.0)
        & ((w[features] != 0.0) | (box[0][features] == 0.0))
        & (w[features] > box[1][features])
        & (w[features] < box[2][features])
    )
    if free.size == 0:
        return total
    some, some_centre = features[free], centre[free]
    slope = np.empty(some.size)
    for k in range(some.size):
        j = some[k]
        slope[k] = column_dot(X, j, r) - some_centre[k] * inverse * total + Qw[j]
        slope[k] += box[0, j] if w[j] > 0.0 else -box[0, j]
    if np.abs(slope).max() <= tol:
        return total
    step, scores = conjugate_gradients(X, Q, some, (curvature[free], some_centre, h, inverse), slope, scratch, tol)
    t = stay_inside(some, step, box, w)
    for k in range(some.size):
        j, before = some[k], w[some[k]]
        w[j] = min(max(before + t * step[k], box[1, j]), box[2, j])
        if box[0, j] > 0.0 and before * w[j] <= 0.0:
            w[j] = 0.0
        elif t < 1.0 and abs(w[j]) <= 1e-14 * abs(before) and box[0, j] > 0.0:
            w[j] = 0.0  # the one that has stopped the step, up to round-off
        step[k] = w[j] - before
    add_quadratic(Q, some, step, Qw)
    r += t * h * scores
    return total + np.dot(some_centre, step)


@njit(cache=True)
def minimise_model(
    X: Columns,
    Q: Columns,
    features: Any,
    diagonal: Array,
    box: Array,
    intercept: bool,
    h: Array,
    r: Array,
    w: Array,
    Qw: Array,
    tol: float,
    max_epochs: int,
) -> tuple[Array, float, int]:
    """Coordinate descent on the quadratic model over some features and the intercept.

    A pass over all features finds the signs, a few passes over those that are not at zero settle them, a jump by
    conjugate gradients goes to the minimum for these signs (coordinate descent is slow there when features are
    correlated), and so on until no step of a full pass is larger than ``tol`` in gradient units. ``r`` is the gradient
    by the scores, ``diagonal`` that of Q. Updates r, w and Qw; returns the change of the scores, that of the intercept,
    and the number of passes.
    """
    start = w[features].copy()
    curvature, centre = np.empty(features.size), np.zeros(features.size)
    mass = h.sum() if intercept else 0.0
    inverse = 1.0 / mass if mass > 0.0 else 0.0
    moments = all_moments(X, features, h)
    for k in range(features.size):
        square, first = moments[:, k]
        centre[k] = first if intercept else 0.0
        # not less than round-off allows: a column may be nearly constant
        curvature[k] = max(square - first * centre[k] * inverse, 1e-10 * square) + diagonal[features[k]]
    total = r.sum() if intercept else 0.0
    scratch = np.zeros(w.size)
    epochs = 0
    while epochs < max_epochs:
        worst, total = descend(X, Q, features, curvature, centre, box, h, inverse, total, r, w, Qw)
        epochs += 1
        if worst <= tol:
            break
        moving = np.flatnonzero((w[features] != 0.0) | (box[0][features] == 0.0))
        some, some_curvature, some_centre = features[moving], curvature[moving], centre[moving]
        for _ in range(SETTLING):
            worst, total = descend(X, Q, some, some_curvature, some_centre, box, h, inverse, total, r, w, Qw)
            epochs += 1
        if worst > tol:
            model = (some_curvature, some_centre, h, inverse)
            total = jump(X, Q, some, model, box, total, r, w, Qw, scratch, 0.5 * tol)
    shift = -inverse * total
    change = np.full(r.size, shift)
    ones = np.ones(r.size)
    for k in range(features.size):
        step = w[features[k]] - start[k]
        if step != 0.0:
            column_add(X, features[k], step, ones, change)
    return change, shift, epochs


@njit(cache=True)
def dual_scale(w: Array, slope: Array, box: Array, ridge: Array) -> tuple[float, float, float]:
    """The largest s <= 1 for which absolute values and bounds take s times -slope, and what it costs in the dual.

    Features with a strongly convex term (``ridge``) take any excess e at the cost s w e + e^2 / (4 ridge). Returns s,
    that cost, and the conjugate of the separable part.
    """
    s = 1.0
    for j in range(w.size):
        c = box[0, j]
        left = -slope[j]
        if ridge[j] > 0.0 or c == 0.0:
            continue
        if (left > c and box[2, j] == np.inf) or (left < -c and box[1, j] == -np.inf):
            s = min(s, c / abs(left))
    excess_cost = taken_cost = 0.0
    for j in range(w.size):
        c, lower, upper, left = box[0, j], box[1, j], box[2, j], -s * slope[j]
        taken = min(left, c) if upper == np.inf else left
        taken = max(taken, -c) if lower == -np.inf else taken
        if ridge[j] > 0.0:
            excess = left - taken
            excess_cost += s * w[j] * excess + excess * excess / (4.0 * ridge[j])
        nearest = min(max(0.0, lower), upper)
        best = taken * nearest - c * abs(nearest)
        if lower > -np.inf:
            best = max(best, taken * lower - c * abs(lower))
        if upper < np.inf:
            best = max(best, taken * upper - c * abs(upper))
        taken_cost += best
    return s, excess_cost, taken_cost
