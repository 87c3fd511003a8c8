"""Jumps to the minimum of a quadratic model over the features that are free to move: compiled free functions.

They solve ``A step = -slope`` with A = X'HX - centre centre' / sum(h) + Q over some features, and go there as far as
signs and bounds allow. Arrays are those of ``compiled_coordinate_descent``. Import this module where it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.lasso.compiled_coordinate_descent import Columns, column_add, column_dot, compiled

#: Conjugate gradient steps of a jump at most.
MOST_CG = 25


@compiled
def free_slopes(
    X: Columns,
    features: Any,
    curvature: Array,
    centre: Array,
    box: Array,
    common: float,
    r: Array,
    w: Array,
    Qw: Array,
) -> tuple[Any, Array]:
    """The features that are neither held at zero nor at a bound, and the slope of the model along each.

    ``common`` is sum(r) / sum(h).
    """
    count = 0
    free, slope = np.empty_like(features), np.empty(features.size)
    for j in features:
        if curvature[j] > 0.0 and (w[j] != 0.0 or box[0, j] == 0.0) and box[1, j] < w[j] < box[2, j]:
            kink = box[0, j] if w[j] > 0.0 else -box[0, j]
            free[count], slope[count] = j, column_dot(X, j, r) - centre[j] * common + Qw[j] + kink
            count += 1
    return free[:count], slope[:count]


@compiled
def conjugate_gradients(
    X: Columns,
    Q: Columns,
    features: Any,
    curvature: Array,
    centre: Array,
    h: Array,
    inverse: float,
    slope: Array,
    scratch: Array,
    tol: float,
) -> tuple[Array, Array]:
    """The minimiser of the model over features whose signs stay, with its scores: as the step and X step.

    Solves ``A step = -slope`` with A = X'HX - centre centre' / sum(h) + Q by conjugate gradients with a diagonal
    preconditioner, until the residual is within ``tol``. ``slope`` has one entry for each of the features; ``scratch``
    is zero on all features before and after.
    """
    m, n = features.size, h.size
    step, residual, direction, product = np.zeros(m), np.empty(m), np.zeros(m), np.empty(m)
    scores, image, ones = np.zeros(n), np.empty(n), np.ones(n)
    energy = before = 0.0
    for k in range(m):
        residual[k] = -slope[k]
        energy += residual[k] * residual[k] / curvature[features[k]]
    for _ in range(min(m, MOST_CG)):
        common = 0.0
        for i in range(n):
            image[i] = 0.0
        for k in range(m):
            j = features[k]
            direction[k] = residual[k] / curvature[j] + (energy / before * direction[k] if before > 0.0 else 0.0)
            column_add(X, j, direction[k], ones, image)
            common += inverse * centre[j] * direction[k]
            for p in range(Q[2][j], Q[2][j + 1]):
                scratch[Q[1][p]] += direction[k] * Q[0][p]
        for i in range(n):
            ones[i] = h[i] * image[i]
        bend = 0.0
        for k in range(m):
            j = features[k]
            product[k] = column_dot(X, j, ones) - centre[j] * common + scratch[j]
            bend += direction[k] * product[k]
        for i in range(n):
            ones[i] = 1.0
        for k in range(m):
            for p in range(Q[2][features[k]], Q[2][features[k] + 1]):
                scratch[Q[1][p]] = 0.0
        if not bend > 0.0:
            break
        length, before, energy, worst = energy / bend, energy, 0.0, 0.0
        for i in range(n):
            scores[i] += length * image[i]
        for k in range(m):
            step[k] += length * direction[k]
            residual[k] -= length * product[k]
            energy += residual[k] * residual[k] / curvature[features[k]]
            worst = max(worst, abs(residual[k]))
        if worst <= tol:
            break
    return step, scores


@compiled
def add_gram(X: Columns, features: Any, h: Array, most: float, out: Array) -> bool:
    """The lower triangle of X'HX over some features is added to ``out``, for a sparse X.

    It is summed up by rows of X, as there are few of the features in each. If that takes ``most`` products or more,
    nothing is done, and False returned.
    """
    data, indices, indptr = X
    n, work = h.size, 0.0
    start = np.zeros(n + 1, dtype=np.int64)
    for j in features:
        for p in range(indptr[j], indptr[j + 1]):
            start[indices[p] + 1] += 1
    for i in range(n):
        work += 0.5 * start[i + 1] * (start[i + 1] + 1)
        start[i + 1] += start[i]
    if work >= most:
        return False
    # the columns by rows; in each row they are in order
    column, value, end = np.empty(start[n], dtype=np.uint32), np.empty(start[n]), start.copy()
    for k in range(features.size):
        for p in range(indptr[features[k]], indptr[features[k] + 1]):
            i = indices[p]
            column[end[i]], value[end[i]] = k, data[p]
            end[i] += 1
    for i in range(n):
        for p in range(start[i], start[i + 1]):
            scaled = h[i] * value[p]
            for q in range(start[i], p + 1):
                out[column[p], column[q]] += scaled * value[q]
    return True


@compiled
def add_rest(Q: Columns, features: Any, centre: Array, inverse: float, scratch: Array, out: Array) -> None:
    """The lower triangle of Q - centre centre' / sum(h) over some features is added to ``out``."""
    for k in range(features.size):
        j = features[k]
        for p in range(Q[2][j], Q[2][j + 1]):
            scratch[Q[1][p]] += Q[0][p]
        for i in range(k + 1):
            out[k, i] += scratch[features[i]] - centre[j] * inverse * centre[features[i]]
        for p in range(Q[2][j], Q[2][j + 1]):
            scratch[Q[1][p]] = 0.0


@compiled
def land(
    X: Columns,
    Q: Columns,
    free: Any,
    slope: Array,
    step: Array,
    scores: Array,
    centre: Array,
    box: Array,
    h: Array,
    inverse: float,
    r: Array,
    w: Array,
    Qw: Array,
    scratch: Array,
) -> float:
    """Go by ``step``, with X step the ``scores``, as far as signs and bounds allow; r, w and Qw are updated.

    Weights that would change their sign stop at zero, those that would leave their bounds stop there. If the model does
    not fall so, all go as far as the first that stops. Returns by how much sum(r) changes.
    """
    m, ones, room = free.size, np.ones(h.size), 1.0
    move, image = np.empty(m), scores.copy()
    for k in range(m):
        j = free[k]
        lower = max(box[1, j], 0.0 if box[0, j] > 0.0 and w[j] > 0.0 else -np.inf)
        upper = min(box[2, j], 0.0 if box[0, j] > 0.0 and w[j] < 0.0 else np.inf)
        move[k] = min(max(step[k], lower - w[j]), upper - w[j])
        if move[k] != step[k]:
            room = min(room, move[k] / step[k])
            column_add(X, j, move[k] - step[k], ones, image)
        for p in range(Q[2][j], Q[2][j + 1]):
            scratch[Q[1][p]] += move[k] * Q[0][p]
    change = shift = 0.0
    for i in range(h.size):
        change += 0.5 * h[i] * image[i] * image[i]
    for k in range(m):
        change += (slope[k] + 0.5 * scratch[free[k]]) * move[k]
        shift += centre[free[k]] * move[k]
    together = room < 1.0 and not change - 0.5 * inverse * shift * shift < 0.0
    shift = 0.0
    for k in range(m):
        for p in range(Q[2][free[k]], Q[2][free[k] + 1]):
            scratch[Q[1][p]] = 0.0
    for k in range(m):
        j = free[k]
        new = w[j] + (room * step[k] if together else move[k])
        new = min(max(new, box[1, j]), box[2, j])
        if box[0, j] > 0.0 and abs(new) <= 1e-14 * abs(w[j]):  # whoever stops at zero is there up to round-off
            new = 0.0
        shift += centre[j] * (new - w[j])
        for p in range(Q[2][j], Q[2][j + 1]):
            Qw[Q[1][p]] += (new - w[j]) * Q[0][p]
        w[j] = new
    for i in range(h.size):
        r[i] += h[i] * (room * scores[i] if together else image[i])
    return shift
