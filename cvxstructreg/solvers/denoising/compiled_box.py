"""The steps of the interior point method by the normal equations, compiled: a few passes instead of dozens."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.runtime.compiled_clock import njit

Floats = np.ndarray[Any, Any]


@njit(cache=True)
def factorise(band: Floats, z: Floats, slacks: Floats, L: Floats) -> bool:
    """L D L' of the matrix with the given band plus diag(z1/s1 + z2/s2): D in L[:, 0]; False if it is not positive."""
    m, width = band.shape
    for j in range(m):
        for a in range(width):
            L[j, a] = band[j, a]
        L[j, 0] += z[0, j] / slacks[0, j] + z[1, j] / slacks[1, j]
    for j in range(m):
        pivot = L[j, 0]
        if not (pivot > 0.0 and pivot < np.inf):
            return False
        for a in range(1, min(width, m - j)):
            part = L[j, a] / pivot
            for b in range(a, min(width, m - j)):
                L[j + a, b - a] -= part * L[j, b]
        for a in range(1, width):
            L[j, a] /= pivot
    return True


@njit(cache=True)
def solve(L: Floats, x: Floats) -> None:
    """Replace x by the solution."""
    m, width = L.shape
    for j in range(m):
        for a in range(1, min(width, m - j)):
            x[j + a] -= L[j, a] * x[j]
    for j in range(m - 1, -1, -1):
        value = x[j] / L[j, 0]
        for a in range(1, min(width, m - j)):
            value -= L[j, a] * x[j + a]
        x[j] = value


@njit(cache=True)
def direction(
    L: Floats, slope: Floats, z: Floats, slacks: Floats, target: float, dt: Floats, dz: Floats, corrects: bool
) -> float:
    """The Newton step to products ``target`` of multipliers and slacks, written to dt and dz; the longest step up to 1.

    If ``corrects``, dt and dz hold the predictor, whose products are subtracted.
    """
    m = len(slope)
    wanted = np.empty((2, m))
    for i in range(m):
        above, below = target - z[0, i] * slacks[0, i], target - z[1, i] * slacks[1, i]
        if corrects:
            above += dt[i] * dz[0, i]
            below -= dt[i] * dz[1, i]
        wanted[0, i], wanted[1, i] = above / slacks[0, i], below / slacks[1, i]
    for i in range(m):
        dt[i] = slope[i] - z[0, i] + z[1, i] - wanted[0, i] + wanted[1, i]
    solve(L, dt)
    steepest = 1.0
    for i in range(m):
        dz[0, i] = wanted[0, i] + z[0, i] / slacks[0, i] * dt[i]
        dz[1, i] = wanted[1, i] - z[1, i] / slacks[1, i] * dt[i]
        steepest = max(steepest, dt[i] / slacks[0, i], -dt[i] / slacks[1, i])
        steepest = max(steepest, -dz[0, i] / z[0, i], -dz[1, i] / z[1, i])
    return 1.0 / steepest


@njit(cache=True)
def move(band: Floats, slope: Floats, z: Floats, slacks: Floats, inside: float, L: Floats) -> bool:
    """Predictor and corrector: z and slacks are replaced by those of the next point; False if there is none."""
    m = len(slope)
    if not factorise(band, z, slacks, L):
        return False
    dt, dz = np.empty(m), np.empty((2, m))
    length = direction(L, slope, z, slacks, 0.0, dt, dz, False)
    now, ahead = 0.0, 0.0
    for i in range(m):
        now += z[0, i] * slacks[0, i] + z[1, i] * slacks[1, i]
        ahead += (z[0, i] + length * dz[0, i]) * (slacks[0, i] - length * dt[i])
        ahead += (z[1, i] + length * dz[1, i]) * (slacks[1, i] + length * dt[i])
    length = direction(L, slope, z, slacks, (ahead / now) ** 3 * now / (2 * m), dt, dz, True)
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
