"""Directions of the weights without penalty, and the exact minimisation over them.

A feasible dual point of the losses must be *in balance*: its products with the scores of such a direction, and with
constants if there is an intercept, are zero. Minimising the smooth terms exactly over these directions, with all other
weights fixed, gives a gradient in balance up to round-off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from cvxstructreg.certificates.directions.polynomials import unseen_polynomials
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

#: The largest number of free coordinates for this minimisation.
MOST_FREE = 500
#: The largest number of Newton steps, and the smallest step size.
MOST_STEPS, SHORTEST = 50, 1e-10
#: A gradient is zero if it is below this part of the sum of the absolute values that it adds up.
BALANCED = 1e-14
#: The solver stops after MOST_IDLE steps that neither lower the value by more than ROUND_OFF times its size nor halve
#: the gradient.
MOST_IDLE, ROUND_OFF = 3, 4.0 * float(np.finfo(float).eps)
#: The longest step in scores: where losses are numerically flat, Newton steps would overflow.
LONGEST = 1e100
#: Scores of a direction are round-off below this part of the sizes of the columns that add up to them.
CANCELLED = 1e-12
#: Singular values of scores of length one below this, relative to the largest, are round-off.
ORTHOGONAL = 1e-14
#: Eigenvalues below NULL, relative to the largest, and entries of unit vectors below NO_ENTRY count as zero.
NULL, NO_ENTRY = 1e-12, 1e-13
#: Singular values of a Newton system below this, relative to the largest, count as zero.
SINGULAR = 1e-13


def free_directions(parts: NormalForm, theta: Array) -> Array | None:
    """A basis (d x q) of the directions without penalty at theta; None if there are too many to handle."""
    d = parts.model.n_weights
    none = np.zeros((d, 0))
    if parts.function_norm is not None or parts.all_penalised:
        return none
    held = _held(parts, theta)
    if held.all():
        return none
    components = _components(parts)
    if components is not None:
        basis = _constant_on(components, held)
        if basis is None:
            return None
    elif not held.any() and (polynomials := unseen_polynomials(parts)) is not None:
        basis = polynomials
    elif d <= DENSE_LIMIT and (parts.weight_forms or parts.piece_diagonal is None):
        basis = unpenalised(parts, held)
    else:
        free = np.flatnonzero(~(held | (parts.coverage_diagonal > 0)))
        if free.size > MOST_FREE:
            return None
        basis = np.zeros((d, free.size))
        basis[free, np.arange(free.size)] = 1.0
    return basis if basis.shape[1] * parts.n_outputs <= MOST_FREE else None


def _components(parts: NormalForm) -> NDArray[np.int64] | None:
    """The component of each weight if all terms on the weights are differences w_i - w_j; else None. Kept."""
    known = parts.__dict__
    if "_components" not in known:
        known["_components"] = None
        pieces = parts.weight_pieces
        if pieces and not parts.weight_forms and all(p.atom.flat() is None and _has_differences(p.K) for p in pieces):
            d = parts.model.n_weights
            pairs = np.concatenate([sp.csr_array(piece.K).indices.reshape(-1, 2) for piece in pieces])
            if len(pairs) == d - 1 and np.array_equal(pairs[:, 0], np.arange(d - 1)) and np.all(np.diff(pairs) == 1):
                known["_components"] = np.zeros(d, dtype=np.int64)  # a chain
            else:
                graph = sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(d, d))
                known["_components"] = connected_components(graph, directed=False)[1]
    found: NDArray[np.int64] | None = known["_components"]
    return found


def _has_differences(K: object) -> bool:
    """Whether every row is c (w_i - w_j) with c != 0, or empty."""
    if not sp.issparse(K):
        return False
    rows = sp.csr_array(K)
    if not rows.nnz or not np.isin(np.diff(rows.indptr), (0, 2)).all():
        return False
    values = rows.data.reshape(-1, 2)
    return bool(np.all(values[:, 0] == -values[:, 1]) and np.all(values[:, 0] != 0))


def _constant_on(components: NDArray[np.int64], held: NDArray[np.bool_]) -> Array | None:
    """An orthonormal basis of the weights that are constant on each component without held weights."""
    counts = np.bincount(components)
    if len(counts) == 1 and not held.any():
        return np.full((len(components), 1), 1.0 / np.sqrt(len(components)))
    free = np.flatnonzero(np.bincount(components, held) == 0)
    if free.size > MOST_FREE:
        return None
    position = np.full(len(counts), -1)
    position[free] = np.arange(free.size)
    inside = np.flatnonzero(position[components] >= 0)
    basis = np.zeros((len(components), free.size))
    basis[inside, position[components[inside]]] = 1.0 / np.sqrt(counts[components[inside]])
    return basis


def unpenalised(parts: NormalForm, held: NDArray[np.bool_]) -> Array:
    """An orthonormal basis of the directions without quadratic term or piece, and with zero ``held`` weights."""
    values, vectors = np.linalg.eigh(parts.coverage + np.diag(held.astype(float)))
    basis = vectors[:, values <= NULL * values[-1]]
    basis[np.abs(basis) <= NO_ENTRY] = 0.0  # round-off, which would matter if the other weights have no data
    return np.asarray(basis)


def free_reach(parts: NormalForm, theta: Array) -> Array:
    """How far each weight may move along the directions without penalty while the scores change by one. Kept.

    The norms of the rows of V / s, where A V has orthogonal columns of lengths s, without their means beside an
    intercept. Weights are far from zero where the scores of a direction nearly cancel.
    """
    if parts.all_penalised:
        return np.zeros(len(theta))
    known: dict[bytes, Array] = parts.__dict__.setdefault("_free_reach", {})
    key = _held(parts, theta).tobytes()
    if key not in known:
        directions = free_directions(parts, theta)
        known[key] = np.zeros(len(theta)) if directions is None else _reach_along(parts, directions)
    return known[key]


def keep_free_reach(parts: NormalForm, theta: Array, make: Callable[[], Array]) -> None:
    """Keep the result of another way to compute ``free_reach``, unless it is known."""
    known: dict[bytes, Array] = parts.__dict__.setdefault("_free_reach", {})
    key = _held(parts, theta).tobytes()
    if key not in known:
        known[key] = make()


def _reach_along(parts: NormalForm, directions: Array) -> Array:
    columns, directions = visible(parts, directions)
    if parts.model.intercept and len(columns):
        centred = columns - columns.mean(axis=0)
        seen = np.linalg.norm(centred, axis=0) > ORTHOGONAL * np.linalg.norm(columns, axis=0)
        columns, directions = centred[:, seen], directions[:, seen]
    return np.asarray(np.linalg.norm(_orthogonal(columns, directions), axis=1))


def _orthogonal(columns: Array, directions: Array) -> Array:
    """Combinations of directions whose scores, combinations of the columns, are orthogonal and of length one.

    A combination whose scores nearly cancel would be lost in the round-off of a Newton system, and the weights are
    largest along such a combination.
    """
    norms = np.linalg.norm(columns, axis=0)
    columns, directions = columns / norms, directions / norms
    if columns.shape[1] < 2:
        return directions
    lengths, rotation = np.linalg.svd(columns, full_matrices=False)[1:]
    seen = lengths > ORTHOGONAL * lengths[0]
    return np.asarray(directions @ (rotation[seen].T / lengths[seen]))


def _held(parts: NormalForm, theta: Array) -> NDArray[np.bool_]:
    """The weights that a ridge, an L1 term or a bound holds."""
    held = np.asarray(parts.ridge > 0)
    return held if parts.separable is None else held | _held_by_separable(parts, theta)


def _held_by_separable(parts: NormalForm, theta: Array) -> NDArray[np.bool_]:
    part = parts.separable
    assert part is not None
    bounded = np.isfinite(part.lower) & np.isfinite(part.upper)
    # with a single bound, a weight strictly inside moves freely
    at_bound = (theta <= part.lower) | (theta >= part.upper)
    held = (part.weights > 0) | bounded | (at_bound & (np.isfinite(part.lower) | np.isfinite(part.upper)))
    return np.asarray(np.broadcast_to(held, theta.shape).all(axis=1))


def refit(parts: NormalForm, theta: Array, b: Array, start: Array, directions: Array) -> tuple[Array, Array, Array]:
    """Minimise the smooth terms over theta + directions a and the intercepts, by a damped Newton method.

    ``start`` are the scores at (theta, b). Returns the weights, the intercepts and the scores.
    """
    columns, directions = _unit_columns(parts, directions)
    q, m = directions.shape[1], columns.shape[1]
    if m == 0:
        return theta, b, start
    a, scores, current = np.zeros((m, parts.n_outputs)), start, np.inf
    steepest, idle = np.inf, 0
    sizes = np.abs(columns).T
    for _ in range(MOST_STEPS):
        moved = theta + directions @ a[:q] if q else theta
        slope = parts.smooth_score_grad(scores)
        gradient = columns.T @ slope
        if q:
            gradient[:q] += directions.T @ parts.quadratic_grad(moved)
        if np.all(np.abs(gradient) <= BALANCED * (sizes @ np.abs(slope))):
            break
        current = _value(parts, moved, scores, q) if current == np.inf else current
        size = float(np.abs(gradient).max())
        idle = idle if size < 0.5 * steepest else idle + 1
        if deadline.passed() or idle > MOST_IDLE:
            break
        step = _newton_step(parts, columns, directions, scores, gradient)
        change = columns @ step
        length = 1.0
        while length > SHORTEST:
            ahead = scores - length * change
            trial = _value(parts, moved - length * (directions @ step[:q]) if q else theta, ahead, q)
            if trial <= current + ROUND_OFF * abs(current):
                break
            length *= 0.5
        else:
            break
        if trial < current - ROUND_OFF * abs(current):
            idle = 0
        steepest = min(steepest, size)
        a, scores, current = a - length * step, ahead, trial
    shift = a[q] / np.sqrt(parts.model.n_rows) if parts.model.intercept else 0.0
    return (theta + directions @ a[:q] if q else theta), b + shift, scores


def linearised(
    parts: NormalForm, theta: Array, scores: Array, directions: Array
) -> tuple[Array, Array, list[Array]] | None:
    """(theta', scores', points): the dual points after one more Newton step, with linearised gradients.

    The dual points of the pieces are u - H p, where H is the Hessian at the scores and p the change of the scores. They
    are in balance along all directions up to the round-off of a linear system, whereas gradients are in balance only as
    far as the Newton method has converged. None if a piece has no Hessian.
    """
    columns, directions = _unit_columns(parts, directions)
    q = directions.shape[1]
    if not parts.scores_are_smooth:
        return None
    points = [piece.grad(piece.forward(scores)) for piece in parts.score_pieces]
    step = np.zeros((columns.shape[1], parts.n_outputs))
    for _ in range(2):  # the second step removes the round-off of the first
        ahead, moved = scores - columns @ step, theta - directions @ step[:q]
        total = sum((scaled.grad(ahead) for scaled in parts.score_forms), np.zeros_like(scores))
        for piece, u in zip(parts.score_pieces, points, strict=True):
            total += piece.adjoint(u)
        gradient = columns.T @ total
        gradient[:q] += directions.T @ parts.quadratic_grad(moved)
        more = _newton_step(parts, columns, directions, scores, gradient)
        change = columns @ more
        points = [
            u - piece.scale * piece.atom.hessp(piece.forward(scores), piece.forward(change))
            for piece, u in zip(parts.score_pieces, points, strict=True)
        ]
        step += more
    return theta - directions @ step[:q], scores - columns @ step, points


def visible(parts: NormalForm, directions: Array) -> tuple[Array, Array]:
    """The directions that change the scores by more than round-off, preceded by their scores."""
    columns = np.asarray(parts.model.design @ directions)
    kept = np.linalg.norm(columns, axis=0) > CANCELLED * (parts.column_norms @ np.abs(directions))
    return columns[:, kept], directions[:, kept]


def _unit_columns(parts: NormalForm, directions: Array) -> tuple[Array, Array]:
    """The scores of the directions and of the intercept, and the directions, with orthogonal scores of length one."""
    columns = np.zeros((parts.model.n_rows, 0))
    if directions.shape[1]:
        directions = _orthogonal(*visible(parts, directions))
        columns = np.asarray(parts.model.design @ directions)
    if parts.model.intercept:
        n = parts.model.n_rows
        columns = np.column_stack([columns, np.full(n, 1.0 / np.sqrt(n))])
    return columns, directions


def _value(parts: NormalForm, theta: Array, scores: Array, q: int) -> float:
    """The smooth terms on the scores, plus the quadratic terms on the weights if these move."""
    total = sum(piece.value(scores) for piece in parts.score_pieces)
    total += sum(form.value(scores) for form in parts.score_forms)
    return float(total + parts.quadratic_value(theta) if q else total)


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
    if flat.size == 1:
        step = gradient / flat if flat[0, 0] > 0 else np.zeros_like(gradient)
    else:
        solved = np.linalg.lstsq((flat + flat.T) / 2, gradient.ravel(), rcond=SINGULAR)[0]
        step = np.asarray(solved.reshape(m, k), float)
    longest = float(np.abs(step).max(initial=0.0))
    if not np.isfinite(longest):
        return np.zeros_like(gradient)
    return np.asarray(step if longest <= LONGEST else step * (LONGEST / longest))


def _add_to_each_output(hessian: Array, block: Array) -> None:
    """Add the same m x m block for each of the k outputs."""
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
