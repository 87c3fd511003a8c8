"""Coordinate descent on a quadratic model: compiled functions of plain arrays.

A design matrix is a tuple: ``(A,)`` for a dense matrix (A is the transpose in C order, a type that numba keeps even for
a single column), or ``(data, indices, indptr)`` for compressed columns with uint32 indices (signed indices would cost a
sign extension at every entry). The two cases differ only in the three column operations below; all other code is
shared. Arrays such as ``curvature`` have an entry for every feature, but only those of the selected features are used.
Import this module only where it is called, because it imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.compiled_clock import njit, overload

Columns = tuple[Any, ...]

# sums may be reordered, which allows vector instructions; infinities (bounds) keep their meaning
FAST = {"reassoc", "contract", "nsz"}
# The functions use explicit loops instead of array expressions, and few calls of each other. Both would be compiled
# again for every caller, which dominated the time of the first use.
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
def violations(features: Any, w: Array, slope: Array, box: Array, out: Array) -> float:
    """The decrease of c|w| + slope w per unit of w_j, in the better of the directions that the bounds allow.

    It is zero or negative at a minimum. A negative value is the margin by which a kink or bound keeps w_j in place. The
    results are in ``out``; the largest is returned. ``box`` has the rows c, lower, upper.
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
    diagonal: Array,
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
    narrow: bool,
) -> tuple[float, float, float, int, Any]:
    """Passes over the features until no step exceeds ``tol`` in gradient units; r, w and Qw are updated.

    With ``narrow``, only the first pass is over all of the features. The others are over those that may move on: with a
    nonzero weight, or without L1 term.

    The model is  g'Xd + 1/2 (Xd)'H(Xd) + 1/2 w'Qw + sum c|w|  with r = g + HXd, minimised over the intercept at every
    step. The gradient of its smooth part is x_j'r - centre_j sum(r) / sum(h) + (Qw)_j with centre_j = sum_i h_i x_ij.
    ``box`` has the rows c, lower, upper, ``h`` is the diagonal of H, ``inverse`` is 1 / sum(h) or 0, ``total`` is
    sum(r), and ``diagonal`` is that of Q.

    ``curvature`` is sum_i h_i x_ij^2 - centre_j^2 / sum(h) + Q_jj. Where it is negative, it is unknown: it and
    ``centre`` are computed when they are needed first. Features that stay at zero need neither without intercept.
    Returns the largest steps of the first and of the last pass, sum(r), the number of passes, and the features of the
    last pass.
    """
    first, worst, done, moving = np.inf, np.inf, 0, features
    while done < passes and worst > tol:
        worst = 0.0
        done += 1
        for j in moving:
            c, bend, old = box[0, j], curvature[j], w[j]
            slope = column_dot(X, j, r) + Qw[j]
            if inverse == 0.0 and old == 0.0 and abs(slope) <= c:
                continue
            if bend < 0.0:
                square, mean = column_moments(X, j, h)
                # at least the round-off: a column may be nearly constant
                bend = max(square - mean * mean * inverse, 1e-10 * square) + diagonal[j]
                centre[j], curvature[j] = mean, bend
            slope -= centre[j] * inverse * total
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
        if done == 1:
            first = worst
            if narrow:
                count, chosen = 0, np.empty_like(features)
                for j in features:
                    if w[j] != 0.0 or box[0, j] == 0.0:
                        chosen[count] = j
                        count += 1
                moving = chosen[:count]
    return first, worst, total, done, moving


@compiled
def weight_terms(features: Any, w: Array, Qw: Array, box: Array) -> float:
    """sum_j c_j |w_j| + 1/2 w_j (Qw)_j over the features."""
    total = 0.0
    for j in features:
        total += box[0, j] * abs(w[j]) + 0.5 * w[j] * Qw[j]
    return total


@compiled
def add_moves(X: Columns, features: Any, before: Array, after: Array, out: Array) -> None:
    """out += sum_j (after_j - before_j) x_j over the features."""
    ones = np.ones(out.size)
    for j in features:
        if after[j] != before[j]:
            column_add(X, j, after[j] - before[j], ones, out)


@compiled
def dual_scale(w: Array, slope: Array, box: Array, ridge: Array) -> tuple[float, float, float]:
    """The largest s <= 1 for which -s * slope is in the domain of the separable conjugate, and the dual cost there.

    Features with a strongly convex term (``ridge``) may have any excess e, at the cost s w e + e^2 / (4 ridge). Returns
    s, the sum of these costs, and the conjugate of the separable part.
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
    for j in range(0 if free else w.size):  # the conjugate of a pure L1 term is zero
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
