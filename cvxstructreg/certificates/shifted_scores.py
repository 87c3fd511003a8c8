"""Dual points of the losses, moved so that they match given dual points of the terms on the weights.

A function such as ``sum_j max(w_j, 0)`` has a conjugate with a bounded domain that has zero on its border. Then no
multiple of the gradient of the losses may be in the domain, and scaling cannot help. If the data have as many rows as
columns or more, the dual point of the losses can be moved instead, by the shortest d with

    X'd = excess,     1'd = 0.

Near the optimum d is small, and its effect on the bound is of second order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg

from cvxstructreg.certificates.score_dual import ScoreDual
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Model
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT, to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import REACH

#: Multiplications that the factorisation may take.
MOST_WORK = 5e9
#: Steps of refinement of the least squares.
REFINE = 3


def shifted(parts: NormalForm, start: ScoreDual, excess: Array) -> ScoreDual | None:
    """The dual points of the scores with X'(total) larger by the excess; None if there are none."""
    number = next((i for i, p in enumerate(parts.score_pieces) if isinstance(p.atom, Loss) and p.K is None), None)
    factor = _factor(parts.model)
    if number is None or factor is None or parts.score_forms:
        return None
    X, k = parts.model.design, excess.shape[1]
    ones = parts.model.intercept
    move = np.zeros_like(start.total)
    for _ in range(REFINE):
        missing = excess - X.T @ move
        right = np.vstack([missing, -move.sum(axis=0, keepdims=True)]) if ones else missing
        solved = np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False)).reshape(-1, k)
        move = move + np.asarray(X @ solved[: X.shape[1]]) + (solved[-1] if ones else 0.0)
    points = [u + move if i == number else u for i, u in enumerate(start.points)]
    if not parts.score_pieces[number].conj(points[number]) < np.inf:
        return None
    sums = np.abs(move.sum(axis=0)) if ones else np.zeros(k)
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


def _factor(model: Model) -> Any:
    """The Cholesky factor of A'A with A = [X, 1], kept with the model; None if too large or singular."""
    known = model.__dict__
    if "_shift_factor" not in known:
        n, d = model.n_rows, model.n_weights
        found = None
        if d + model.intercept <= n and d <= DENSE_LIMIT and float(n) * d * d <= MOST_WORK:
            gram = to_dense(model.design.T @ model.design)
            if model.intercept:
                sums = np.asarray(model.design.sum(axis=0), dtype=float).reshape(1, d)
                gram = np.block([[gram, sums.T], [sums, np.full((1, 1), float(n))]])
            try:
                found = scipy.linalg.cho_factor(gram, lower=True, check_finite=False)
            except scipy.linalg.LinAlgError:
                found = None
        known["_shift_factor"] = found
    return known["_shift_factor"]
