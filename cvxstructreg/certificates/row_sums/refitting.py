"""The best intercepts and weights without penalty beside X theta, by sums over rows that stay where the blocks are.

With directions D without penalty, the scores are F = X theta + X D a + 1 b'. Each block adds its part of the gradient
and of the Hessian with respect to (a, b), so that a Newton step costs a small system, and no pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cvxstructreg.certificates.directions.free_directions import (
    BALANCED,
    CANCELLED,
    LONGEST,
    MOST_IDLE,
    MOST_STEPS,
    ROUND_OFF,
    SHORTEST,
    SINGULAR,
    free_directions,
)
from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

#: For smoothed kinks, whose curvature is at most sigma: below this part of it a direction is flat, and gets this part.
IS_FLAT, OF_FLAT = 1e-9, 1e-2
#: Squared lengths of scores, relative to the largest, below which a combination of directions is round-off.
ORTHOGONAL = 1e-13


class Derivatives(NamedTuple):
    """The value of a loss, its gradient in (a, b), the absolute values that the gradient adds up, and the Hessian."""

    value: float
    gradient: Any
    sizes: Array
    hessian: Array


@dataclass(frozen=True, eq=False)
class RowPoint:
    """Scores F = X theta + X D a + 1 b' of rows that stay where they are, and a dual point phi'(F) - phi''(F) C p.

    ``a`` has the intercepts as its last row, and C are the columns X D and a column of ones. Without a step p, the dual
    point is the gradient.
    """

    rows: Any
    states: tuple[Any, Any]  # X theta and X D; the latter has no arrays if there are no directions
    a: Array
    intercept: bool
    step: Array | None = None

    def sums(self, kernel: Any, *shared: Any) -> list[Any]:
        """The results of ``kernel(loss, X theta, X D, a, p, *shared)`` for all blocks."""
        return list(self.rows.sums(kernel, self.a, self.step, *shared, states=self.states))

    def value(self) -> float:
        """The value of the loss."""
        return float(sum(self.sums(_values)))

    def pull(self) -> Array:
        """X' times the dual point, by a pass unless it is known."""
        found: Array = self.rows.pull(slopes, (self.a, self.step), self.states)
        return found

    def derivatives(self) -> Derivatives:
        """The derivatives with respect to (a, b)."""
        value, gradient, sizes, hessian = zip(*self.sums(_derivatives, self.intercept), strict=True)
        return Derivatives(float(sum(value)), np.asarray(sum(gradient), float), sum(sizes), sum(hessian))

    def moved(self, change: Array) -> RowPoint:
        """The point with other shares and intercepts; ``change`` has a row for the intercepts only if they are free."""
        return replace(self, a=self.a + self._full(change))

    def linearised(self) -> RowPoint:
        """The same scores, with a dual point in balance up to the round-off of a linear system."""
        if len(self.a) == 1 and not self.intercept:
            return self
        found = self.derivatives()
        step = self._newton_step(found, found.gradient)
        for _ in range(2):  # the later steps remove the round-off of the first
            left = sum(replace(self, step=self._full(step)).sums(_balance, self.intercept))
            step = step + self._newton_step(found, np.asarray(left, float))
        return replace(self, step=self._full(step))

    def _full(self, change: Array) -> Array:
        return change if self.intercept else np.vstack([change, np.zeros((1, change.shape[1]))])

    def _newton_step(self, at: Derivatives, gradient: Array) -> Array:
        """The solution of the Newton system, with a column of ones of length one."""
        m, k = gradient.shape
        units = np.ones((m, 1))
        if self.intercept:
            units[-1] = 1.0 / np.sqrt(self.rows.design.shape[0])
        scale = np.repeat(units, k, axis=1).ravel()
        flat = at.hessian.reshape(m * k, m * k) * np.outer(scale, scale)
        solved: Any
        if self.rows.sigma < np.inf:
            solved = _bent_or_flat((flat + flat.T) / 2.0, gradient.ravel() * scale, self.rows.sigma)
        else:
            solved = np.linalg.lstsq((flat + flat.T) / 2.0, gradient.ravel() * scale, rcond=SINGULAR)[0]
        step = (solved * scale).reshape(m, k)
        longest = float(np.abs(step).max(initial=0.0))
        if not np.isfinite(longest):
            return np.zeros_like(gradient)
        return np.asarray(step if longest <= LONGEST else step * (LONGEST / longest))


def _bent_or_flat(hessian: Array, gradient: Array, sigma: float) -> Array:
    """A Newton step for smoothed kinks, with some curvature where all rows are at the ends of their intervals."""
    values, vectors = np.linalg.eigh(hessian)
    bent = np.where(values > IS_FLAT * sigma, values, OF_FLAT * sigma)
    return np.asarray(vectors @ ((vectors.T @ gradient) / bent))


def refit(point: RowPoint) -> RowPoint:
    """Minimise the loss over the shares of the directions and the intercepts, by a damped Newton method."""
    if len(point.a) == 1 and not point.intercept:
        return point
    at, steepest, idle = point.derivatives(), np.inf, 0
    for _ in range(MOST_STEPS):
        size = float(np.abs(at.gradient).max())
        if np.all(np.abs(at.gradient) <= BALANCED * at.sizes):
            break
        idle = idle if size < 0.5 * steepest else idle + 1
        if idle > MOST_IDLE or deadline.passed():
            break
        step, length = point._newton_step(at, at.gradient), 1.0
        if not step.any():
            break
        while length > SHORTEST:
            ahead = point.moved(-length * step)
            found = ahead.derivatives()
            if found.value <= at.value + ROUND_OFF * abs(at.value):
                break
            length *= 0.5
        else:
            break
        idle = 0 if found.value < at.value - ROUND_OFF * abs(at.value) else idle
        steepest = min(steepest, size)
        point, at = ahead, found
    return point


def start_at(parts: NormalForm, theta: Array, b: Array, rows: Any, D: Array, state: Any) -> RowPoint:
    """The point (theta, b), with no share of the directions."""
    a = np.vstack([np.zeros((D.shape[1], parts.n_outputs)), b[None, :]])
    return RowPoint(rows, (rows.state(theta), rows.nothing if state is None else state), a, parts.model.intercept)


def directions_of(parts: NormalForm, theta: Array, rows: Any) -> tuple[Array, Any] | None:
    """The visible directions without penalty with orthogonal scores of length one, and these scores; kept.

    None if there are too many directions. The scores stay where the blocks are.
    """
    given = free_directions(parts, theta)
    if given is None or given.shape[1] == 0:
        return None if given is None else (given, None)
    known: dict[Any, Any] = rows.facts
    key = "directions", given.tobytes()
    if key not in known:
        D = _visible(parts, given, rows)
        known[key] = D, (rows.state(D) if D.shape[1] else None)
    found: tuple[Array, Any] = known[key]
    return found


def _visible(parts: NormalForm, given: Array, rows: Any) -> Array:
    grams = rows.sums(_gram, np.zeros(given.shape[1]), states=(rows.state(given),))
    gram = sum(gram for gram, _ in grams)
    seen = np.sqrt(np.diag(gram)) > CANCELLED * (parts.column_norms @ np.abs(given))
    return orthogonal(gram[np.ix_(seen, seen)], given[:, seen])


def are_clear(parts: NormalForm, given: Array, rows: Any) -> bool:
    """Whether products of scores tell all visible directions apart, from each other and from the intercept; kept.

    Products have half the digits of the scores. A combination that they lose may let weights go far.
    """
    known: dict[Any, Any] = rows.facts
    key = "clear", given.tobytes()
    if key not in known:
        gram, centred, seen = _products(parts, given, rows)
        norms = np.sqrt(np.diag(gram)[seen])
        values = np.linalg.eigvalsh(centred[np.ix_(seen, seen)] / np.outer(norms, norms))
        known[key] = bool(np.all(values > ORTHOGONAL * len(values)))
    return bool(known[key])


def _products(parts: NormalForm, given: Array, rows: Any) -> tuple[Array, Array, Any]:
    """The products of the scores of directions, also without their means beside an intercept, and which are visible."""
    state = rows.state(given)
    found = rows.sums(_gram, np.zeros(given.shape[1]), states=(state,))
    gram, sums = (sum(each) for each in zip(*found, strict=True))
    seen = np.sqrt(np.diag(gram)) > CANCELLED * (parts.column_norms @ np.abs(given))
    if not parts.model.intercept:
        return gram, gram, seen
    return gram, sum(g for g, _ in rows.sums(_gram, sums / rows.design.shape[0], states=(state,))), seen


def reach_along(parts: NormalForm, given: Array, rows: Any) -> Array:
    """How far each weight may move along the directions while the scores change by one, by sums over rows."""
    _, gram, seen = _products(parts, given, rows)
    return np.asarray(np.linalg.norm(orthogonal(gram[np.ix_(seen, seen)], given[:, seen]), axis=1))


def orthogonal(gram: Array, directions: Array) -> Array:
    """Combinations of directions whose scores are orthogonal and of length one, from the products of their scores."""
    if not directions.shape[1]:
        return directions
    norms = np.sqrt(np.diag(gram))
    values, vectors = np.linalg.eigh(gram / np.outer(norms, norms))
    seen = values > ORTHOGONAL * values[-1]
    return np.asarray((directions / norms) @ (vectors[:, seen] / np.sqrt(values[seen])))


# ------------------------------------------------------------------------------------------- what a block computes


def scores_at(images: Array, columns: Any, a: Array) -> Array:
    """X theta + X D a + 1 b'."""
    z = images + a[-1]
    return z if columns is None else z + columns @ a[:-1]


def slopes(loss: Loss, images: Array, columns: Any, a: Array, step: Any) -> Array:
    """The dual point of the rows."""
    z = scores_at(images, columns, a)
    u = loss.grad(z)
    return u if step is None else u - loss.hessp(z, scores_at(np.zeros_like(z), columns, step))


def _values(loss: Loss, images: Array, columns: Any, a: Array, step: Any) -> float:
    return loss.value(scores_at(images, columns, a))


def _derivatives(loss: Loss, images: Array, columns: Any, a: Array, step: Any, intercept: bool) -> Derivatives:
    z = scores_at(images, columns, a)
    g, C = loss.grad(z), _all_columns(z, columns, intercept)
    return Derivatives(loss.value(z), _summed(C, g), np.abs(C).T @ np.abs(g), _hessian(loss, C, z))


def _balance(loss: Loss, images: Array, columns: Any, a: Array, step: Any, intercept: bool) -> Any:
    """C' times the dual point."""
    u = slopes(loss, images, columns, a, step)
    return _summed(_all_columns(u, columns, intercept), u)


def _gram(loss: Loss, columns: Array, means: Array) -> tuple[Array, Array]:
    """The products of columns without their means, and the sums of the columns."""
    centred = columns - means
    return centred.T @ centred, columns.sum(axis=0)


def _summed(C: Array, u: Array) -> Any:
    """C'u, with the sum of long numbers for a column of ones."""
    if C.shape[1] == 1 and np.all(C == 1.0):
        return u.sum(axis=0, keepdims=True, dtype=np.longdouble)
    return C.T @ u


def _all_columns(z: Array, columns: Any, intercept: bool) -> Array:
    ones = np.ones((len(z), 1 if intercept else 0))
    return ones if columns is None else np.hstack([columns, ones])


def _hessian(loss: Loss, C: Array, z: Array) -> Array:
    """The Hessian of a -> loss(z + C a), as m x k x m x k."""
    m, k = C.shape[1], z.shape[1]
    found = np.zeros((m, k, m, k))
    for i in range(m):
        for j in range(k):
            p = np.zeros_like(z)
            p[:, j] = C[:, i]
            found[:, :, i, j] = C.T @ loss.hessp(z, p)
    return found
