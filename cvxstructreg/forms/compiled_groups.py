"""Compiled loops over overlapping groups.

Some formulas here have a NumPy twin: ``norm_sum`` is ``GroupLasso.value``, ``shrink`` is ``BlockNorms.project`` and
``largest_ratio`` is ``BlockNorms.dual_norm``. The twins serve small problems, for which loading the compiler takes
longer than the solve; a compiled loop cannot call them. ``tests/test_formulas_stand_once.py`` holds each pair equal.

Groups are stored flat: group g has the entries ``indptr[g] <= e < indptr[g + 1]``, entry e is coordinate ``indices[e]``
of the weights, and q_e, y_e, a_e belong to entry e. ``radii`` are the c_g of sum_g c_g ||w_g||. Weights of several
outputs are stored flat as well, row after row.

``indices`` are unsigned because numba tests a signed index for negative values at each access.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]

#: Projections end slightly inside the ball, so that round-off leaves no point outside.
INSIDE = 1.0 - 4e-16
#: The bound of a fixed coordinate: no value exceeds it.
HELD = 1e300


@njit(cache=True)
def beyond(x: float, bound: float) -> float:
    """The part of x outside [-bound, bound]: x - clip(x, -bound, bound), in a form that compiles quickly."""
    if x > bound:
        return x - bound
    return x + bound if x < -bound else 0.0


@njit(cache=True)
def add_adjoint(indices: Ints, q: Floats, out: Floats, sign: float) -> None:
    """Add sign * K'q to ``out``: out_j += sign * sum of q_e over the entries e of coordinate j."""
    for e in range(len(q)):
        out[indices[e]] += sign * q[e]


@njit(cache=True)
def add_radii(indptr: Ints, indices: Ints, radii: Floats, out: Floats) -> None:
    """Add to out_j the radii of all groups that contain coordinate j."""
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
    """Project q_g onto ||q_g|| <= c_g in place; returns max_g ||q_g|| / c_g before the projection."""
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

    The groups are updated one after the other: q_g <- projection of q_g + x_g, where x = e - clip(e, +-bound) is the
    excess. Entries of ``fixed`` coordinates do not change. ``q`` and ``left`` change in place. Returns the sum of
    squares of the remaining excess. The sweeps end after one that leaves more than ``part`` of it.
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
            for e in range(first, end):  # no branches here: the processor could not predict them
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
    """max_g ||q_g|| / c_g; infinite if q_g is not zero for some c_g = 0."""
    worst = 0.0
    for g in range(len(radii)):
        square = 0.0
        for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
            square += q[e] ** 2
        if square > worst * radii[g] ** 2:
            if radii[g] > 0.0:
                worst = square / radii[g] ** 2
            elif square > 0.0:
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
    """Restrict the groups to the coordinates with a position (>= 0), merge equal groups, and number the results.

    ``number`` (filled with -1) receives for each group the number of its merged group. The number stays -1 if the
    restricted group is empty or has radius zero. It is -2 if a single coordinate remains and ``lam`` is not empty: the
    radius is then added to ``lam`` at that coordinate. ``sizes`` and ``hashes`` are indexed by merged group. Returns
    the number of merged groups.

    Equal groups are found by a hash: the sum of random ``keys`` of the positions, each multiplied by an odd number for
    its place in the group. The length of the hash ``table`` (filled with -1) is a power of two and at least twice the
    number of groups.
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
    """The positions, summed multipliers and summed radii of the merged groups of :func:`merge_groups`."""
    last = starts[-1]  # a dummy slot for omitted entries: faster than unpredictable branches
    places, y = np.empty(last + 1, dtype=np.uint32), np.zeros(last + 1)
    total = np.zeros(len(starts) - 1)
    for g in range(len(radii)):
        if number[g] >= 0:
            total[number[g]] += radii[g]
            to = starts[number[g]]
            for e in range(np.uint64(indptr[g]), np.uint64(indptr[g + 1])):
                here = position[indices[e]]
                chosen = here >= 0
                slot = np.uint64(to if chosen else last)
                places[slot] = here
                y[slot] += q[e]
                to += 1 if chosen else 0
    return places[:last], y[:last], total


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
    """Distribute the multipliers y of the merged groups among the groups, in place in q, and subtract K'q from ``out``.

    If a group became an absolute value, its q is the radius times the entry of ``shares`` for its coordinate. Entries
    of coordinates without a position are scaled down until ||q_g|| <= c_g.
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
