"""Dual points of the losses, moved so that they match given dual points of the terms on the weights.

A function such as ``sum_j max(w_j, 0)`` has a conjugate with a bounded domain that has zero on its border. Then no
multiple of the gradient of the losses may be in the domain, and scaling cannot help. If the data have as many rows as
columns or more, the dual point of the losses can be moved instead, by the shortest d with

    X'd = excess,     1'd = 0.

Near the optimum d is small, and its effect on the bound is of second order. The same helps quadratic terms without a
ridge, such as a Laplacian, where an excess is outside of what their dual points may be. X may be of any size if each
row has at most one entry, as the identity of denoising has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from cvxstructreg.certificates.score_dual import ScoreDual
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Model
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT, squared_columns, to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import REACH

#: Multiplications that the factorisation may take.
MOST_WORK = 5e9
#: Steps of refinement of the least squares.
REFINE = 3
#: Sums of a move above this part of the sum of absolute values of the dual points are not round-off.
BALANCED = 1e-10

Solve = Callable[[Array, Array], Array]


def shifted(parts: NormalForm, start: ScoreDual, excess: Array) -> ScoreDual | None:
    """The dual points of the scores with X'(total) larger by the excess; None if there are none."""
    number = next((i for i, p in enumerate(parts.score_pieces) if isinstance(p.atom, Loss) and p.K is None), None)
    solve = _least_squares(parts.model)
    if number is None or solve is None or parts.score_forms:
        return None
    X, k, ones = parts.model.design, excess.shape[1], parts.model.intercept
    move = np.zeros_like(start.total)
    for _ in range(REFINE):
        move = move + solve(excess - X.T @ move, -move.sum(axis=0, keepdims=True))
    points = [u + move if i == number else u for i, u in enumerate(start.points)]
    if not parts.score_pieces[number].conj(points[number]) < np.inf:
        return None
    sums = np.abs(move.sum(axis=0)) if ones else np.zeros(k)
    if np.any(sums > BALANCED * (np.abs(start.total) + np.abs(move)).sum(axis=0)):
        return None
    imbalance = start.imbalance + REACH * float(sums @ np.abs(start.scores).max(axis=0, initial=0.0))
    return replace(start, points=tuple(points), total=start.total + move, imbalance=imbalance)


def stepped(parts: NormalForm, theta: Array, left: Array) -> list[Array] | None:
    """The dual point of a proximal gradient step, for a single piece of the weights themselves; else None."""
    pieces = parts.weight_pieces
    if len(pieces) != 1 or pieces[0].K is not None or parts.separable is not None:
        return None
    tau = 2.0 * float(parts.ridge.min()) or float(np.linalg.norm(left)) / (float(np.linalg.norm(theta)) or 1.0)
    if tau == 0.0:  # left is zero, which is the dual point without a step
        return None
    return [pieces[0].into_domain(pieces[0].prox_conj(left + tau * theta, tau)[0])]


def _least_squares(model: Model) -> Solve | None:
    """The shortest d with X'd = x and 1'd = r as a function of x and r, kept with the model; None if not available."""
    known = model.__dict__
    if "_shift" not in known:
        known["_shift"] = _by_rows(model) or _by_factor(model)
    found: Solve | None = known["_shift"]
    return found


def _by_rows(model: Model) -> Solve | None:
    """For X with at most one entry in each row and entries in all columns; the sums of d are left as they are."""
    X = model.design
    if model.row_blocks is not None or model.n_rows < model.n_weights:
        return None
    entries = np.diff(sp.csr_array(X).indptr) if sp.issparse(X) else np.count_nonzero(X, axis=1)
    squares = squared_columns(X)[:, None]
    if np.any(entries > 1) or not squares.all():
        return None
    return partial(_move_rows, X, squares)


def _move_rows(X: Any, squares: Array, x: Array, r: Array) -> Array:
    return np.asarray(X @ (x / squares))


def _by_factor(model: Model) -> Solve | None:
    """By the Cholesky factor of A'A with A = [X, 1]; None if too large or singular."""
    n, d, X, ones = model.n_rows, model.n_weights, model.design, model.intercept
    if d + ones > n or d > DENSE_LIMIT or float(n) * d * d > MOST_WORK:
        return None
    gram = to_dense(X.T @ X)
    if ones:
        sums = np.asarray(X.sum(axis=0), dtype=float).reshape(1, d)
        gram = np.block([[gram, sums.T], [sums, np.full((1, 1), float(n))]])
    try:
        factor = scipy.linalg.cho_factor(gram, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    return partial(_move_by_factor, X, ones, factor)


def _move_by_factor(X: Any, ones: bool, factor: Any, x: Array, r: Array) -> Array:
    right = np.vstack([x, r]) if ones else x
    solved = np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False)).reshape(len(right), -1)
    return np.asarray(X @ solved[: X.shape[1]]) + (solved[-1] if ones else 0.0)
