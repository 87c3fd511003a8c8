"""Directions of the weights that nothing penalises, and the exact minimisation over them.

Along such a direction, as along the intercept, the dual point of the losses must be in balance. Minimising the smooth
terms exactly over all of them, at fixed other weights, brings that about to round-off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.atom import Array
from cvxstructreg.core.normal_form import NormalForm, Piece
from cvxstructreg.core.quadratic_form import DENSE_LIMIT

#: More free numbers than this are not minimised over.
MOST_FREE = 500


def free_directions(parts: NormalForm, theta: Array) -> Array | None:
    """A basis (d x q) of the directions without penalty at theta; None if there are too many to handle."""
    d = parts.model.n_weights
    none = np.zeros((d, 0))
    if parts.rkhs or np.all(parts.ridge > 0):
        return none
    held = parts.ridge > 0
    if parts.separable is not None:
        held = held | _held_by_separable(parts, theta)
    if held.all():
        return none
    if d <= DENSE_LIMIT and (parts.weight_forms or parts.piece_diagonal is None):
        values, vectors = np.linalg.eigh(parts.coverage + np.diag(held.astype(float)))
        basis = vectors[:, values <= 1e-12 * max(1.0, values[-1])]
    else:
        free = np.flatnonzero(~(held | (parts.coverage_diagonal > 0)))
        if free.size > MOST_FREE:
            return None
        basis = np.zeros((d, free.size))
        basis[free, np.arange(free.size)] = 1.0
    return basis if basis.shape[1] * parts.n_outputs <= MOST_FREE else None


def _held_by_separable(parts: NormalForm, theta: Array) -> NDArray[np.bool_]:
    part = parts.separable
    assert part is not None
    bounded = np.isfinite(part.lower) & np.isfinite(part.upper)
    # with one bound only, a weight that is strictly inside moves freely
    at_bound = (theta <= part.lower) | (theta >= part.upper)
    held = (part.weights > 0) | bounded | (at_bound & (np.isfinite(part.lower) | np.isfinite(part.upper)))
    return np.asarray(np.broadcast_to(held, theta.shape).all(axis=1))


def refit(parts: NormalForm, theta: Array, b: Array, start: Array, directions: Array) -> tuple[Array, Array, Array]:
    """(theta + directions a, b', its scores) with a and b' minimising the smooth terms: a damped Newton method.

    ``start`` are the scores at (theta, b).
    """
    k, q = parts.n_outputs, directions.shape[1]
    columns = np.asarray(parts.model.design @ directions) if q else np.zeros((parts.model.n_rows, 0))
    if parts.model.intercept:
        columns = np.column_stack([columns, np.ones(parts.model.n_rows)])
    if columns.shape[1] == 0:
        return theta, b, start

    def state(a: Array) -> tuple[Array, Array, Array]:
        moved = theta + directions @ a[:q] if q else theta
        shifted = b + a[q] if parts.model.intercept else b
        return moved, shifted, start + columns @ a

    def value(a: Array) -> float:
        moved, _, scores = state(a)
        total = sum(piece.value(scores) for piece in parts.score_pieces)
        total += sum(form.value(scores) for form in parts.score_forms)
        return float(total + parts.quadratic_value(moved) if q else total)

    a = np.zeros((columns.shape[1], k))
    current = value(a)
    for _ in range(50):
        moved, _, scores = state(a)
        slope = parts.smooth_score_grad(scores)
        gradient = columns.T @ slope
        if q:
            gradient[:q] += directions.T @ parts.quadratic_grad(moved)
        if np.all(np.abs(gradient) <= 1e-14 * (np.abs(columns).T @ np.abs(slope) + 1e-300)):
            break
        step = _newton_step(parts, columns, directions, scores, gradient)
        length = 1.0
        while length > 1e-4:
            trial = value(a - length * step)
            if trial <= current + 1e-15 * abs(current):
                break
            length *= 0.5
        else:
            break
        a, current = a - length * step, trial
    return state(a)


def _newton_step(parts: NormalForm, columns: Array, directions: Array, scores: Array, gradient: Array) -> Array:
    m, k = gradient.shape
    q = directions.shape[1]
    hessian = np.zeros((m, k, m, k))
    for scaled in parts.score_forms:
        _add_to_each_output(hessian, columns.T @ scaled.grad(columns))
    for piece in parts.score_pieces:
        hessian += piece.scale * _piece_hessian(piece, piece.forward(columns), piece.forward(scores))
    if q:
        pulled = [parts.quadratic_grad(np.repeat(x[:, None], k, axis=1))[:, 0] for x in directions.T]
        _add_to_each_output(hessian[:q, :, :q, :], directions.T @ np.column_stack(pulled))
    flat = hessian.reshape(m * k, m * k)
    step = np.linalg.lstsq((flat + flat.T) / 2, gradient.ravel(), rcond=1e-13)[0]
    return np.clip(step.reshape(m, k), -1e3, 1e3)


def _add_to_each_output(hessian: Array, block: Array) -> None:
    """The same m x m block for each of the k outputs."""
    for j in range(hessian.shape[1]):
        hessian[:, j, :, j] += block


def _piece_hessian(piece: Piece, columns: Array, z: Array) -> Array:
    """The Hessian of a -> atom(z + columns a), as m x k x m x k."""
    m, k = columns.shape[1], z.shape[1]
    hessian = np.zeros((m, k, m, k))
    if piece.atom.can("hess_rows"):
        direct, root = piece.atom.hess_rows(z)
        spread = (columns[:, :, None] * root[:, None, :]).reshape(len(z), m * k)
        hessian -= (spread.T @ spread).reshape(m, k, m, k)
    elif piece.atom.can("hess_diag"):
        direct = piece.atom.hess_diag(z)
    else:
        for i in range(m):
            for j in range(k):
                p = np.zeros_like(z)
                p[:, j] = columns[:, i]
                hessian[:, :, i, j] = columns.T @ piece.atom.hessp(z, p)
        return hessian
    for j in range(k):
        hessian[:, j, :, j] += columns.T @ (direct[:, j, None] * columns)
    return hessian
