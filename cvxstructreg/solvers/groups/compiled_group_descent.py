"""Block coordinate descent on a quadratic model over disjoint groups: compiled functions of plain arrays.

Weights are stored in *slots*, one group after the other. Slot p belongs to column ``column[p]`` of X and has k weights,
one for each output, at positions p k, ..., p k + k - 1 of the flat arrays. The functions share these arguments:

- ``layout`` is (column, starts, radii, sizes, lam). Group g has the slots starts[g], ..., starts[g + 1] - 1 and the
  strength c_g = radii[g]; its steps are measured relative to sizes[g].
- ``hess`` is (direct, root, inverse): the Hessians of the rows as in :mod:`compiled_columns`, which also explains how X
  and the scores are stored, and the inverse of their sum, or zero without intercept. If outputs do not interact, root
  has no rows.
- ``chosen`` are the groups to use, and ``k`` is the number of outputs.

Import this module only where it is called, because it imports numba. :mod:`plain_group_descent` has the same functions
without numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.compiled_clock import njit
from cvxstructreg.solvers.lasso.compiled_columns import absorb, dots, moments, scatter

#: The largest number of Newton steps for the norm of a block.
NORM_STEPS = 50
#: A block step is accepted if the true curvature along it is at most this multiple of the assumed one.
ACCEPTED = 1.5
#: The largest number of attempts at a block step; undoing a rejected step counts as another one.
ATTEMPTS = 120

compiled = njit(cache=True, error_model="numpy")


@compiled
def slopes(X: Any, layout: Any, chosen: Any, r: Array, k: int, out: Array) -> None:
    """out_p = x_p'r for the slots of the chosen groups."""
    column, starts = layout[0], layout[1]
    for g in chosen:
        for p in range(starts[g], starts[g + 1]):
            dots(X, column[p], r, out, p * k)


@compiled
def add_columns(X: Any, layout: Any, chosen: Any, step: Array, k: int, out: Array) -> None:
    """out += sum_p x_p step_p' over the slots of the chosen groups."""
    column, starts = layout[0], layout[1]
    for g in chosen:
        for p in range(starts[g], starts[g + 1]):
            scatter(X, column[p], step, p * k, out)


@compiled
def curvatures(
    X: Any, layout: Any, chosen: Any, hess: Any, k: int, diagonal: Array, least: Array, curvature: Array, centre: Array
) -> None:
    """For the chosen groups: the diagonal of the Hessian after minimising over b, and centre_p = sum_i x_ip H_i.

    ``least`` is a lower bound for each slot, and ``diagonal`` is the diagonal of the quadratic terms.
    """
    column, starts = layout[0], layout[1]
    direct, root, inverse = hess
    square, between = np.empty(k), np.empty(k * k)
    for g in chosen:
        for p in range(starts[g], starts[g + 1]):
            moments(X, column[p], direct, root, square, between)
            for c in range(k):
                less = 0.0
                for e in range(k):
                    centre[p * k * k + c * k + e] = between[c * k + e]
                    for f in range(k):
                        less += between[c * k + e] * inverse[e, f] * between[c * k + f]
                # at least the round-off: a column may be nearly constant
                curvature[p * k + c] = max(square[c] - less, 1e-10 * square[c], least[p]) + diagonal[p]


@compiled
def block_prox(a: Array, bend: Array, radius: float, size: int, new: Array) -> None:
    """argmin over x of sum_j bend_j x_j^2 / 2 - a_j x_j + radius ||x||, where ``a`` is soft-thresholded already.

    The norm t of x solves sum_j a_j^2 / (bend_j t + radius)^2 = 1. Newton's method on the inverse square root of this
    sum, which is concave in t, converges to it monotonically from below.
    """
    square = most = 0.0
    for j in range(size):
        square += a[j] * a[j]
        most = max(most, bend[j])
    if square <= radius * radius:
        for j in range(size):
            new[j] = 0.0
        return
    norm = (np.sqrt(square) - radius) / most if most > 0.0 else 0.0
    for _ in range(NORM_STEPS if radius > 0.0 else 0):
        total = slope = 0.0
        for j in range(size):
            ratio = a[j] / (bend[j] * norm + radius)
            total += ratio * ratio
            slope += ratio * ratio * bend[j] / (bend[j] * norm + radius)
        if not (total > 1.0 + 1e-14 and slope > 0.0):
            break
        norm += (np.sqrt(total) - 1.0) * total / slope
    for j in range(size):
        if radius > 0.0:
            new[j] = a[j] * norm / (bend[j] * norm + radius)
        else:
            new[j] = a[j] / bend[j] if bend[j] > 0.0 else 0.0


@compiled
def _move(
    X: Any,
    Q: Any,
    layout: Any,
    g: int,
    hess: Any,
    k: int,
    centre: Array,
    step: Array,
    moved: Array,
    u: Array,
    r: Array,
    Qw: Array,
) -> float:
    """Take a step in group g: updates r, Qw and ``moved``, the change of sum(r); returns (X step)'H(X step)."""
    column, starts = layout[0], layout[1]
    first = starts[g]
    for c in range(k):
        moved[c] = 0.0
    for p in range(first, starts[g + 1]):
        scatter(X, column[p], step, (p - first) * k, u)
        for c in range(k):
            for e in range(k):
                moved[e] += step[(p - first) * k + c] * centre[p * k * k + c * k + e]
        for t in range(Q[2][p], Q[2][p + 1]):
            for c in range(k):
                Qw[np.int64(Q[1][t]) * k + c] += Q[0][t] * step[(p - first) * k + c]
    return absorb(X, column[first : starts[g + 1]], hess[0], hess[1], u, r)


@compiled
def descend(
    X: Any,
    Q: Any,
    layout: Any,
    chosen: Any,
    hess: Any,
    k: int,
    curvature: Array,
    centre: Array,
    factors: Array,
    total: Array,
    r: Array,
    w: Array,
    Qw: Array,
    tol: float,
    passes: int,
) -> tuple[float, int]:
    """Passes over the chosen groups until no step exceeds ``tol``, relative to ``sizes``; updates in place.

    The model is  g'Xd + 1/2 (Xd)'H(Xd) + 1/2 w'Qw + sum_p lam_p |w_p| + sum_g c_g ||w_g||  with r = g + HXd, always
    minimised over the intercept. A block step minimises the model with the Hessian of the block replaced by factors[g]
    times its diagonal. The factor grows if the step shows that it is too small. ``curvature`` and ``centre`` come from
    :func:`curvatures`, and ``total`` is the sum of r over the rows. Returns the largest step of the last pass and the
    number of passes.
    """
    column, starts, radii, sizes, lam = layout
    inverse = hess[2]
    widest = 0
    for g in chosen:
        widest = max(widest, starts[g + 1] - starts[g])
    slope, a, bend, new = np.empty(widest * k), np.empty(widest * k), np.empty(widest * k), np.empty(widest * k)
    step, pulled, u, moved = np.empty(widest * k), np.empty(widest * k), np.zeros_like(r), np.zeros(k)
    worst, done = np.inf, 0
    while done < passes and worst > tol:
        worst = 0.0
        done += 1
        for g in chosen:
            first, size = starts[g] * k, (starts[g + 1] - starts[g]) * k
            square, at_zero = 0.0, True
            for p in range(starts[g], starts[g + 1]):
                dots(X, column[p], r, slope, p * k - first)
                for c in range(k):
                    j = p * k - first + c
                    for e in range(k):
                        for f in range(k):
                            slope[j] -= centre[p * k * k + c * k + e] * inverse[e, f] * total[f]
                    slope[j] += Qw[first + j]
                    beyond = max(abs(slope[j]) - lam[first + j], 0.0)
                    square += beyond * beyond
                    at_zero = at_zero and w[first + j] == 0.0
            if at_zero and square <= radii[g] * radii[g]:
                continue
            undo = False
            for _ in range(ATTEMPTS):
                if undo:
                    for j in range(size):
                        step[j] = -step[j]
                else:
                    for j in range(size):
                        bend[j] = factors[g] * curvature[first + j]
                        point = bend[j] * w[first + j] - slope[j]
                        a[j] = max(abs(point) - lam[first + j], 0.0) * (1.0 if point > 0.0 else -1.0)
                        pulled[j] = Qw[first + j]
                    block_prox(a, bend, radii[g], size, new)
                    assumed = length = 0.0
                    for j in range(size):
                        if bend[j] == 0.0 and radii[g] == 0.0 and lam[first + j] == 0.0:
                            new[j] = w[first + j]  # an empty column without penalty
                        step[j] = new[j] - w[first + j]
                        assumed += bend[j] * step[j] * step[j]
                        length += bend[j] * step[j] * bend[j] * step[j]
                    if length == 0.0:
                        break
                bent = _move(X, Q, layout, g, hess, k, centre, step, moved, u, r, Qw)
                for c in range(k):
                    total[c] += moved[c]
                    for e in range(k):
                        bent -= moved[c] * inverse[c, e] * moved[e]
                if undo:
                    undo = False
                    continue
                for j in range(size):
                    bent += step[j] * (Qw[first + j] - pulled[j])
                if bent <= ACCEPTED * assumed or size == 1:
                    factors[g] = max(factors[g], factors[g] * bent / assumed) if size > 1 else 1.0
                    for j in range(size):
                        w[first + j] = new[j]
                    worst = max(worst, np.sqrt(length) / sizes[g])
                    break
                factors[g] *= max(1.2 * bent / assumed, 1.5)
                undo = True
    return worst, done
