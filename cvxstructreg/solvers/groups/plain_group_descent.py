"""The functions of :mod:`compiled_group_descent` in NumPy, for a dense X and small problems.

They take the same arguments and change the same arrays, which are explained there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array

#: As in :mod:`compiled_group_descent`; undoing a rejected step does not count as an attempt here.
NORM_STEPS, ACCEPTED, ATTEMPTS = 50, 1.5, 60


def _slots(layout: Any, chosen: Any) -> Any:
    column, starts = layout[:2]
    slots = [np.arange(starts[g], starts[g + 1]) for g in chosen]
    return np.concatenate(slots) if slots else np.zeros(0, dtype=column.dtype)


def slopes(X: Any, layout: Any, chosen: Any, r: Array, k: int, out: Array) -> None:
    """out_p = x_p'r for the slots of the chosen groups."""
    slots = _slots(layout, chosen)
    out.reshape(-1, k)[slots] = (X[0][layout[0][slots]] @ r).reshape(-1, k)


def add_columns(X: Any, layout: Any, chosen: Any, step: Array, k: int, out: Array) -> None:
    """out += sum_p x_p step_p' over the slots of the chosen groups."""
    slots = _slots(layout, chosen)
    out += (X[0][layout[0][slots]].T @ step.reshape(-1, k)[slots]).reshape(out.shape)


def curvatures(
    X: Any, layout: Any, chosen: Any, hess: Any, k: int, diagonal: Array, least: Array, curvature: Array, centre: Array
) -> None:
    """For the chosen groups: the diagonal of the Hessian after minimising over b, and centre_p = sum_i x_ip H_i."""
    direct, root, inverse = hess
    slots = _slots(layout, chosen)
    A = X[0][layout[0][slots]]
    own = direct - root**2 if len(root) else direct.reshape(-1, k)
    between = np.einsum("pi,ic,ce->pce", A, direct.reshape(-1, k), np.eye(k))
    if len(root):
        between -= np.einsum("pi,ic,ie->pce", A, root, root)
    square = A**2 @ own
    less = np.einsum("pce,ef,pcf->pc", between, inverse, between)
    bend = np.maximum(np.maximum(square - less, 1e-10 * square), least[slots, None]) + diagonal[slots, None]
    centre.reshape(-1, k, k)[slots] = between
    curvature.reshape(-1, k)[slots] = bend


def block_prox(a: Array, bend: Array, radius: float, size: int, new: Array) -> None:
    """argmin over x of sum_j bend_j x_j^2 / 2 - a_j x_j + radius ||x||, where ``a`` is soft-thresholded already."""
    new[:size] = 0.0
    a, bend, square = a[:size], bend[:size], float(a[:size] @ a[:size])
    if square <= radius * radius:
        return
    if radius == 0.0:
        np.divide(a, bend, out=new[:size], where=bend > 0.0)
        return
    most = float(bend.max())
    norm = (np.sqrt(square) - radius) / most if most > 0.0 else 0.0
    for _ in range(NORM_STEPS):
        whole = bend * norm + radius
        squares = (a / whole) ** 2
        total, slope = float(squares.sum()), float((squares * bend / whole).sum())
        if not (total > 1.0 + 1e-14 and slope > 0.0):
            break
        norm += (np.sqrt(total) - 1.0) * total / slope
    new[:size] = a * norm / (bend * norm + radius)


class _Block:
    """One group: its part of X and of the weights, and the updates after a step."""

    def __init__(self, X: Any, layout: Any, g: int, k: int, centre: Array) -> None:
        column, starts = layout[:2]
        self.slots = slice(int(starts[g]), int(starts[g + 1]))
        self.flat = slice(self.slots.start * k, self.slots.stop * k)
        self.A, self.centre, self.k = X[0][column[self.slots]], centre.reshape(-1, k, k)[self.slots], k

    def slope(self, r: Array, shift: Array, Qw: Array) -> Array:
        """The gradient of the quadratic part."""
        return np.asarray((self.A @ r).ravel() - (self.centre @ shift).ravel() + Qw[self.flat])

    def move(self, Q: Any, hess: Any, step: Array, total: Array, r: Array, Qw: Array) -> float:
        """Take a step; returns step'(Hessian of the block)step."""
        direct, root, inverse = hess
        u = (self.A.T @ step.reshape(-1, self.k)).reshape(r.shape)
        bent = direct * u
        if len(root):
            bent -= root * np.sum(root * u, axis=1, keepdims=True)
        moved = np.tensordot(step.reshape(-1, self.k), self.centre, ([0, 1], [0, 1]))
        before = Qw[self.flat].copy()
        for slot, part in zip(range(self.slots.start, self.slots.stop), step.reshape(-1, self.k), strict=True):
            entries = slice(Q[2][slot], Q[2][slot + 1])
            Qw.reshape(-1, self.k)[Q[1][entries]] += Q[0][entries, None] * part
        r += bent
        total += moved
        return float(np.vdot(u, bent) - moved @ inverse @ moved + step @ (Qw[self.flat] - before))


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
    """Passes over the chosen groups until no step exceeds ``tol``, relative to ``sizes``; updates in place."""
    radii, sizes, lam = layout[2:]
    blocks = [(g, _Block(X, layout, g, k, centre)) for g in chosen]
    worst, done = np.inf, 0
    while done < passes and worst > tol:
        worst = 0.0
        done += 1
        for g, block in blocks:
            slope, old, limit = block.slope(r, hess[2] @ total, Qw), w[block.flat], lam[block.flat]
            beyond = np.maximum(np.abs(slope) - limit, 0.0)
            if not old.any() and float(beyond @ beyond) <= radii[g] ** 2:
                continue
            for _ in range(ATTEMPTS):
                bend, new = factors[g] * curvature[block.flat], np.empty_like(old)
                point = bend * old - slope
                a = np.sign(point) * np.maximum(np.abs(point) - limit, 0.0)
                block_prox(a, bend, float(radii[g]), a.size, new)
                if radii[g] == 0.0:
                    new = np.where((bend == 0.0) & (limit == 0.0), old, new)  # an empty column without penalty
                step = new - old
                assumed, length = float(bend @ step**2), float(np.linalg.norm(bend * step))
                if length == 0.0:
                    break
                bent = block.move(Q, hess, step, total, r, Qw)
                if bent <= ACCEPTED * assumed or old.size == 1:
                    factors[g] = factors[g] * max(1.0, bent / assumed) if old.size > 1 else 1.0
                    w[block.flat] = new
                    worst = max(worst, length / sizes[g])
                    break
                factors[g] *= max(1.2 * bent / assumed, 1.5)
                block.move(Q, hess, -step, total, r, Qw)
    return worst, done
