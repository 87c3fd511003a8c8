"""Feasible dual points, and the lower bounds of the optimum that they prove.

A problem is ``sum_t f_t(K_t x)`` over x = (theta, b), with the strengths inside the f_t. Any u_t with
``sum_t K_t'u_t = 0`` prove that the optimum is at least ``-sum_t f_t*(u_t)`` (Fenchel). The u_t of the scores come from
the point itself (gradients) or from a solver; the intercept asks for column sums of zero; what is then left on the
weights is taken by absolute values and bounds, by strongly convex quadratic terms, by group norms, or, where none of
these can take it, made small enough by scaling all u_t down (:mod:`cvxstructreg.core.weight_dual`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxstructreg.core.atom import Array
from cvxstructreg.core.free_directions import free_directions, refit
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.normal_form import NormalForm
from cvxstructreg.core.weight_dual import Dual, Known, Quadratic, WeightDual, dual_point
from cvxstructreg.core.weight_dual import ScoreDual as ScoreDual

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem


def lower_bound(
    parts: NormalForm,
    theta: Array,
    b: Array,
    scores: Array,
    dual: Dual,
    sweeps: int,
    known: Known,
    quadratic: Quadratic,
) -> float:
    """A lower bound of the optimum, -inf if no feasible dual point was found.

    A dual point that was given is tried first. Smooth terms have one of their own, the gradient at the point (theta,
    b). ``known`` are the objective there and a relative gap that is enough, a tenth of which is not worth a search;
    ``quadratic`` the quadratic terms of the weights there, with their gradient.
    """
    directions = _free(parts, theta)
    if directions is None:
        return -np.inf
    given = not directions.shape[1] and all(piece.number in dual for piece in parts.score_pieces)
    bound = -np.inf
    if given or not (parts.scores_are_smooth or directions.shape[1]):
        bound = _bound(parts, _score_dual(parts, theta, scores, dual), dual, sweeps, known, quadratic)
    if parts.scores_are_smooth and not known[0] - bound <= known[1] * abs(known[0]):
        moved, _, its_scores = refit(parts, theta, b, scores, directions)
        start = _score_dual(parts, moved, its_scores, {})
        its_quadratic = quadratic if moved is theta else parts.quadratic_value_and_grad(moved)
        bound = max(bound, _bound(parts, start, dual, sweeps, known, its_quadratic))
    return bound


def _free(parts: NormalForm, theta: Array) -> Array | None:
    """The directions without penalty: none where all features have an absolute value."""
    if parts.separable is not None and np.all(parts.separable.weights > 0):
        return np.zeros((len(theta), 0))
    return free_directions(parts, theta)


def _bound(
    parts: NormalForm, start: ScoreDual | None, dual: Dual, sweeps: int, known: Known, quadratic: Quadratic
) -> float:
    """What is proved by a dual point of the scores, with the best dual point of the weights that goes with it."""
    if start is None:
        return -np.inf
    if parts.rkhs:
        return _function_bound(parts, start)
    return WeightDual(parts, start, dual, sweeps, known, quadratic).best_bound()


def _function_bound(parts: NormalForm, start: ScoreDual) -> float:
    """The dual objective where the only term of the weights is the function norm: its conjugate is u'gram u / 4."""
    total, cost = start.total, start.cost(parts)
    if parts.function_forms:
        h = parts.model.scores(start.theta, np.zeros(parts.n_outputs))
        total = total + parts.function_grad(h)  # taken at the gradient, where the conjugate is the value
        cost += sum(scaled.value(h) for scaled in parts.function_forms)
    return -cost - float(np.sum(total * parts.model.adjoint(total))) / (4.0 * parts.rkhs)


def _score_dual(parts: NormalForm, theta: Array, scores: Array, dual: Dual) -> ScoreDual | None:
    """Dual points of the score terms in the domains of their conjugates, with the sums the intercept asks for."""
    points = [dual_point(piece, scores, dual.get(piece.number)) for piece in parts.score_pieces]
    if _ignore_common_shifts(points):
        # losses that only see differences between classes cannot balance what is common to all classes
        scores = scores - scores.mean(axis=1, keepdims=True)
    # far from the optimum the other terms may pull harder than the losses can balance: then take less of them
    for share in (1.0, 0.5, 0.1, 0.0) if parts.model.intercept else (1.0,):
        taken = [u if isinstance(p.atom, Loss) else share * u for p, u in zip(parts.score_pieces, points, strict=True)]
        found = _balanced(parts, theta, share * scores, taken)
        if found is not None:
            return found
    return None


def _balanced(parts: NormalForm, theta: Array, scores: Array, points: list[Array]) -> ScoreDual | None:
    """The dual points with the first loss moved so that all columns sum to zero, if it can."""
    total = sum((scaled.grad(scores) for scaled in parts.score_forms), np.zeros_like(scores))
    for piece, u in zip(parts.score_pieces, points, strict=True):
        total = total + piece.adjoint(u)
    if not parts.model.intercept or _in_balance(total):
        return ScoreDual(theta, scores, tuple(points), total)
    for number, piece in enumerate(parts.score_pieces):
        if isinstance(piece.atom, Loss):
            target = points[number].sum(axis=0) - total.sum(axis=0)
            moved = piece.atom.rebalance(points[number] / piece.scale, target / piece.scale)
            if moved is None:
                return None
            moved = piece.scale * moved
            total = total + piece.adjoint(moved - points[number])
            return ScoreDual(theta, scores, (*points[:number], moved, *points[number + 1 :]), total)
    return None


def _ignore_common_shifts(points: list[Array]) -> bool:
    """Whether all dual points sum to zero over several classes."""
    return all(u.shape[1] > 1 and np.all(np.abs(u.sum(axis=1)) <= 1e-9 * (1.0 + np.abs(u).sum(axis=1))) for u in points)


def _in_balance(total: Array) -> bool:
    return bool(np.all(np.abs(total.sum(axis=0)) <= 1e-12 * np.abs(total).sum(axis=0)))


def strong_convexity_bound(problem: Problem, theta: Array, b: Array) -> float:
    """P(w+) - ||s||^2 / (2 mu) for a prox-gradient step w+ and a subgradient s there, where the form allows it.

    It takes smooth terms of the scores, a strongly convex quadratic part and a single other term on the weights.
    """
    parts = problem.normal_form
    mu = 2.0 * float(parts.ridge.min())
    pieces = parts.weight_pieces
    if mu <= 0 or not parts.scores_are_smooth or parts.separable is not None or len(pieces) != 1:
        return -np.inf
    if pieces[0].K is not None or parts.rkhs:
        return -np.inf
    none = np.zeros((theta.shape[0], 0))

    def gradient(theta: Array, b: Array) -> tuple[Array, Array]:
        theta, b, scores = refit(parts, theta, b, parts.model.scores(theta, b), none)
        return parts.model.adjoint(parts.smooth_score_grad(scores)) + parts.quadratic_grad(theta), b

    slope, _ = gradient(theta, b)
    step = 1.0 / max(mu, float(np.linalg.norm(slope)) / max(float(np.linalg.norm(theta)), 1e-3))
    moved = pieces[0].atom.prox(theta - step * slope, step * pieces[0].scale)
    slope_moved, b_moved = gradient(moved, b)
    subgradient = (theta - moved) / step - slope + slope_moved
    return problem.value_at(moved, b_moved) - float(np.sum(subgradient**2)) / (2.0 * mu)


def kkt_residual(parts: NormalForm, theta: Array, b: Array, dual: Dual) -> float:
    """The relative violation of the optimality conditions, by one prox step for every term."""
    scores = parts.model.scores(theta, b)
    total = sum((scaled.grad(scores) for scaled in parts.score_forms), np.zeros_like(scores))
    worst = 0.0
    left = -parts.quadratic_grad(theta)
    for piece in parts.pieces:
        on_scores = piece in parts.score_pieces
        z = piece.forward(scores if on_scores else theta)
        u, x = piece.grad(z) if piece.is_smooth else None, z
        if u is None:
            given = dual.get(piece.number)
            given = piece.prox_conj(z, 1.0)[0] if given is None else given
            u, x = piece.prox_conj(given + z, 1.0)
        worst = max(worst, float(np.linalg.norm(z - x)) / (1.0 + float(np.linalg.norm(z))))
        if on_scores:
            total = total + piece.adjoint(u)
        else:
            left = left - piece.adjoint(u)
    if parts.function_forms:
        left = left - parts.model.adjoint(parts.function_grad(scores - b))
    pull = parts.model.adjoint(total)
    left = left - pull - 2.0 * parts.rkhs * (scores - b if parts.rkhs else 0.0)
    if parts.separable is not None:
        left = theta - parts.separable.prox(theta + left, 1.0)
    scale = 1.0 + float(np.linalg.norm(pull))
    balance = float(np.abs(total.sum(axis=0)).max()) if parts.model.intercept else 0.0
    return max(worst, float(np.linalg.norm(left)) / scale, balance / (1.0 + float(np.abs(total).sum())))
