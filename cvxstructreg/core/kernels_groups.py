"""Compiled loops over overlapping groups; the tests hold each of them equal to a few lines of NumPy.

Groups are flat: the entries ``e`` of group g are ``indptr[g] <= e < indptr[g + 1]``, entry e is coordinate
``indices[e]`` of the weights, and q_e, y_e, a_e belong to entry e. ``radii`` are the c_g of sum_g c_g ||w_g||. Weights
of several outputs are flat too, row after row.

``indices`` are unsigned because a signed index costs a test for negative values at each access.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]

#: Projections end this much inside the ball, so that round-off leaves no point outside.
INSIDE = 1.0 - 4e-16
#: The bound of a coordinate that is held where it is: nothing is beyond it.
HELD = 1e300


@njit(cache=True)
def beyond(x: float, bound: float) -> float:
    """What of x is not in [-bound, bound]: x - clip(x, -bound, bound), in a form that is compiled quickly."""
    if x > bound:
        return x - bound
    return x + bound if x < -bound else 0.0


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def dot(places: Ints, values: Floats, first: int, last: int, p: Floats) -> float:
    """sum of values_e p[places_e] over first <= e < last: four sums at a time, which do not wait for each other."""
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
def add_adjoint(indices: Ints, q: Floats, out: Floats, sign: float) -> None:
    """Add sign * K'q to ``out``: out_j += sign * sum of q_e over the entries e of coordinate j."""
    for e in range(len(q)):
        out[indices[e]] += sign * q[e]


@njit(cache=True)
def add_radii(indptr: Ints, indices: Ints, radii: Floats, out: Floats) -> None:
    """Add to out_j the radii of all groups that hold coordinate j."""
    for g in range(len(radii)):
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            out[indices[e]] += radii[g]


@njit(cache=True)
def norm_sum(indptr: Ints, indices: Ints, radii: Floats, w: Floats) -> float:
    """sum_g c_g ||w_g||."""
    value = 0.0
    for g in range(len(radii)):
        square = 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            square += w[indices[e]] ** 2
        value += radii[g] * np.sqrt(square)
    return value


@njit(cache=True)
def shrink(indptr: Ints, radii: Floats, q: Floats) -> float:
    """q_g <- the nearest point with ||q_g|| <= c_g, in place; max_g ||q_g|| / c_g before is returned."""
    worst = 0.0
    for g in range(len(radii)):
        square = 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            square += q[e] ** 2
        if square > worst**2 * radii[g] ** 2:
            worst = np.sqrt(square) / radii[g] if radii[g] > 0.0 else np.inf
        if square > radii[g] ** 2:
            factor = INSIDE * radii[g] / np.sqrt(square)
            for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
                q[e] *= factor
    return worst


@njit(cache=True)
def repair(
    indptr: Ints,
    indices: Ints,
    radii: Floats,
    q: Floats,
    left: Floats,
    bound: Floats,
    fixed: Ints,
    sweeps: int,
    part: float,
) -> float:
    """Gauss-Seidel sweeps on 1/2 ||left - clip(left, +-bound)||^2 over ||q_g|| <= c_g; ``left`` is e = left_0 - K'q.

    One group after the other, where a coordinate that is not ``fixed`` has an excess x = e - clip(e, +-bound):
    q_g <- projection of q_g + x_g, with the entries of fixed coordinates held. ``q`` and ``left`` change in place; the
    sum of squares of the excess that is left is returned. A sweep that leaves more than ``part`` of it is the last.
    """
    limit, widest = np.empty(len(left)), 0
    for j in range(len(left)):
        limit[j] = bound[j] if fixed[j] == 0 else HELD
    for g in range(len(radii)):
        widest = max(widest, indptr[g + 1] - indptr[g])
    wanted = np.empty(widest)
    total, last = _squares_beyond(left, limit), np.inf
    for _ in range(sweeps):
        if total == 0.0 or total > part * last:
            break
        last = total
        for g in range(len(radii)):
            first, end = np.uint64(indptr[g]), np.uint64(indptr[g + 1])
            held, moved, met = 0.0, 0.0, 0.0
            for e in range(first, end):  # without branches, which nobody could foresee
                j = indices[e]
                x = left[j] - max(-limit[j], min(limit[j], left[j]))
                new = q[e] + x
                wanted[e - first] = new
                met += abs(x)
                moved += 0.0 if limit[j] >= HELD else new * new
                held += new * new if limit[j] >= HELD else 0.0
            if met == 0.0:
                continue
            room = radii[g] ** 2 - held
            factor = 1.0 if moved <= room else INSIDE * np.sqrt(room / moved) if room > 0.0 else 0.0
            for e in range(first, end):
                j = indices[e]
                new = wanted[e - first] * (1.0 if limit[j] >= HELD else factor)
                left[j] += q[e] - new
                q[e] = new
        total = _squares_beyond(left, limit)
    return total


@njit(cache=True)
def _squares_beyond(left: Floats, limit: Floats) -> float:
    """||left - clip(left, +-limit)||^2."""
    total = 0.0
    for j in range(len(left)):
        total += beyond(left[j], limit[j]) ** 2
    return total


@njit(cache=True)
def largest_ratio(indptr: Ints, radii: Floats, q: Floats) -> float:
    """max_g ||q_g|| / c_g; infinite if a group of radius zero is not zero."""
    worst = 0.0
    for g in range(len(radii)):
        square = 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            square += q[e] ** 2
        if square > worst * radii[g] ** 2:
            if radii[g] > 0.0:
                worst = square / radii[g] ** 2
            elif square > 1e-28:
                return np.inf
    return np.sqrt(worst)


@njit(cache=True)
def merge_groups(
    indptr: Ints,
    indices: Ints,
    radii: Floats,
    position: Ints,
    keys: Ints,
    lam: Floats,
    table: Ints,
    number: Ints,
    sizes: Ints,
    hashes: Ints,
) -> int:
    """Number the groups that are left of all groups on the coordinates with a position (>= 0), equal ones as one.

    In ``number`` (-1 before) each group gets its number among them: it stays -1 if it is left out (nothing is left of
    it, or its radius is zero), and is -2 if a single coordinate is left and ``lam`` is not empty: its radius is then
    added to ``lam`` there. ``sizes`` and ``hashes`` are by these numbers, of which there are as many as is returned.
    Equal groups are found by a hash, the sum of random ``keys`` of the positions, each times an odd number for its
    place in the group, in a ``table`` (-1 before) of a power of two that is at least twice the number of groups.
    """
    mask, count = np.uint64(len(table) - 1), 0
    for g in range(len(radii)):
        if radii[g] == 0.0:
            continue
        size, odd, code, place = 0, np.uint64(1), np.uint64(0), -1
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            here = position[indices[e]]
            if here >= 0:
                place = here
                code += keys[here] * odd
                odd += np.uint64(2)
                size += 1
        if size == 0:
            continue
        if size == 1 and len(lam) > 0:
            number[g] = -2
            lam[place] += radii[g]
            continue
        slot = (code ^ (code >> np.uint64(32))) & mask
        while table[slot] >= 0 and (hashes[table[slot]] != code or sizes[table[slot]] != size):
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot], sizes[count], hashes[count] = count, size, code
            count += 1
        number[g] = table[slot]
    return count


@njit(cache=True)
def gather_merged(
    indptr: Ints, indices: Ints, radii: Floats, position: Ints, number: Ints, starts: Ints, q: Floats
) -> tuple[Ints, Floats, Floats]:
    """The positions, summed multipliers and summed radii of the groups as numbered by :func:`merge_groups`."""
    places, y = np.empty(starts[-1], dtype=np.uint32), np.zeros(starts[-1])
    total = np.zeros(len(starts) - 1)
    for g in range(len(radii)):
        if number[g] >= 0:
            total[number[g]] += radii[g]
            to = starts[number[g]]
            for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
                here = position[indices[e]]
                if here >= 0:
                    places[to] = here
                    y[to] += q[e]
                    to += 1
    return places, y, total


@njit(cache=True)
def hand_back(
    indptr: Ints,
    indices: Ints,
    radii: Floats,
    position: Ints,
    number: Ints,
    starts: Ints,
    total: Floats,
    y: Floats,
    shares: Floats,
    q: Floats,
    out: Floats,
) -> None:
    """Share the multipliers y of the merged groups out among the groups, in place in q, and take K'q from ``out``.

    Of a group whose single coordinate was made an absolute value, q is its radius times ``shares`` of the coordinate.
    The entries of coordinates without position are shortened until ||q_g|| <= c_g.
    """
    for g in range(len(radii)):
        held, moved, to, share = 0.0, 0.0, 0, 0.0
        if number[g] >= 0:
            to, share = starts[number[g]], radii[g] / total[number[g]]
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            here = position[indices[e]]
            if here < 0:
                moved += q[e] ** 2
            else:
                if number[g] >= 0:
                    q[e] = share * y[to]
                    to += 1
                else:
                    q[e] = radii[g] * shares[here] if number[g] == -2 else 0.0
                held += q[e] ** 2
                out[indices[e]] -= q[e]
        if moved > 0.0:
            room = radii[g] ** 2 - held
            factor = 1.0 if moved <= room else INSIDE * np.sqrt(room / moved) if room > 0.0 else 0.0
            for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
                if position[indices[e]] < 0:
                    q[e] *= factor
                    out[indices[e]] -= q[e]


@njit(cache=True)
def huber(indptr: Ints, indices: Ints, radii: Floats, sigma: Floats, y: Floats, w: Floats, grad: Floats) -> float:
    """sum_g max over ||q|| <= c_g of <q, w_g> - ||q - y_g||^2 / (2 sigma_g); its gradient K'q is added to ``grad``.

    The best q is the projection of a = y_g + sigma_g w_g, so that the value is a Huber function of a / sigma_g less
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

    With a = y_g + sigma_g w_g, a group inside its ball has the Hessian sigma_g I; outside it has
    h_g (I - a a' / ||a||^2) with h_g = c_g sigma_g / ||a||. Multiples of the identity are added to ``diagonal``; the
    list (indptr, indices, a / ||a||, h) has the rest, of the groups with two or more coordinates. Both go by positions.
    Entries of a / ||a|| below ``least`` are left out of it: the Hessian becomes a little larger.
    The list is written to the last four arrays, which are as long as if no group and no coordinate were left out:
    memory that is asked for anew each time takes longer than all of the arithmetic.
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
        if count == first + 1:  # a single number: its product with itself is diagonal too
            diagonal[places[first]] -= curvature * a[first] ** 2
            count = first
        elif count > first:
            h[n_kept] = curvature
            n_kept += 1
            starts[n_kept] = count
    return starts[: n_kept + 1], places[:count], a[:count], h[:n_kept]


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
def multipliers(indptr: Ints, indices: Ints, radii: Floats, sigma: Floats, y: Floats, w: Floats, zero: Ints) -> float:
    """y_g <- projection of y_g + sigma_g w_g in place; sum_g c_g ||w_g|| - <y_g, w_g> is returned.

    The coordinates of groups inside their balls, whose copies v_g are zero, are marked in ``zero``.
    """
    slack = 0.0
    for g in range(len(radii)):
        square, size = 0.0, 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            x = w[indices[e]]
            y[e] += sigma[g] * x
            square += y[e] ** 2
            size += x**2
        factor = 1.0
        if square > radii[g] ** 2:
            factor = radii[g] / np.sqrt(square)
        else:
            for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
                zero[indices[e]] = 1
        along = 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            y[e] *= factor
            along += y[e] * w[indices[e]]
        slack += radii[g] * np.sqrt(size) - along
    return slack


@njit(cache=True)
def slack(indptr: Ints, indices: Ints, radii: Floats, sigma: Floats, y: Floats, w: Floats) -> float:
    """What :func:`multipliers` would return, with y left as it is."""
    total = 0.0
    for g in range(len(radii)):
        square, size, along = 0.0, 0.0, 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            x = w[indices[e]]
            moved = y[e] + sigma[g] * x
            square += moved**2
            size += x**2
            along += moved * x
        factor = 1.0
        if square > radii[g] ** 2:
            factor = radii[g] / np.sqrt(square)
        total += radii[g] * np.sqrt(size) - factor * along
    return total
