"""The steps of the interior point method by the normal equations, compiled: a few passes instead of dozens."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Floats = np.ndarray[Any, Any]


@njit(cache=True)
def factorise(band: Floats, h: Floats, L: Floats) -> bool:
    """L D L' of the matrix with the given band plus diag(h): 1 / D in L[:, 0]; False if it is not positive."""
    m, width = band.shape
    if width == 3:
        return factorise_three(band, h, L)
    for j in range(m):
        for a in range(width):
            L[j, a] = band[j, a]
        L[j, 0] += h[j]
    for j in range(m):
        if not (L[j, 0] > 0.0 and L[j, 0] < np.inf):
            return False
        L[j, 0] = 1.0 / L[j, 0]
        for a in range(1, min(width, m - j)):
            part = L[j, a] * L[j, 0]
            for b in range(a, min(width, m - j)):
                L[j + a, b - a] -= part * L[j, b]
        for a in range(1, width):
            L[j, a] *= L[j, 0]
    return True


@njit(cache=True)
def factorise_three(band: Floats, h: Floats, L: Floats) -> bool:
    """The same for second differences, with the numbers of the last two columns at hand."""
    this, following = 0.0, 0.0  # what the last columns subtract from this pivot, and from the next one
    side = 0.0  # and from the entry below this pivot
    for j in range(len(h)):
        pivot = band[j, 0] + h[j] - this
        if not (pivot > 0.0 and pivot < np.inf):
            return False
        inverse = 1.0 / pivot
        below, last = band[j, 1] - side, band[j, 2]
        L[j, 0], L[j, 1], L[j, 2] = inverse, below * inverse, last * inverse
        this, following, side = following + L[j, 1] * below, L[j, 2] * last, L[j, 1] * last
    return True


@njit(cache=True)
def solve(L: Floats, x: Floats) -> None:
    """Replace x by the solution."""
    m, width = L.shape
    if width == 3:
        one, two = 0.0, 0.0  # the last two entries
        for j in range(m):
            value = x[j]
            if j > 0:
                value -= L[j - 1, 1] * one
            if j > 1:
                value -= L[j - 2, 2] * two
            x[j] = value
            one, two = value, one
        one, two = 0.0, 0.0
        for j in range(m - 1, -1, -1):
            value = x[j] * L[j, 0] - L[j, 1] * one - L[j, 2] * two
            x[j] = value
            one, two = value, one
        return
    for j in range(m):
        for a in range(1, min(width, m - j)):
            x[j + a] -= L[j, a] * x[j]
    for j in range(m - 1, -1, -1):
        value = x[j] * L[j, 0]
        for a in range(1, min(width, m - j)):
            value -= L[j, a] * x[j + a]
        x[j] = value


@njit(cache=True)
def direction(
    L: Floats,
    slope: Floats,
    z: Floats,
    slacks: Floats,
    inverses: Floats,
    target: float,
    dt: Floats,
    dz: Floats,
    corrects: bool,
) -> float:
    """The Newton step to products ``target`` of multipliers and slacks, written to dt and dz; the longest step up to 1.

    If ``corrects``, dt and dz hold the predictor, whose products are subtracted. ``inverses`` are those of the slacks,
    and of the multipliers.
    """
    m = len(slope)
    for i in range(m):
        above, below = target - z[0, i] * slacks[0, i], target - z[1, i] * slacks[1, i]
        if corrects:
            above += dt[i] * dz[0, i]
            below -= dt[i] * dz[1, i]
        dz[0, i], dz[1, i] = above * inverses[0, i], below * inverses[1, i]
        dt[i] = slope[i] - z[0, i] + z[1, i] - dz[0, i] + dz[1, i]
    solve(L, dt)
    steepest = 1.0
    for i in range(m):
        above, below = dt[i] * inverses[0, i], -dt[i] * inverses[1, i]
        dz[0, i] += z[0, i] * above
        dz[1, i] += z[1, i] * below
        steepest = max(steepest, above, below)
        steepest = max(steepest, -dz[0, i] * inverses[2, i], -dz[1, i] * inverses[3, i])
    return 1.0 / steepest


@njit(cache=True)
def move(band: Floats, slope: Floats, z: Floats, slacks: Floats, inside: float, L: Floats) -> bool:
    """Predictor and corrector: z and slacks are replaced by those of the next point; False if there is none."""
    m = len(slope)
    dt, dz, inverses = np.empty(m), np.empty((2, m)), np.empty((4, m))
    now = 0.0
    for i in range(m):
        inverses[0, i], inverses[1, i] = 1.0 / slacks[0, i], 1.0 / slacks[1, i]
        inverses[2, i], inverses[3, i] = 1.0 / z[0, i], 1.0 / z[1, i]
        dt[i] = z[0, i] * inverses[0, i] + z[1, i] * inverses[1, i]
        now += z[0, i] * slacks[0, i] + z[1, i] * slacks[1, i]
    if not factorise(band, dt, L):
        return False
    length = direction(L, slope, z, slacks, inverses, 0.0, dt, dz, False)
    ahead = 0.0
    for i in range(m):
        ahead += (z[0, i] + length * dz[0, i]) * (slacks[0, i] - length * dt[i])
        ahead += (z[1, i] + length * dz[1, i]) * (slacks[1, i] + length * dt[i])
    length = direction(L, slope, z, slacks, inverses, (ahead / now) ** 3 * now / (2 * m), dt, dz, True)
    length = min(1.0, inside * length)
    for i in range(m):
        if not (np.isfinite(dt[i]) and np.isfinite(dz[0, i]) and np.isfinite(dz[1, i])):
            return False
    for i in range(m):
        slacks[0, i] -= length * dt[i]
        slacks[1, i] += length * dt[i]
        z[0, i] += length * dz[0, i]
        z[1, i] += length * dz[1, i]
    return True


@njit(cache=True)
def arrive(
    rows: Floats, s: Floats, y: Floats, slacks: Floats, t: Floats, pull: Floats, w: Floats, slope: Floats
) -> tuple[float, float]:
    """Write t, K't, w = y - K't / s and Kw, where row i of K takes the columns from i on; return both objectives."""
    m, width = rows.shape
    pull[:] = 0.0
    for i in range(m):
        t[i] = 1.0 - slacks[0, i] if slacks[0, i] < slacks[1, i] else slacks[1, i] - 1.0
        for k in range(width):
            pull[i + k] += rows[i, k] * t[i]
    value, bound = 0.0, 0.0
    for j in range(len(y)):
        part = pull[j] / s[j]
        w[j] = y[j] - part
        value += 0.5 * s[j] * (w[j] - y[j]) ** 2
        bound += pull[j] * (y[j] - 0.5 * part)
    for i in range(m):
        slope[i] = 0.0
        for k in range(width):
            slope[i] += rows[i, k] * w[i + k]
        value += abs(slope[i])
    return value, bound
