"""The violation of the optimality conditions, for problems without a bound on the objective.

The measure is the length of one proximal gradient step. With g the gradient of the smooth terms and R the sum of the
other terms,

    residual = ||w - prox_tR(w - t g)|| / max(||w||, t ||g||),    t ||g|| about ||w||.

The residual is zero exactly at an optimum, and does not depend on the units of the objective or of the weights. If all
terms of the weights are smooth, it is the gradient relative to the summands that cancel in it. The dual point of a
single penalty is thus minus the gradient. The prox of a sum of penalties is computed by dual steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cvxstructreg.certificates.weight_dual import Dual
from cvxstructreg.core.default_prox import prox_with_error
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.momentum import Momentum
from cvxstructreg.runtime import deadline

#: The largest number of dual steps for the prox of a sum, and the relative change that ends them.
MOST_STEPS, SETTLED = 2000, 1e-13
#: The step size for a first dual point, relative to the ratio of dual to primal scale: nearly a subgradient.
FIRST_STEP = 1e4


def kkt_residual(parts: NormalForm, theta: Array, b: Array, dual: Dual) -> float:
    """The relative violation of the optimality conditions at (theta, b), using known dual points."""
    slope = slope_at(parts, theta, b, dual)
    worst = slope.violation
    if parts.model.intercept:
        sums = float(np.abs(slope.total.sum(axis=0)).max())
        worst = max(worst, _ratio(sums, float(np.abs(slope.total).sum())))
    if not parts.weight_pieces and parts.separable is None:
        size = _summands(parts, theta, slope.total, slope.gradient - slope.pull)
        return max(worst, _ratio(float(np.linalg.norm(slope.gradient)), size))
    return max(worst, _step_residual(parts, theta, slope.gradient, dual))


class Slope(NamedTuple):
    """The derivatives of all terms except separable terms and pieces on the weights."""

    total: Array  # by the scores, of the terms on the scores
    pull: Array  # the same by the weights
    gradient: Array  # by the weights, with the quadratic terms
    violation: float  # how far the dual points of terms on the scores are from being subgradients


def slope_at(parts: NormalForm, theta: Array, b: Array, dual: Dual) -> Slope:
    """The slope at (theta, b), using known dual points for terms on the scores that have no gradient."""
    scores = parts.model.scores(theta, b)
    total = sum((scaled.grad(scores) for scaled in parts.score_forms), np.zeros_like(scores))
    worst = 0.0
    for piece in parts.score_pieces:
        u, violation = _score_point(piece, piece.forward(scores), dual.get(piece.number))
        worst = max(worst, violation)
        total = total + piece.adjoint(u)
    pull = parts.model.adjoint(total)
    gradient = pull + parts.quadratic_grad(theta)
    if parts.function_forms:
        gradient = gradient + parts.model.adjoint(parts.function_grad(scores - b))
    if parts.function_norm is not None:
        gradient = gradient + parts.function_norm.grad(scores - b)
    return Slope(total, pull, gradient, worst)


def gradient_mapping(parts: NormalForm, theta: Array, gradient: Array, dual: Dual) -> Array:
    """(w - prox_tR(w - t g)) / t, which is zero exactly at an optimum; t ||g|| is about ||w||."""
    step = step_size(theta, gradient)
    return np.asarray(theta - _prox_of_sum(parts, theta - step * gradient, step, dual)[0]) / step


def step_size(theta: Array, gradient: Array) -> float:
    """The t for which t ||g|| is ||w||; 1 if either is zero."""
    steepness, size = float(np.linalg.norm(gradient)), float(np.linalg.norm(theta))
    return size / steepness if size > 0.0 and steepness > 0.0 else 1.0


def _summands(parts: NormalForm, theta: Array, total: Array, rest: Array) -> float:
    """The size of the numbers that cancel in the gradient of smooth terms: |A|'|u|, and the quadratic terms."""
    size = float(np.linalg.norm(abs(parts.model.design).T @ np.abs(total))) + float(np.linalg.norm(rest))
    return size or float(np.linalg.norm(theta))


def _score_point(piece: Piece, z: Array, given: Array | None) -> tuple[Array, float]:
    """A dual point of a term on the scores, and its distance from being a subgradient at z."""
    if piece.is_smooth:
        return piece.grad(z), 0.0
    size = float(np.linalg.norm(z)) or 1.0
    if given is None:
        tau = FIRST_STEP * piece.scale / size
        given = piece.prox_conj(tau * z, tau)[0]
    tau = (float(np.linalg.norm(given)) or piece.scale) / size
    u, x = piece.prox_conj(given + tau * z, tau)
    return u, float(np.linalg.norm(z - x)) / size


def _step_residual(parts: NormalForm, theta: Array, gradient: Array, dual: Dual) -> float:
    """The length of a proximal gradient step, relative to the weights or to the gradient step."""
    steepness, size, step = float(np.linalg.norm(gradient)), float(np.linalg.norm(theta)), step_size(theta, gradient)
    moved, error = _prox_of_sum(parts, theta - step * gradient, step, dual)
    whole = max(size, step * steepness)
    if whole == 0.0:  # zero weights and zero gradient: only the dual points, which cancel, have a size
        whole = step * max((float(np.linalg.norm(q)) for q in dual.values()), default=0.0)
    return _ratio(float(np.linalg.norm(theta - moved)), whole) + error


def _prox_of_sum(parts: NormalForm, v: Array, t: float, dual: Dual) -> tuple[Array, float]:
    """argmin_x  t R(x) + 1/2 ||x - v||^2, where R is the sum of all terms on the weights that are not quadratic.

    The second number is the relative error of a default prox, which comes from a cone solver.
    """
    pieces, part = parts.weight_pieces, parts.separable

    def primal(points: list[Array]) -> Array:
        x = v - t * sum((p.adjoint(q) for p, q in zip(pieces, points, strict=True)), np.zeros_like(v))
        return x if part is None else part.prox(x, t)

    if not pieces:
        return primal([]), 0.0
    if len(pieces) == 1 and pieces[0].K is None and part is None:
        x, error = prox_with_error(pieces[0].atom, v, t * pieces[0].scale)
        return x, 0.0 if pieces[0].atom.can("prox") else error
    points = [dual.get(p.number, np.zeros_like(p.forward(v))) for p in pieces]
    if parts.piece_norm <= np.sqrt(np.finfo(float).tiny):  # maps without entries, such as a graph without edges
        return primal(points), 0.0
    trial, momentum, step = points, Momentum(points), 1.0 / (t * parts.piece_norm)
    for _ in range(MOST_STEPS):
        if deadline.passed():
            break
        x = primal(trial)
        moved = [p.prox_conj(q + step * p.forward(x), step)[0] for p, q in zip(pieces, trial, strict=True)]
        change = sum(float(np.sum((m - q) ** 2)) for m, q in zip(moved, trial, strict=True))
        trial = momentum.ahead(trial, moved)
        if change <= SETTLED**2 * sum(float(np.sum(m**2)) for m in moved):
            break
    return primal(momentum.points), 0.0


def _ratio(part: float, whole: float) -> float:
    """part / whole; 0 if both are zero, and infinite if only the whole is."""
    if part == 0.0:
        return 0.0
    return part / whole if whole > 0.0 else np.inf
