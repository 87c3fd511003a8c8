"""Feasible dual points, and the lower bounds on the optimum that they prove.

A problem is ``sum_t f_t(K_t x)`` over x = (theta, b), with the strengths inside the f_t. Any u_t with ``sum_t K_t'u_t =
0`` prove that the optimum is at least ``-sum_t f_t*(u_t)`` (Fenchel duality). The u_t of the scores are gradients at
the point, or come from a solver. A free intercept requires column sums of zero. The remaining sum on the weights is
absorbed by L1 terms and bounds, by strongly convex quadratic terms, and by group norms. If these cannot absorb it, all
u_t are scaled down until they can (:mod:`cvxstructreg.certificates.weight_dual`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cvxstructreg.certificates.directions.free_directions import free_directions, linearised, refit
from cvxstructreg.certificates.dual_point import NO_PROOF, Proof, best, dual_of
from cvxstructreg.certificates.l1_dual import l1_proof
from cvxstructreg.certificates.quadratic_conjugate import has_bounded_forms, lowest_in_bounds
from cvxstructreg.certificates.row_sums.kept_dual import kept_dual
from cvxstructreg.certificates.row_sums.refitting import are_clear
from cvxstructreg.certificates.score_dual import ScoreDual, dual_point, score_unit
from cvxstructreg.certificates.weight_dual import Dual, Known, Quadratic, WeightDual
from cvxstructreg.core.default_prox import NoProxError
from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.function_norm import ScaledFunctionNorm
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import REACH, UNIT

#: Column sums below this part of the sum of absolute values are round-off.
BALANCED = 1e-10
#: The largest cost of an imbalance, relative to the objective, that is accepted without moving the dual point.
CHEAP = 1e-9
#: A cost of an imbalance below this part of the objective need not be estimated well.
NEGLIGIBLE = 1e-12
#: Column sums below this part of the sum of absolute values need no rebalancing.
IN_BALANCE = 1e-12
#: Row sums below this part of the sum of absolute values are zero.
ZERO_ROW = 1e-9
#: Quadratic terms are moved if the gap is at most the part NEAR of the objective; to MOVED times the tolerance.
NEAR, MOVED = 0.1, 0.1
#: The part of the gap that an inexact proof that a Gram matrix is semidefinite may take.
SPARE = 0.1
#: The shares of penalties on the scores that are tried if the losses cannot balance the whole.
SHARES = (1.0, 0.5, 0.1, 0.0)


def lower_bound(
    parts: NormalForm,
    theta: Array,
    b: Array,
    scores: Array,
    dual: Dual,
    sweeps: int,
    known: Known,
    quadratic: Quadratic,
) -> Proof:
    """A lower bound on the optimum with the dual point that proves it; -inf if no feasible dual point was found.

    A given dual point is tried first. Smooth terms also have the gradient at (theta, b) as a dual point. ``known`` is
    the objective at this point and a relative gap that is small enough, a tenth of which is not worth a search.
    ``quadratic`` is the value of the quadratic terms on the weights at this point, and their gradient.
    """
    proof = NO_PROOF
    given = all(piece.number in dual for piece in parts.score_pieces)
    if given:
        starts = score_duals(parts, theta, b, scores, dual, known[0])
        proof = best(*(_proof(parts, start, dual, sweeps, known, quadratic) for start in starts))
        if known[0] - proof.bound <= known[1] * abs(known[0]):
            return proof
        if known[0] - proof.bound <= NEAR * abs(known[0]) and has_bounded_forms(parts):
            proof = best(proof, *(_moved_proof(parts, start, dual, sweeps, known) for start in starts))
    directions = free_directions(parts, theta)
    if directions is None:
        return proof
    if not (given or parts.scores_are_smooth or directions.shape[1]):
        starts = score_duals(parts, theta, b, scores, dual, known[0])
        proof = best(*(_proof(parts, start, dual, sweeps, known, quadratic) for start in starts))
    if parts.scores_are_smooth:
        moved, its_b, its_scores = refit(parts, theta, b, scores, directions)
        starts = score_duals(parts, moved, its_b, its_scores, {}, known[0])
        if directions.shape[1]:
            along = _along_free_directions(parts, moved, its_b, its_scores, directions, known[0])
            starts = starts if along is None else [along]
        for start in starts:
            if start is not None:
                moved = start.theta
                its_quadratic = quadratic if moved is theta else parts.quadratic_value_and_grad(moved)
                proof = best(proof, _proof(parts, start, dual, sweeps, known, its_quadratic))
    return proof


def lower_bound_by_rows(
    parts: NormalForm, theta: Array, b: Array, rows: Any, dual: Dual, sweeps: int, known: Known, quadratic: Quadratic
) -> Proof | None:
    """The same bound from the dual point beside theta, by sums over rows that stay where they are.

    None if round-off leaves the dual point out of balance, or if sums cannot tell directions without penalty apart.
    """
    directions = free_directions(parts, theta)
    if directions is None or (directions.shape[1] and not are_clear(parts, directions, rows)):
        return None
    for linear in (None, True):  # the second is in balance where the Newton method for the intercepts was stopped early
        start = kept_dual(parts, theta, b, rows, linear)
        if parts.model.intercept and np.any(np.abs(start.sums()) > IN_BALANCE * start.sizes()):
            continue
        charged = _with_errors(parts, start, start.b, known[0])
        if charged is not None and charged.cost(parts) < np.inf:
            its_quadratic = quadratic if start.theta is theta else parts.quadratic_value_and_grad(start.theta)
            return _proof(parts, charged, dual, sweeps, known, its_quadratic)
    return None


def _along_free_directions(
    parts: NormalForm, theta: Array, b: Array, scores: Array, directions: Array, objective: float
) -> ScoreDual | None:
    """Dual points in balance along all free directions; None if a conjugate is infinite there."""
    found = linearised(parts, theta, scores, directions)
    if found is None:
        return None
    moved, ahead, points = found
    if any(piece.conj(u) == np.inf for piece, u in zip(parts.score_pieces, points, strict=True)):
        return None
    # round-off in the Hessian may leave sums that are not zero, which far columns would multiply
    points = [
        piece.into_domain(u) if isinstance(piece.atom, Loss) and piece.atom.ignores_constants else u
        for piece, u in zip(parts.score_pieces, points, strict=True)
    ]
    return _with_errors(parts, ScoreDual(moved, ahead, tuple(points), _total(parts, ahead, points)), b, objective)


def _proof(
    parts: NormalForm, start: ScoreDual | None, dual: Dual, sweeps: int, known: Known, quadratic: Quadratic
) -> Proof:
    """The bound from a dual point of the scores, with the best matching dual point of the weights."""
    if start is None:
        return NO_PROOF
    if parts.function_norm is not None:
        return _function_proof(parts, parts.function_norm, start, known)
    quick = l1_proof(parts, start)  # enough for most problems with L1 alone
    if known[0] - quick.bound <= known[1] * abs(known[0]):
        return quick
    try:
        return WeightDual(parts, start, dual, sweeps, known, quadratic).best_proof()
    except NoProxError:  # the search for dual points takes prox steps
        return NO_PROOF


def _moved_proof(parts: NormalForm, start: ScoreDual | None, dual: Dual, sweeps: int, known: Known) -> Proof:
    """The bound with quadratic terms that take their dual points where they, the bounds and the pull have a minimum."""
    if start is None:
        return NO_PROOF
    theta = lowest_in_bounds(parts, start.theta, start.pull(parts), MOVED * known[1] * abs(known[0]))
    quadratic = parts.quadratic_value_and_grad(theta)
    return _proof(parts, replace(start, theta=theta), dual, sweeps, known, quadratic)


def _function_proof(parts: NormalForm, norm: ScaledFunctionNorm, start: ScoreDual, known: Known) -> Proof:
    """The dual objective if the only term on the weights is the function norm."""
    total, cost, error = start.total, start.cost(parts), start.error
    size, round_off = abs(cost), start.round_off(parts)
    pull = None
    if parts.function_forms:
        h = parts.model.scores(start.theta, np.zeros(parts.n_outputs))
        pull = parts.function_grad(h)
        error += sum(scaled.grad_error(h) for scaled in parts.function_forms)
        error += UNIT * (float(np.linalg.norm(total)) + float(np.linalg.norm(pull)))
        total = total + pull  # these dual points are gradients, where the conjugate equals the value
        its_cost = sum(scaled.value(h) for scaled in parts.function_forms)
        cost, size = cost + its_cost, size + its_cost
    product = parts.model.adjoint(total)
    square = norm.conj(float(np.vdot(total, product)))
    # the round-off in total'gram total (|gram_ij|^2 <= gram_ii gram_jj), and the effect of an error in the total
    diagonal = np.maximum(parts.model.design.diagonal(), 0.0)
    squares = float(np.sum(total**2))
    spare, unit = SPARE * known[1] * abs(known[0]), norm.conj(squares)
    slack = parts.model.slack(spare / unit if unit > 0.0 else np.inf)
    inexact = UNIT * float(np.sum(diagonal @ total**2)) + slack * squares
    inexact += error * (2.0 * float(np.linalg.norm(product)) + error * float(diagonal.sum()))
    round_off += norm.conj(inexact)
    value = -cost - square
    return Proof(value - UNIT * (size + abs(square)) - round_off, dual_of(parts, start, value, function=pull))


def score_duals(
    parts: NormalForm, theta: Array, b: Array, scores: Array, dual: Dual, objective: float
) -> list[ScoreDual | None]:
    """Dual points of the score terms, in one or two ways.

    Losses that see only differences between classes cannot balance what quadratic terms add to all classes alike. L1
    and other terms of the weights may take this part, or the scores are centred and there is no such part.
    """
    points = [dual_point(piece, scores, dual.get(piece.number)) for piece in parts.score_pieces]
    found = [_score_dual(parts, theta, b, scores, points, objective)]
    if parts.score_forms and _ignore_common_shifts(points):
        centred = scores - scores.mean(axis=1, keepdims=True)
        found.append(_score_dual(parts, theta, b, centred, points, objective))
    return found


def _score_dual(
    parts: NormalForm, theta: Array, b: Array, scores: Array, points: list[Array], objective: float
) -> ScoreDual | None:
    """Dual points of the score terms in the domains of their conjugates, with the sums that the intercept requires."""
    # far from the optimum, the losses may not be able to balance the other terms: then use a part of these
    for share in SHARES if parts.model.intercept else (1.0,):
        taken = [u if isinstance(p.atom, Loss) else share * u for p, u in zip(parts.score_pieces, points, strict=True)]
        found = _balanced(parts, theta, share * scores, taken)
        if found is not None:
            charged = _with_errors(parts, found, b, objective)
            if charged is None or charged.imbalance <= CHEAP * abs(objective):
                return charged
            exact = _balanced(parts, theta, share * scores, taken, exactly=True)
            exact = None if exact is None else _with_errors(parts, exact, b, objective)
            return charged if exact is None or exact.imbalance >= charged.imbalance else exact
    return None


def _with_errors(parts: NormalForm, start: ScoreDual, b: Array, objective: float) -> ScoreDual | None:
    """Add the round-off in the total and the cost of the imbalance; None if the imbalance exceeds round-off.

    Nonzero column sums r add r'b* to the bound, where b* are the intercepts of the optimum. These are assumed to be
    within a distance of b that is ``REACH`` times the larger of two sizes: the scores without intercept, and a score
    that changes the objective by about its own size. Such a score may come from a column far from zero, whose mean the
    intercept cancels.
    """
    error = sum(scaled.grad_error(start.scores) for scaled in parts.score_forms)
    if len(start.points) + len(parts.score_forms) > 1:
        error += UNIT * sum(float(np.linalg.norm(u)) for u in start.points)
        error += UNIT * sum(float(np.linalg.norm(scaled.grad(start.scores))) for scaled in parts.score_forms)
    imbalance = 0.0
    if parts.model.intercept:
        sums = start.sums()
        if np.any(np.abs(sums) > BALANCED * start.sizes() + REACH * error):
            return None
        unit = score_unit(start, objective)
        if sums.any() and parts.function_norm is None:
            mean = parts.largest_relative_mean * unit  # an upper bound, which is mostly good enough
            if float(np.abs(sums).sum()) * REACH * mean > NEGLIGIBLE * abs(objective):
                mean = _largest_mean(parts, unit, objective)
            unit = max(unit, mean)
        reach = REACH * np.maximum(start.farthest(b), unit)
        imbalance = float(np.sum(np.abs(sums) * reach - sums * b))
        imbalance += error * float(np.sum(reach + np.abs(b)))
    return replace(start, error=error, imbalance=imbalance) if error or imbalance else start


def _largest_mean(parts: NormalForm, unit: float, objective: float) -> float:
    """The largest mean score of one column, for a weight that changes the deviations of its scores by the unit.

    The weight is also limited by its penalties: at a minimiser, neither lam |w| nor mu w^2 exceeds the objective.
    """
    means, deviations = parts.column_means
    most = np.divide(unit, deviations, out=np.zeros_like(means), where=deviations > 0)
    if parts.separable is not None:
        lam = np.broadcast_to(parts.separable.weights, parts.shape).min(axis=1)
        most = np.minimum(most, np.divide(abs(objective), lam, out=np.full_like(most, np.inf), where=lam > 0))
    ridge = parts.ridge
    squares = np.divide(abs(objective), ridge, out=np.full_like(most, np.inf), where=ridge > 0)
    return float(np.max(np.abs(means) * np.minimum(most, np.sqrt(squares)), initial=0.0))


def _total(parts: NormalForm, scores: Array, points: Sequence[Array]) -> Array:
    """The derivative of the score terms with respect to the scores."""
    if len(points) == 1 and parts.score_pieces[0].K is None and not parts.score_forms:
        return points[0]
    total = sum((scaled.grad(scores) for scaled in parts.score_forms), np.zeros_like(scores))
    for piece, u in zip(parts.score_pieces, points, strict=True):
        total = total + piece.adjoint(u)
    return total


def _balanced(
    parts: NormalForm, theta: Array, scores: Array, points: list[Array], exactly: bool = False
) -> ScoreDual | None:
    """The dual points, with that of one loss moved so that all columns sum to zero; None if that is impossible."""
    total = _total(parts, scores, points)
    if not parts.model.intercept or (not exactly and _in_balance(total)):
        return ScoreDual(theta, scores, tuple(points), total)
    for number, piece in enumerate(parts.score_pieces):
        if isinstance(piece.atom, Loss) and piece.atom.can("rebalance"):
            target = points[number].sum(axis=0) - total.sum(axis=0)
            moved = piece.atom.rebalance(points[number] / piece.scale, target / piece.scale)
            if moved is None:
                return None
            points = [*points[:number], piece.scale * moved, *points[number + 1 :]]
            return ScoreDual(theta, scores, tuple(points), _total(parts, scores, points))
    return None


def _ignore_common_shifts(points: list[Array]) -> bool:
    """Whether all dual points sum to zero over several classes."""
    return all(u.shape[1] > 1 and np.all(np.abs(u.sum(axis=1)) <= ZERO_ROW * np.abs(u).sum(axis=1)) for u in points)


def _in_balance(total: Array) -> bool:
    return bool(np.all(np.abs(total.sum(axis=0)) <= IN_BALANCE * np.abs(total).sum(axis=0)))
