"""Problems without a minimiser: directions along which the objective decreases forever.

The logistic and the multinomial loss approach their infimum without reaching it. A direction of the weights separates
the classes if, on every row, the score of the true class loses against no other class, and gains on some row. If no
penalty grows along such a direction, the objective has an infimum but no minimiser, and the weights diverge.

A linear program over the directions without penalty finds such a direction. On large data the last point is tried
first, since it diverges along one, and single features. If there are more directions than rows, the program is one for
the scores (``fewer_rows``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxstructreg.certificates.directions.fewer_rows import by_rows
from cvxstructreg.certificates.directions.free_directions import unpenalised, visible
from cvxstructreg.certificates.directions.gains import falls_along, gains_of, grows, most_gain
from cvxstructreg.certificates.row_sums.kept_dual import kept_rows, largest_kept
from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT, to_dense
from cvxstructreg.numerics.arrays import Array

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: The linear program is always solved up to SMALL entries, and beyond only if some score is at least LARGE_SCORE.
SMALL, LARGE_SCORE = 200_000, 8.0
#: The most entries of a linear program for the scores, and of the gains of single features.
MOST_ENTRIES, MOST_SINGLE = 1_000_000, 5_000_000
#: The number of features that a message names.
SHOWN = 3


@dataclass(frozen=True, eq=False)
class Escape:
    """A direction (theta, b) along which the objective decreases forever."""

    theta: Array
    b: Array

    def in_words(self, names: tuple[str, ...] | None) -> str:
        """The features with the largest weights of the direction, by name or number."""
        sizes = np.abs(self.theta).max(axis=1)
        largest = [int(j) for j in np.argsort(-sizes, kind="stable")[:SHOWN] if sizes[j] > 0]
        shown = ", ".join(names[j] if names else str(j) for j in largest)
        more = ", ..." if np.count_nonzero(sizes) > len(largest) else ""
        return f"features {shown}{more}" if shown else "the intercept"


def escape(problem: Problem, theta: Array, b: Array) -> Escape | None:
    """A direction along which the objective decreases forever from (theta, b); None if none was found.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [3.0]]), [0, 0, 1, 1]
    >>> escape(csr.Problem(csr.Linear(X), csr.Logistic(y)), np.zeros((1, 1)), np.zeros(1)).in_words(("size",))
    'features size'
    >>> escape(csr.Problem(csr.Linear(X), csr.Logistic(y) + csr.L1()), np.zeros((1, 1)), np.zeros(1)) is None
    True
    """
    parts = problem.normal_form
    losses = [piece.atom for piece in parts.score_pieces]
    falls = all(isinstance(loss, Loss) and not loss.attains_infimum for loss in losses)
    if not falls or parts.score_forms or parts.function_forms or parts.function_norm is not None:
        return None
    free = _unpenalised(parts)
    if free is None or free.size == 0 or not free.any():
        return _by_intercept(parts)
    if free.ndim == 1:
        return _by_intercept(parts) or _among_many(parts, free, theta, b)
    if parts.model.n_rows * free.shape[1] > SMALL:
        found = _last_point(parts, free @ (free.T @ theta), b)
        found = found or _one_feature(parts, free)
        if found is not None or _largest_score(parts, theta, b) < LARGE_SCORE:
            return found
    found = _separating(parts, free)
    if found is None or parts.model.row_blocks is not None:  # scores stay where the blocks are
        return None if found is None or grows(parts, found.theta) else found
    return found if falls_along(parts, found.theta, found.b) else None


def _among_many(parts: NormalForm, free: NDArray[np.bool_], theta: Array, b: Array) -> Escape | None:
    """A direction of more free weights than a linear program can have."""
    found = _last_point(parts, np.where(free[:, None], theta, 0.0), b)
    if found is not None or parts.model.row_blocks is not None:
        return found
    part = parts.separable
    if part is not None and part.bounded:  # the smallest weights with some scores know nothing of bounds
        bounded = np.isfinite(part.lower) | np.isfinite(part.upper)
        free = free & ~np.broadcast_to(bounded, parts.shape).any(axis=1)
    is_far = _largest_score(parts, theta, b) >= LARGE_SCORE
    direction = by_rows(parts, free, MOST_ENTRIES if is_far else SMALL)
    return Escape(*direction) if direction is not None and falls_along(parts, *direction) else None


def _one_feature(parts: NormalForm, free: Array) -> Escape | None:
    """A direction of the basis along which the loss falls by itself, such as a rare feature of one class only."""
    k = parts.n_outputs
    if parts.model.row_blocks is not None or parts.model.n_rows * free.shape[1] * k**2 > MOST_SINGLE:
        return None
    columns, free = visible(parts, free)
    if not columns.shape[1]:
        return None
    gains = gains_of(parts, columns)
    lowest, highest = to_dense(gains.min(axis=0)).ravel(), to_dense(gains.max(axis=0)).ravel()
    signs = np.where((lowest >= 0) & (highest > 0), 1.0, np.where((highest <= 0) & (lowest < 0), -1.0, 0.0))
    for number in np.flatnonzero(signs):
        theta = np.zeros(parts.shape)
        theta[:, number % k] = signs[number] * free[:, number // k]
        if falls_along(parts, theta, np.zeros(k)):
            return Escape(theta, np.zeros(k))
    return None


def _last_point(parts: NormalForm, theta: Array, b: Array) -> Escape | None:
    """The part of the last point in the directions without penalty, if the loss falls along it."""
    if parts.model.row_blocks is not None or not theta.any():
        return None
    return Escape(theta, b) if falls_along(parts, theta, b) else None


def _largest_score(parts: NormalForm, theta: Array, b: Array) -> float:
    """The largest absolute score; by a sum over rows if the scores stay where the blocks are."""
    rows = kept_rows(parts)
    return float(np.abs(parts.model.scores(theta, b)).max()) if rows is None else largest_kept(rows, theta, b)


def _by_intercept(parts: NormalForm) -> Escape | None:
    """The direction of the intercept, if all rows are of one class; None in all other problems."""
    if not parts.model.intercept or parts.n_outputs > 1:
        return None
    if _is_two_sided(parts):
        return None
    ones = np.ones((parts.model.n_rows, 1))
    pairs = [(piece.atom, piece.forward(ones)) for piece in parts.score_pieces]
    gains = np.concatenate([to_dense(loss.gains(rows)).ravel() for loss, rows in pairs if isinstance(loss, Loss)])
    if not gains.any() or (gains.min() < 0 < gains.max()):
        return None
    return Escape(np.zeros(parts.shape), np.array([np.sign(gains.sum())]))


def _is_two_sided(parts: NormalForm) -> bool:
    """Whether some loss grows both with the intercept and against it."""
    return any(
        isinstance(piece.atom, Loss) and piece.K is None and piece.atom.grows_both_ways for piece in parts.score_pieces
    )


def _unpenalised(parts: NormalForm) -> Any:
    """A basis (d x q) of the directions that no quadratic term, L1 term or piece penalises; None if there are none.

    If the basis would be large, whether each weight is free by itself (d).
    """
    if parts.all_penalised:
        return None
    d = parts.model.n_weights
    held = parts.ridge > 0
    if parts.separable is not None:
        held = held | np.broadcast_to(parts.separable.weights > 0, parts.shape).all(axis=1)
    if held.all():
        return None
    if d <= DENSE_LIMIT and (parts.weight_forms or parts.piece_diagonal is None):
        return unpenalised(parts, held)
    alone = ~(held | (parts.coverage_diagonal > 0))
    free = np.flatnonzero(alone)
    if free.size > DENSE_LIMIT:
        return np.asarray(alone)
    basis = np.zeros((d, free.size))
    basis[free, np.arange(free.size)] = 1.0
    return basis


def _separating(parts: NormalForm, free: Array) -> Escape | None:
    """The direction with the largest total gain whose coordinates are at most one, by a linear program."""
    k = parts.n_outputs
    columns, free = visible(parts, free)
    q = free.shape[1]
    if q == 0:
        return None
    norms = np.abs(columns).max(axis=0)
    columns, free = columns / norms, free / norms
    if parts.model.intercept:
        columns = np.column_stack([columns, np.ones(len(columns))])
    gains = gains_of(parts, columns)
    bounds, sides = _inside_bounds(parts, free, columns.shape[1] * k)
    found = most_gain(gains, bounds, sides)
    if found is None:
        return None
    direction = found.reshape(columns.shape[1], k)
    return Escape(free @ direction[:q], direction[q] if parts.model.intercept else np.zeros(k))


def _inside_bounds(parts: NormalForm, free: Array, size: int) -> tuple[list[sp.csr_array], list[tuple[float, float]]]:
    """Constraints r'x <= 0 that keep the direction inside the bounds on the weights, and the box of the coordinates."""
    part, k = parts.separable, parts.n_outputs
    sides = [(-1.0, 1.0)] * size
    if part is None or not part.bounded:
        return [], sides
    spread = sp.csr_array(np.kron(free, np.eye(k)))
    spread = sp.hstack([spread, sp.csr_array((spread.shape[0], size - spread.shape[1]))], format="csr")
    lower = np.flatnonzero(np.isfinite(np.broadcast_to(part.lower, parts.shape)))
    upper = np.flatnonzero(np.isfinite(np.broadcast_to(part.upper, parts.shape)))
    return [-spread[lower], spread[upper]], sides
