"""Compiled loops for the Huber functions of groups; the tests compare each of them with a few lines of NumPy.

Groups are stored in flat arrays as in :mod:`cvxstructreg.forms.compiled_groups`. The multipliers y_e and the sigma_g
are those of :mod:`group_subproblem`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def dot(places: Ints, values: Floats, first: int, last: int, p: Floats) -> float:
    """sum of values_e p[places_e] over first <= e < last, by four independent partial sums for speed."""
    e, one, two, three = np.uint64(first), np.uint64(1), np.uint64(2), np.uint64(3)
    end, four = np.uint64(last), np.uint64(4)
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    while e + three < end:
        s0 += values[e] * p[places[e]]
        s1 += values[e + one] * p[places[e + one]]
        s2 += values[e + two] * p[places[e + two]]
        s3 += values[e + three] * p[places[e + three]]
        e += four
    while e < end:
        s0 += values[e] * p[places[e]]
        e += one
    return s0 + s1 + s2 + s3


@njit(cache=True)
def huber(indptr: Ints, indices: Ints, radii: Floats, sigma: Floats, y: Floats, w: Floats, grad: Floats) -> float:
    """sum_g max over ||q|| <= c_g of <q, w_g> - ||q - y_g||^2 / (2 sigma_g); its gradient K'q is added to ``grad``.

    The maximiser q is the projection of a = y_g + sigma_g w_g. So the value is a Huber function of a / sigma_g minus
    ||y_g||^2 / (2 sigma_g).
    """
    value = 0.0
    for g in range(len(radii)):
        square, known = 0.0, 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            square += (y[e] + sigma[g] * w[indices[e]]) ** 2
            known += y[e] ** 2
        factor, twice = 1.0, square - known
        if square > radii[g] ** 2:
            norm = np.sqrt(square)
            factor, twice = radii[g] / norm, radii[g] * (2.0 * norm - radii[g]) - known
        value += 0.5 * twice / sigma[g]
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            grad[indices[e]] += factor * (y[e] + sigma[g] * w[indices[e]])
    return value


@njit(cache=True)
def huber_curvature(
    indptr: Ints,
    indices: Ints,
    radii: Floats,
    sigma: Floats,
    y: Floats,
    w: Floats,
    position: Ints,
    diagonal: Floats,
    least: float,
    starts: Ints,
    places: Ints,
    a: Floats,
    h: Floats,
) -> tuple[Ints, Ints, Floats, Floats]:
    """The generalised Hessian of :func:`huber` on the coordinates with a position (>= 0): a diagonal and a short list.

    With a = y_g + sigma_g w_g, a group inside its ball has the Hessian sigma_g I; outside it has h_g (I - a a' /
    ||a||^2) with h_g = c_g sigma_g / ||a||. Multiples of the identity are added to ``diagonal``. The list (indptr,
    indices, a / ||a||, h) contains the rank-one parts of groups with two or more coordinates. Both are indexed by
    positions. Entries of a / ||a|| below ``least`` are left out of the list, which makes the Hessian slightly larger.

    The list is written to the last four arrays, which must have room for all groups and coordinates. Allocating this
    memory in each call would take longer than the arithmetic.
    """
    count, n_kept = 0, 0
    starts[0] = 0
    for g in range(len(radii)):
        square = 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            square += (y[e] + sigma[g] * w[indices[e]]) ** 2
        norm, outside = np.sqrt(square), square > radii[g] ** 2
        curvature = radii[g] * sigma[g] / norm if outside else sigma[g]
        part, first = 1.0 / norm if outside else 0.0, count
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            here = position[indices[e]]
            if here >= 0:
                diagonal[here] += curvature
                if outside:
                    entry = part * (y[e] + sigma[g] * w[indices[e]])
                    places[count], a[count] = here, entry
                    count += 1 if abs(entry) >= least else 0
        if count == first + 1:  # the rank-one part of a single coordinate is diagonal
            diagonal[places[first]] -= curvature * a[first] ** 2
            count = first
        elif count > first:
            h[n_kept] = curvature
            n_kept += 1
            starts[n_kept] = count
    return starts[: n_kept + 1], places[:count], a[:count], h[:n_kept]


@njit(cache=True)
def by_size(indptr: Ints, indices: Ints, a: Floats, h: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """The list of :func:`huber_curvature` with small groups first: loops of predictable length are twice as fast."""
    widest = 0
    for g in range(len(h)):
        widest = max(widest, indptr[g + 1] - indptr[g])
    groups, entries = np.empty(widest + 2, dtype=np.int64), np.empty(widest + 2, dtype=np.int64)
    for size in range(len(groups)):
        groups[size] = 0
    for g in range(len(h)):
        groups[indptr[g + 1] - indptr[g] + 1] += 1
    entries[0] = 0
    for size in range(1, len(groups)):
        entries[size] = entries[size - 1] + groups[size] * (size - 1)
        groups[size] += groups[size - 1]
    starts, height = np.empty(len(h) + 1, dtype=np.int64), np.empty(len(h))
    places, unit = np.empty(len(a), dtype=np.uint32), np.empty(len(a))
    starts[0] = 0
    for g in range(len(h)):
        size = indptr[g + 1] - indptr[g]
        to, number = entries[size], groups[size]
        height[number], starts[number + 1] = h[g], to + size
        groups[size], entries[size] = number + 1, to + size
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            places[to], unit[to] = indices[e], a[e]
            to += 1
    return starts, places, unit, height


@njit(cache=True)
def subtract_squares(indptr: Ints, indices: Ints, a: Floats, h: Floats, out: Floats) -> None:
    """Subtract the diagonal of sum_g h_g a a' from ``out``."""
    for g in range(len(h)):
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            out[indices[e]] -= h[g] * a[e] ** 2


@njit(cache=True)
def subtract_products(indptr: Ints, indices: Ints, a: Floats, h: Floats, p: Floats, out: Floats) -> None:
    """Subtract sum_g h_g a (a'p_g) from ``out``."""
    for g in range(len(h)):
        along = h[g] * dot(indices, a, indptr[g], indptr[g + 1], p)
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            out[indices[e]] -= along * a[e]


@njit(cache=True)
def multipliers(
    indptr: Ints, indices: Ints, radii: Floats, sigma: Floats, y: Floats, w: Floats, zero: Ints, update: bool
) -> float:
    """y_g <- q_g, the projection of y_g + sigma_g w_g, in place; returns sum_g c_g ||w_g|| - <q_g, w_g>.

    The coordinates of groups inside their balls, whose copies v_g are zero, are marked in ``zero``. Without ``update``,
    only the sum is computed.
    """
    slack = 0.0
    for g in range(len(radii)):
        square, size, along = 0.0, 0.0, 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            x = w[indices[e]]
            moved = y[e] + sigma[g] * x
            square += moved**2
            size += x**2
            along += moved * x
        outside = square > radii[g] ** 2
        factor = radii[g] / np.sqrt(square) if outside else 1.0
        slack += radii[g] * np.sqrt(size) - factor * along
        if update:
            for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
                y[e] = factor * (y[e] + sigma[g] * w[indices[e]])
                if not outside:
                    zero[indices[e]] = 1
    return slack


@njit(cache=True)
def agreement(
    indptr: Ints,
    indices: Ints,
    radii: Floats,
    sigma: Floats,
    y: Floats,
    w: Floats,
    position: Ints,
    q: Floats,
    a: Floats,
    out: Floats,
) -> int:
    """max(0, <q_g, a> / ||a||)^2 for the groups in the list of :func:`huber_curvature`, with a = y_g + sigma_g w_g.

    Returns how many there are, and writes a.
    """
    count = 0
    for g in range(len(radii)):
        square, along, free = 0.0, 0.0, 0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            a[e] = y[e] + sigma[g] * w[indices[e]]
            square += a[e] ** 2
            along += q[e] * a[e]
            free += 1 if position[indices[e]] >= 0 else 0
        if square > radii[g] ** 2 and free > 1:
            out[count] = along**2 / square if along > 0.0 else 0.0
            count += 1
    return count


@njit(cache=True)
def follow(
    indptr: Ints, indices: Ints, radii: Floats, sigma: Floats, a: Floats, step: Floats, length: float, q: Floats
) -> None:
    """q += length (u + da - q - q <u, da>) in place, then into the unit ball; u and da as in the module on it.

    Inside the ball, u = a / c and da = sigma dw / c, and the last term is missing.
    """
    for g in range(len(radii)):
        square, along = 0.0, 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            square += a[e] ** 2
            along += a[e] * step[indices[e]]
        unit = max(np.sqrt(square), radii[g])
        turn = sigma[g] * along / unit**2 if square > radii[g] ** 2 else 0.0
        size = 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            target = (a[e] + sigma[g] * step[indices[e]]) / unit - q[e] * turn
            q[e] += length * (target - q[e])
            size += q[e] ** 2
        if size > 1.0:
            for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
                q[e] /= np.sqrt(size)
