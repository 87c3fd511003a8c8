"""Compiled loops over overlapping groups; the tests hold each of them equal to a few lines of NumPy.

Groups are flat: the entries ``e`` of group g are ``indptr[g] <= e < indptr[g + 1]``, entry e is feature ``indices[e]``, and
q_e is row e of an (entries x k) array. ``radii`` are the c_g of sum_g c_g ||w_g||.

``indices`` are unsigned because a signed index costs a test for negative values at each access.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Ints = np.ndarray[Any, Any]
Floats = np.ndarray[Any, Any]


@njit(cache=True)
def add_adjoint(indices: Ints, q: Floats, out: Floats, sign: float) -> None:
    """Add sign * K'q to ``out``: out_j += sign * sum of q_e over the entries e of feature j."""
    for e in range(q.shape[0]):
        for c in range(q.shape[1]):
            out[indices[e], c] += sign * q[e, c]


@njit(cache=True)
def add_counts(indptr: Ints, indices: Ints, radii: Floats, out: Floats) -> None:
    """Add to out_j the radii of all groups that hold feature j."""
    for g in range(len(radii)):
        for e in range(indptr[g], indptr[g + 1]):
            out[indices[e]] += radii[g]


@njit(cache=True)
def excess_of(value: float, bound: float) -> float:
    """The part of a number outside [-bound, bound]."""
    if value > bound:
        return value - bound
    if value < -bound:
        return value + bound
    return 0.0


@njit(cache=True)
def repair(
    indptr: Ints, indices: Ints, radii: Floats, q: Floats, left: Floats, bound: Floats, fixed: Ints, sweeps: int
) -> float:
    """Gauss-Seidel sweeps on 1/2 ||left - clip(left, +-bound)||^2 over ||q_g|| <= c_g; ``left`` is e = left_0 - K'q.

    One group after the other, where a feature that is not ``fixed`` has an excess x = e - clip(e, +-bound):
    q_g <- projection of q_g + x_g, with the entries of fixed features held. ``q`` and ``left`` change in place. The
    largest excess that was met in the last sweep is returned.
    """
    k = q.shape[1]
    worst = 0.0
    for _ in range(sweeps):
        worst = 0.0
        for g in range(len(radii)):
            largest = 0.0
            for e in range(indptr[g], indptr[g + 1]):
                j = indices[e]
                if fixed[j] == 0:
                    for c in range(k):
                        largest = max(largest, abs(excess_of(left[j, c], bound[j, c])))
            if largest == 0.0:
                continue
            worst = max(worst, largest)
            held, moved = 0.0, 0.0
            for e in range(indptr[g], indptr[g + 1]):
                j = indices[e]
                for c in range(k):
                    if fixed[j] == 0:
                        moved += (q[e, c] + excess_of(left[j, c], bound[j, c])) ** 2
                    else:
                        held += q[e, c] ** 2
            room = max(radii[g] ** 2 - held, 0.0)
            # a little inside, so that round-off leaves no point outside its ball
            factor = 1.0 if moved <= room else (1.0 - 4e-16) * np.sqrt(room / moved)
            for e in range(indptr[g], indptr[g + 1]):
                j = indices[e]
                if fixed[j] == 0:
                    for c in range(k):
                        new = factor * (q[e, c] + excess_of(left[j, c], bound[j, c]))
                        left[j, c] += q[e, c] - new
                        q[e, c] = new
        if worst == 0.0:
            break
    return worst


@njit(cache=True)
def restricted_sizes(indptr: Ints, indices: Ints, position: Ints) -> Ints:
    """For each group how many of its features have a position (>= 0)."""
    sizes = np.zeros(len(indptr) - 1, dtype=np.int64)
    for g in range(len(sizes)):
        count = 0
        for e in range(indptr[g], indptr[g + 1]):
            if position[indices[e]] >= 0:
                count += 1
        sizes[g] = count
    return sizes


@njit(cache=True)
def restricted_entries(indptr: Ints, indices: Ints, position: Ints, groups: Ints, total: int) -> tuple[Ints, Ints]:
    """The entries of the given groups whose features have a position, and these positions."""
    entries, places = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.uint32)
    count = 0
    for g in groups:
        for e in range(indptr[g], indptr[g + 1]):
            place = position[indices[e]]
            if place >= 0:
                entries[count], places[count] = e, place
                count += 1
    return entries, places


@njit(cache=True)
def huber(indptr: Ints, indices: Ints, radii: Floats, sigma: Floats, y: Floats, w: Floats, grad: Floats) -> float:
    """sum_g max over ||q|| <= c_g of <q, w_g> - ||q - y_g||^2 / (2 sigma_g); its gradient K'q is added to ``grad``.

    The best q is the projection of a = y_g + sigma_g w_g: a Huber function of a / sigma_g.
    """
    k = w.shape[1]
    value = 0.0
    for g in range(len(radii)):
        square = 0.0
        for e in range(indptr[g], indptr[g + 1]):
            for c in range(k):
                square += (y[e, c] + sigma[g] * w[indices[e], c]) ** 2
        factor = 1.0 if square <= radii[g] ** 2 else radii[g] / np.sqrt(square)
        for e in range(indptr[g], indptr[g + 1]):
            for c in range(k):
                x = w[indices[e], c]
                q = factor * (y[e, c] + sigma[g] * x)
                value += q * x - (q - y[e, c]) ** 2 / (2.0 * sigma[g])
                grad[indices[e], c] += q
    return value


@njit(cache=True)
def huber_curvature(
    indptr: Ints, indices: Ints, radii: Floats, sigma: Floats, y: Floats, w: Floats, diagonal: Floats
) -> tuple[Floats, Floats]:
    """The generalised Hessian of :func:`huber`: a scalar h_g and a direction a_g for each group.

    Inside its ball a group has the Hessian sigma_g I, so h_g = 0 and sigma_g is added to ``diagonal``. Outside it is
    h_g (I - a a') with h_g = c_g sigma_g / ||a_g||, and a of length one.
    """
    k = w.shape[1]
    h, a = np.zeros(len(radii)), np.zeros(y.shape)
    for g in range(len(radii)):
        square = 0.0
        for e in range(indptr[g], indptr[g + 1]):
            for c in range(k):
                a[e, c] = y[e, c] + sigma[g] * w[indices[e], c]
                square += a[e, c] ** 2
        if square <= radii[g] ** 2:
            for e in range(indptr[g], indptr[g + 1]):
                for c in range(k):
                    diagonal[indices[e], c] += sigma[g]
        else:
            norm = np.sqrt(square)
            h[g] = radii[g] * sigma[g] / norm
            for e in range(indptr[g], indptr[g + 1]):
                for c in range(k):
                    a[e, c] /= norm
    return h, a


@njit(cache=True)
def add_curvature_diagonal(indptr: Ints, indices: Ints, h: Floats, a: Floats, out: Floats) -> None:
    """Add the diagonal of sum_g h_g (I - a a') to ``out``."""
    for g in range(len(h)):
        if h[g] > 0.0:
            for e in range(indptr[g], indptr[g + 1]):
                for c in range(out.shape[1]):
                    out[indices[e], c] += h[g] * (1.0 - a[e, c] ** 2)


@njit(cache=True)
def add_curvature(indptr: Ints, indices: Ints, h: Floats, a: Floats, p: Floats, out: Floats) -> None:
    """Add sum_g h_g (I - a a') p_g to ``out``."""
    for g in range(len(h)):
        if h[g] > 0.0:
            along = 0.0
            for e in range(indptr[g], indptr[g + 1]):
                for c in range(p.shape[1]):
                    along += a[e, c] * p[indices[e], c]
            for e in range(indptr[g], indptr[g + 1]):
                for c in range(p.shape[1]):
                    out[indices[e], c] += h[g] * (p[indices[e], c] - along * a[e, c])


@njit(cache=True)
def multipliers(
    indptr: Ints, indices: Ints, radii: Floats, sigma: Floats, y: Floats, w: Floats
) -> tuple[float, Ints]:
    """y_g <- projection of y_g + sigma_g w_g in place; sum_g c_g ||w_g|| - <y_g, w_g>, and which groups are outside."""
    k = w.shape[1]
    slack = 0.0
    outside = np.zeros(len(radii), dtype=np.uint8)
    for g in range(len(radii)):
        square, size = 0.0, 0.0
        for e in range(indptr[g], indptr[g + 1]):
            for c in range(k):
                x = w[indices[e], c]
                y[e, c] += sigma[g] * x
                square += y[e, c] ** 2
                size += x**2
        factor = 1.0
        if square > radii[g] ** 2:
            outside[g] = 1
            factor = radii[g] / np.sqrt(square)
        along = 0.0
        for e in range(indptr[g], indptr[g + 1]):
            for c in range(k):
                y[e, c] *= factor
                along += y[e, c] * w[indices[e], c]
        slack += radii[g] * np.sqrt(size) - along
    return slack, outside


@njit(cache=True)
def norm_sum(indptr: Ints, indices: Ints, radii: Floats, w: Floats) -> float:
    """sum_g c_g ||w_g||."""
    value = 0.0
    for g in range(len(radii)):
        square = 0.0
        for e in range(indptr[g], indptr[g + 1]):
            for c in range(w.shape[1]):
                square += w[indices[e], c] ** 2
        value += radii[g] * np.sqrt(square)
    return value


@njit(cache=True)
def shrink(indptr: Ints, radii: Floats, q: Floats) -> None:
    """q_g <- the nearest point with ||q_g|| <= c_g, in place."""
    for g in range(len(radii)):
        square = 0.0
        for e in range(indptr[g], indptr[g + 1]):
            for c in range(q.shape[1]):
                square += q[e, c] ** 2
        if square > radii[g] ** 2:
            factor = (1.0 - 4e-16) * radii[g] / np.sqrt(square)
            for e in range(indptr[g], indptr[g + 1]):
                for c in range(q.shape[1]):
                    q[e, c] *= factor


@njit(cache=True)
def make_room(indptr: Ints, indices: Ints, radii: Floats, q: Floats, fixed: Ints) -> None:
    """Shorten the entries of features that are not ``fixed`` until ||q_g|| <= c_g, in place."""
    for g in range(len(radii)):
        held, moved = 0.0, 0.0
        for e in range(indptr[g], indptr[g + 1]):
            for c in range(q.shape[1]):
                if fixed[indices[e]] == 0:
                    moved += q[e, c] ** 2
                else:
                    held += q[e, c] ** 2
        room = max(radii[g] ** 2 - held, 0.0)
        if moved > room:
            factor = (1.0 - 4e-16) * np.sqrt(room / moved)
            for e in range(indptr[g], indptr[g + 1]):
                if fixed[indices[e]] == 0:
                    for c in range(q.shape[1]):
                        q[e, c] *= factor
