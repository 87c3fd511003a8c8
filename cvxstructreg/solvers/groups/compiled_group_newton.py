"""Compiled steps of semismooth Newton for one output and sparse X; the tests compare them with the NumPy version.

Arguments with the same meaning in all functions:

- ``rows``, ``columns``, ``values``: X in CSR format, and ``starts``, ``places``, ``kept``: some columns of X;
- ``indptr``, ``indices``, ``radii``, ``sigma``, ``y``: groups as in :mod:`compiled_groups`, and the parameters of their
  Huber functions (:mod:`compiled_huber`);
- ``g_starts``, ``g_places``, ``a``, ``h``: the list of :func:`huber_curvature`, and ``identity``: its diagonal;
- ``ridge``, ``lam``: the diagonal of the Hessian of the quadratic terms on the weights, and the L1 strengths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.forms.compiled_groups import beyond
from cvxstructreg.runtime.compiled_clock import njit
from cvxstructreg.solvers.groups.compiled_huber import (
    by_size,
    dot,
    huber,
    huber_curvature,
    subtract_products,
    subtract_squares,
)

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]

#: Lists with more entries are not sorted by size, to save memory.
SORTED = 2_000_000


@njit(cache=True)
def chosen_columns(
    rows: Ints, columns: Ints, values: Floats, position: Ints, starts: Ints, places: Ints, kept: Floats
) -> tuple[Ints, Ints, Floats]:
    """The columns of X with a position (>= 0), renumbered by position; written to the last three arrays."""
    to = np.uint64(0)
    starts[0] = 0
    for i in range(len(rows) - 1):
        for e in range(np.uint64(rows[i]), np.uint64(rows[i + 1])):
            here = position[columns[e]]
            if here >= 0:
                places[to], kept[to] = here, values[e]
                to += np.uint64(1)
        starts[i + 1] = to
    return starts, places[:to], kept[:to]


@njit(cache=True)
def scores(rows: Ints, columns: Ints, values: Floats, w: Floats, b: float) -> Floats:
    """Xw + b."""
    out = np.empty(len(rows) - 1)
    for i in range(len(out)):
        out[i] = b + dot(columns, values, rows[i], rows[i + 1], w)
    return out


@njit(cache=True)
def add_pull(rows: Ints, columns: Ints, values: Floats, slope: Floats, out: Floats) -> None:
    """Add X'slope to ``out``."""
    for i in range(len(slope)):
        x = slope[i]
        if x != 0.0:
            for e in range(np.uint64(rows[i]), np.uint64(rows[i + 1])):
                out[columns[e]] += values[e] * x


@njit(cache=True)
def gradient(
    rows: Ints,
    columns: Ints,
    values: Floats,
    slope: Floats,
    ridge: Floats,
    lam: Floats,
    w: Floats,
    indptr: Ints,
    indices: Ints,
    radii: Floats,
    sigma: Floats,
    y: Floats,
    scale: Floats,
) -> tuple[float, Floats, float]:
    """The objective without the loss, the subgradient of smallest norm, and its largest entry relative to ``scale``.

    ``slope`` is the gradient of the loss with respect to the scores.
    """
    grad, value = np.empty(len(w)), 0.0
    for j in range(len(w)):  # explicit loops, because array expressions take seconds to compile
        grad[j] = ridge[j] * w[j]
        value += 0.5 * grad[j] * w[j] + lam[j] * abs(w[j])
    add_pull(rows, columns, values, slope, grad)
    value += huber(indptr, indices, radii, sigma, y, w, grad)
    worst = 0.0
    for j in range(len(w)):
        if w[j] != 0.0:
            grad[j] += lam[j] if w[j] > 0.0 else -lam[j]
        else:
            grad[j] = beyond(grad[j], lam[j])
        error = abs(grad[j]) / scale[j]
        if error > worst:
            worst = error
    return value, grad, worst


@njit(cache=True)
def free_part(
    rows: Ints,
    columns: Ints,
    values: Floats,
    ridge: Floats,
    w: Floats,
    slope: Floats,
    indptr: Ints,
    indices: Ints,
    radii: Floats,
    sigma: Floats,
    y: Floats,
    least: float,
    for_columns: tuple[Ints, Ints, Floats],
    for_groups: tuple[Ints, Ints, Floats, Floats],
) -> tuple[Ints, Ints, Ints, Floats, Ints, Ints, Floats, Floats, Floats]:
    """The free weights (w_j or slope_j is nonzero), and X and the curvature of the norms restricted to them.

    Returned are the free weights, X by rows, and the list and the diagonal of :func:`huber_curvature`, which explains
    ``least``. The last two arguments are scratch space for the results.
    """
    m, count = len(w), 0
    position = np.full(m, -1, dtype=np.int32)
    for j in range(m):
        if w[j] != 0.0 or slope[j] != 0.0:
            position[j] = count
            count += 1
    chosen, identity = np.empty(count, dtype=np.int64), np.empty(count)
    for j in range(m):
        if position[j] >= 0:
            chosen[position[j]], identity[position[j]] = j, ridge[j]
    starts, places, kept = chosen_columns(rows, columns, values, position, *for_columns)
    g_starts, g_places, a, h = huber_curvature(
        indptr, indices, radii, sigma, y, w, position, identity, least, *for_groups
    )
    return chosen, starts, places, kept, g_starts, g_places, a, h, identity


@njit(cache=True)
def conjugate_gradients(
    starts: Ints,
    places: Ints,
    kept: Floats,
    g_starts: Ints,
    g_places: Ints,
    a: Floats,
    h: Floats,
    identity: Floats,
    curvature: Floats,
    slope: Floats,
    slope_b: float,
    damping: float,
    accuracy: float,
    steps: int,
    intercept: bool,
) -> tuple[Floats, float, int]:
    """Solve H (p, p_b) = -(slope, slope_b) with a diagonal preconditioner; returns p, p_b and the number of steps.

    H is the sum of X'diag(curvature)X with a column of ones for the intercept, the curvature of the norms, and
    ``damping`` times the diagonal. It stops at the relative ``accuracy``, or after ``steps`` steps.
    """
    count = len(identity)
    if len(g_places) <= SORTED:
        g_starts, g_places, a, h = by_size(g_starts, g_places, a, h)
    identity, diagonal = identity.copy(), identity.copy()
    subtract_squares(g_starts, g_places, a, h, diagonal)
    for i in range(len(curvature)):
        for e in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
            diagonal[places[e]] += curvature[i] * kept[e] ** 2
    logs, positive = 0.0, 0
    for j in range(count):
        if diagonal[j] > 0.0:
            logs += np.log2(diagonal[j])
            positive += 1
    floor = 1e-10 * 2.0 ** np.round(logs / max(positive, 1)) if positive > 0 else 1e-300
    diagonal_b = 0.0
    for i in range(len(curvature)):
        diagonal_b += curvature[i]
    for j in range(count):
        added = damping * diagonal[j] + floor if diagonal[j] > 0.0 else floor
        identity[j] += added
        diagonal[j] += added
    added_b = (damping + 1e-10) * diagonal_b + 1e-300
    diagonal_b += added_b
    r, r_b, x, x_b = np.empty(count), -slope_b, np.zeros(count), 0.0
    p, p_b = np.empty(count), r_b / diagonal_b
    rho, done, out = r_b * p_b, 0, np.empty(count)
    for j in range(count):
        r[j] = -slope[j]
        p[j] = r[j] / diagonal[j]
        rho += r[j] * p[j]
    first = rho
    for _ in range(steps):
        done += 1
        for j in range(count):
            out[j] = identity[j] * p[j]
        out_b = added_b * p_b
        for i in range(len(curvature)):
            along = curvature[i] * (p_b + dot(places, kept, starts[i], starts[i + 1], p))
            out_b += along
            for e in range(np.uint64(starts[i]), np.uint64(starts[i + 1])):
                out[places[e]] += along * kept[e]
        if not intercept:
            out_b = 0.0
        subtract_products(g_starts, g_places, a, h, p, out)
        bend = p_b * out_b
        for j in range(count):
            bend += p[j] * out[j]
        if bend <= 0.0:
            if done == 1:  # no curvature in the first direction: return the scaled gradient
                return p, p_b, done
            break
        length, last = rho / bend, rho
        x_b += length * p_b
        r_b -= length * out_b
        rho = r_b * r_b / diagonal_b
        for j in range(count):
            x[j] += length * p[j]
            r[j] -= length * out[j]
            rho += r[j] * r[j] / diagonal[j]
        if rho <= accuracy**2 * first:
            break
        p_b = r_b / diagonal_b + (rho / last) * p_b
        for j in range(count):
            p[j] = r[j] / diagonal[j] + (rho / last) * p[j]
    return x, x_b, done


@njit(cache=True)
def dense_rows(
    starts: Ints, places: Ints, kept: Floats, roots: Floats, first: int, intercept: bool, out: Floats
) -> None:
    """Write the rows of [X, 1] from row ``first`` on to ``out``, each multiplied by its entry of ``roots``."""
    for i in range(len(out)):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
        if first + i >= len(roots):
            continue
        root = roots[first + i]
        for e in range(starts[first + i], starts[first + i + 1]):
            out[i, places[e]] = root * kept[e]
        if intercept:
            out[i, out.shape[1] - 1] = root


@njit(cache=True)
def subtract_outer(g_starts: Ints, g_places: Ints, a: Floats, h: Floats, H: Floats) -> None:
    """Subtract the lower triangle of sum_g h_g a a' from H; places must be increasing within a group."""
    for g in range(len(h)):
        for e in range(g_starts[g], g_starts[g + 1]):
            x, row = h[g] * a[e], H[g_places[e]]
            for other in range(g_starts[g], e + 1):
                row[g_places[other]] -= x * a[other]


@njit(cache=True)
def model_sweeps(H: Floats, grad: Floats, w: Floats, lam: Floats, p: Floats, sweeps: int) -> float:
    """Coordinate descent on g'p + 1/2 p'Hp + sum_j lam_j |w_j + p_j|; updates p and grad = g + Hp in place.

    Returns the largest H_jj change_j^2 of the last sweep.
    """
    largest = 0.0
    for _ in range(sweeps):
        largest = 0.0
        for j in range(len(grad)):
            at = w[j] + p[j]
            aim, limit = at - grad[j] / H[j, j], lam[j] / H[j, j]
            change = (aim - min(max(aim, -limit), limit)) - at
            if change != 0.0:
                largest = max(largest, H[j, j] * change**2)
                p[j] += change
                row = H[j]
                for i in range(len(grad)):
                    grad[i] += change * row[i]
    return largest
