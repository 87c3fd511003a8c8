"""Directions along which losses fall forever: a check of a direction, and the linear program that finds one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

#: The smallest gain that counts, if all coordinates of the direction are at most one, and the largest loss, relative to
#: the gain, that is round-off.
LEAST_GAIN, ROUND_OFF = 1e-6, 1e-9
#: The smallest gain of a direction that counts, and the largest loss that is round-off, relative to the sizes of all
#: that its scores add up.
CLEAR, CANCELLED = 1e-10, 1e-12
#: A loss copies the columns for each pair of outputs: so many entries are made at once.
AT_ONCE = 10_000_000
#: Seconds for the linear program if the time limit has nearly passed.
GRACE = 0.3


def gains_of(parts: NormalForm, columns: Array, rows: NDArray[np.int64] | None = None) -> sp.csr_array:
    """G, the gains of all losses, for directions whose scores are combinations of the columns; a few at a time.

    With ``rows``, the columns have the scores of these rows only, and all other scores are zero.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> X = np.array([[-2.0], [3.0]])
    >>> gains_of(csr.Problem(csr.Linear(X), csr.Logistic([0, 1])).normal_form, X).toarray().tolist()
    [[2.0], [3.0]]
    """
    n, k = parts.model.n_rows, parts.n_outputs
    width = max(1, AT_ONCE // (n * k * k))
    found = []
    for begin in range(0, columns.shape[1], width):
        some = columns[:, begin : begin + width]
        if rows is not None:
            some, inside = np.zeros((n, some.shape[1])), some
            some[rows] = inside
        each = [piece.atom.gains(piece.forward(some)) for piece in parts.score_pieces if isinstance(piece.atom, Loss)]
        found.append(sp.vstack([sp.csr_array(gains) for gains in each], format="csr"))
    return sp.csr_array(sp.hstack(found, format="csr"))


def falls_along(parts: NormalForm, theta: Array, b: Array) -> bool:
    """Whether the objective falls forever along (theta, b): no gain is negative, and no term on the weights grows.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[-2.0], [3.0]]), csr.Logistic([0, 1]))
    >>> falls_along(problem.normal_form, np.ones((1, 1)), np.zeros(1))
    True
    >>> falls_along(problem.normal_form, np.ones((1, 1)), np.full(1, 2.5))
    False
    """
    if not (np.isfinite(theta).all() and np.isfinite(b).all()) or grows(parts, theta):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        scores = parts.model.scores(theta, b)
        size = float((parts.column_norms @ np.abs(theta) + np.abs(b)).max())
    if not np.isfinite(scores).all() or not math.isfinite(size):
        return False
    gain = np.sum([_gains_of_output(parts, scores, j) for j in range(parts.n_outputs)], axis=0)
    noise = min(ROUND_OFF * float(gain.max(initial=0.0)), CANCELLED * size)
    return bool(gain.max(initial=0.0) > CLEAR * size and gain.min() >= -noise)


def _gains_of_output(parts: NormalForm, scores: Array, j: int) -> Array:
    """The gains of the scores of one output."""
    pairs = [(piece.atom, piece.forward(scores[:, [j]])) for piece in parts.score_pieces]
    each = [to_dense(loss.gains(column))[:, j] for loss, column in pairs if isinstance(loss, Loss)]
    return np.concatenate(each)


def grows(parts: NormalForm, theta: Array) -> bool:
    """Whether some term on the weights grows along a direction, or a bound stops it."""
    part = parts.separable
    if part is not None:
        held = (part.weights > 0) & (theta != 0)
        stopped = (np.isfinite(part.lower) & (theta < 0)) | (np.isfinite(part.upper) & (theta > 0))
        if np.any(held | stopped):
            return True
    by_form = any(scaled.form.sees(theta) for scaled in parts.weight_forms)
    return by_form or any(piece.sees(theta) for piece in parts.weight_pieces)


def most_gain(
    gains: sp.csr_array, bounds: Sequence[sp.csr_array] = (), sides: Sequence[tuple[float, float]] = ((-1.0, 1.0),)
) -> Array | None:
    """The x in a box with the largest sum of G x, where G x >= 0 and r'x <= 0 for the rows of ``bounds``; None if zero.

    Examples
    --------
    >>> most_gain(sp.csr_array([[1.0, 0.0], [1.0, 2.0]])).tolist()
    [1.0, 1.0]
    >>> most_gain(sp.csr_array([[1.0], [-1.0]])) is None
    True
    """
    from scipy.optimize import linprog  # rarely needed, and slow to import

    constraints = sp.vstack([-gains, *bounds], format="csr")
    cost = -np.asarray(gains.sum(axis=0)).ravel()
    left = deadline.remaining()
    limit = {} if left == math.inf else {"time_limit": max(left, GRACE)}
    box = list(sides) if len(sides) > 1 else sides[0]
    found = linprog(cost, A_ub=constraints, b_ub=np.zeros(constraints.shape[0]), bounds=box, options=limit)
    if found.x is None:
        return None
    gain = gains @ found.x
    if gain.max(initial=0.0) < LEAST_GAIN or gain.min() < -ROUND_OFF * gain.max():
        return None
    return np.asarray(found.x)
