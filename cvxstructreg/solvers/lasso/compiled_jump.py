"""Jumps to the minimum of a quadratic model over the features that are free to move: compiled functions.

A jump solves ``A step = -slope`` with A = X'HX - centre centre' / sum(h) + Q over some features, and takes the step as
far as signs and bounds allow. The arrays are those of ``compiled_coordinate_descent``. Import this module only where it
is called, because it imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.lasso.compiled_coordinate_descent import Columns, column_add, column_dot, compiled

#: The largest number of conjugate gradient steps of a jump.
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
    """The features that are neither at a kink nor at a bound, and the slope of the model along each.

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
    """The step to the minimiser of the model for fixed signs, and its image X step.

    Solves ``A step = -slope`` with A = X'HX - centre centre' / sum(h) + Q by conjugate gradients with a diagonal
    preconditioner, until the residual is within ``tol``. ``slope`` has one entry for each of the features. ``scratch``
    has an entry for every feature, which must be zero and is reset to zero.
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
    """Add the lower triangle of X'HX over some features to ``out``, for a sparse X; returns whether it was done.

    The sum goes over the rows of X, since each row contains few of the features. If that takes ``most`` products or
    more, nothing is done.
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
    # the selected columns in row-major order, sorted within each row
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
    """Add the lower triangle of Q - centre centre' / sum(h) over some features to ``out``."""
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
    """Take ``step``, whose image X step is ``scores``, as far as signs and bounds allow; r, w and Qw are updated.

    A weight that would change its sign stops at zero, and one that would leave its bounds stops at the bound. If the
    model does not decrease this way, the whole step is shortened to where the first weight stops. ``free`` and
    ``slope`` come from :func:`free_slopes`; the other arguments are those of
    :func:`compiled_coordinate_descent.descend` and scratch space. Returns the change of sum(r).
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
        if box[0, j] > 0.0 and abs(new) <= 1e-14 * abs(w[j]):  # a weight that stops at zero is zero up to round-off
            new = 0.0
        shift += centre[j] * (new - w[j])
        for p in range(Q[2][j], Q[2][j + 1]):
            Qw[Q[1][p]] += (new - w[j]) * Q[0][p]
        w[j] = new
    for i in range(h.size):
        r[i] += h[i] * (room * scores[i] if together else image[i])
    return shift
