"""Coordinate descent on a quadratic model: compiled free functions over plain arrays.

A design matrix is a tuple, ``(A,)`` for a dense one by its columns (A is the transpose in C order, which numba still
calls so if there is only one column), ``(data, indices, indptr)`` for compressed columns with uint32 indices (signed
ones cost a sign extension at every entry). The two only differ in the three column operations at the head; everything
else is written once. Arrays of curvatures and the like have an entry for every feature, of which only those of the
features at hand are used. Import this module where it is used: the import brings numba along.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload

from cvxstructreg.numerics.arrays import Array

Columns = tuple[Any, ...]

# sums may be reordered, so that they use vector instructions; infinities (bounds) keep their meaning
FAST = {"reassoc", "contract", "nsz"}
# Explicit loops instead of array expressions, and few calls between compiled functions: each of these would be
# compiled anew for every caller, which once took most of the seconds of a first use.
compiled = njit(cache=True, error_model="numpy")


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
            total += X[0][j, i] * r[i]
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
            first += h[i] * X[0][j, i]
            square += h[i] * X[0][j, i] * X[0][j, i]
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
            r[i] += step * h[i] * X[0][j, i]

    def sparse(X: Any, j: Any, step: Any, h: Any, r: Any) -> None:
        data, indices, indptr = X
        for p in range(indptr[j], indptr[j + 1]):
            r[indices[p]] += step * h[indices[p]] * data[p]

    return dense if len(X) == 1 else sparse


@compiled
def gradient_on(X: Columns, features: Any, r: Array, out: Array) -> None:
    """out_j = x_j'r for the given features."""
    for j in features:
        out[j] = column_dot(X, j, r)


@compiled
def add_columns(X: Columns, features: Any, step: Array, out: Array) -> None:
    """out += sum_k step_k x_j, with j the k-th of the features."""
    ones = np.ones(out.size)
    for k in range(features.size):
        if step[k] != 0.0:
            column_add(X, features[k], step[k], ones, out)


@compiled
def curvatures(
    X: Columns, features: Any, h: Array, inverse: float, diagonal: Array, curvature: Array, centre: Array
) -> None:
    """Of the given features: centre_j = sum_i h_i x_ij and sum_i h_i x_ij^2 - centre_j^2 / sum(h) + diagonal_j.

    ``inverse`` is 1 / sum(h), or 0 without intercept.
    """
    for j in features:
        square, first = column_moments(X, j, h)
        centre[j] = first
        # not less than round-off allows: a column may be nearly constant
        curvature[j] = max(square - first * first * inverse, 1e-10 * square) + diagonal[j]


@compiled
def violations(features: Any, w: Array, slope: Array, box: Array, out: Array) -> float:
    """How much c|w| + slope w decreases per unit of w_j, in the better of the two directions that the bounds allow.

    Zero or less at a minimum; below zero it says by how much the nearest kink or bound holds w_j. Goes into ``out``;
    returns the largest. ``box`` has rows c, lower, upper.
    """
    worst = 0.0
    for j in features:
        c = box[0, j]
        up = -slope[j] - (c if w[j] >= 0.0 else -c) if w[j] < box[2, j] else -np.inf
        down = slope[j] - (c if w[j] <= 0.0 else -c) if w[j] > box[1, j] else -np.inf
        out[j] = max(up, down)
        worst = max(worst, out[j])
    return worst


@compiled
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
    tol: float,
    passes: int,
) -> tuple[float, float, int]:
    """Passes over the features until no step is larger than ``tol`` in gradient units; r, w and Qw are updated.

    The model is  g'Xd + 1/2 (Xd)'H(Xd) + 1/2 w'Qw + sum c|w|  with r = g + HXd, minimised over the intercept at every
    step: its gradient is x_j'r - centre_j sum(r) / sum(h), with centre_j = sum_i h_i x_ij. Returns the largest step of
    the last pass, sum(r), and the number of passes.
    """
    worst, done = np.inf, 0
    while done < passes and worst > tol:
        worst = 0.0
        done += 1
        for j in features:
            c, bend, old = box[0, j], curvature[j], w[j]
            slope = column_dot(X, j, r) - centre[j] * inverse * total + Qw[j]
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
                total += step * centre[j]
                for p in range(Q[2][j], Q[2][j + 1]):
                    Qw[Q[1][p]] += step * Q[0][p]
                worst = max(worst, abs(step) * bend)
    return worst, total, done


@compiled
def dual_scale(w: Array, slope: Array, box: Array, ridge: Array) -> tuple[float, float, float]:
    """The largest s <= 1 for which absolute values and bounds take s times -slope, and what it costs in the dual.

    Features with a strongly convex term (``ridge``) take any excess e at the cost s w e + e^2 / (4 ridge). Returns s,
    that cost, and the conjugate of the separable part.
    """
    s, free = 1.0, True
    for j in range(w.size):
        c = box[0, j]
        left = -slope[j]
        free = free and ridge[j] <= 0.0 and box[1, j] == -np.inf and box[2, j] == np.inf
        if ridge[j] > 0.0 or c == 0.0:
            continue
        if (left > c and box[2, j] == np.inf) or (left < -c and box[1, j] == -np.inf):
            s = min(s, c / abs(left))
    excess_cost = taken_cost = 0.0
    for j in range(0 if free else w.size):  # absolute values alone cost nothing
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
