"""The null point: zero weights, the best intercept, and the best values of weights without penalty.

Solvers start at the null point, and gaps are measured relative to the objective there. Both do not change when a
constant is added to the targets or, in a model with an intercept, to a column of the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cvxstructreg.certificates.directions.free_directions import free_directions, refit
from cvxstructreg.certificates.row_sums.kept_dual import best_beside, kept_rows, kept_value
from cvxstructreg.core.loss import Loss, lowest_constants
from cvxstructreg.forms.chains.plain_chain import PlainChain, plain_chain
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem


#: A fit is perfect if it reduces the objective to this part or less.
PERFECT = 1e-10


@dataclass(frozen=True, eq=False)
class NullPoint:
    """Weights, intercept and objective of the null point, and two more objectives for the scale of gaps.

    ``with_intercept`` is the objective at zero weights and the best intercept, and ``with_zero_scores`` is the
    objective at zero weights and intercepts.
    """

    theta: Array
    b: Array
    objective: float
    with_intercept: float
    with_zero_scores: float


def null_point(problem: Problem) -> NullPoint:
    """The null point of a problem, computed once; with bounds, zero weights are moved into the bounds.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0], [6.0]]), csr.Squared([11.0, 12.0, 13.0]) + csr.L1())
    >>> null = null_point(problem)
    >>> null.theta.tolist(), null.b.round(9).tolist(), round(null.objective, 9)
    ([[0.0]], [12.0], 1.0)
    """
    known = problem.__dict__.get("_null_point")
    if known is None:
        with deadline.at_least(math.inf):  # the result is cached, so it must be complete
            known = problem.__dict__["_null_point"] = _find(problem)
    found: NullPoint = known
    return found


def _find(problem: Problem) -> NullPoint:
    parts = problem.normal_form
    if (chain := plain_chain(parts)) is not None:
        return _of_chain(chain, parts)
    theta, b = np.zeros(parts.shape), np.zeros(parts.n_outputs)
    if parts.separable is not None and parts.separable.bounded:
        theta = np.clip(theta, parts.separable.lower, parts.separable.upper)
    at_rest = not theta.any()  # then no product with the data is needed
    if at_rest and _is_lone_loss(parts) and (parts.all_penalised or kept_rows(parts) is not None):
        found = _of_lone_loss(problem, theta)
        return found if parts.all_penalised else _with_free_weights(problem, found)
    bare = scores = np.zeros((parts.model.n_rows, parts.n_outputs)) if at_rest else parts.model.scores(theta, b)
    at_zero = problem.value_at(theta, b, scores)
    none = np.zeros((len(theta), 0))
    if parts.scores_are_smooth:
        if parts.model.intercept and len(parts.score_pieces) == 1 and isinstance(parts.score_pieces[0].atom, Loss):
            guess = parts.score_pieces[0].atom.constants()[0]  # the optimum if there are no other terms
            scores, b = scores + guess, b + guess
        _, b, scores = refit(parts, theta, b, scores, none)
    elif parts.model.intercept:
        candidates = [row for p in parts.score_pieces if isinstance(p.atom, Loss) for row in _intercepts(p, scores)]
        b = np.array(min([b, *candidates], key=lambda row: _score_value(parts, scores + row)), dtype=float)
        scores = scores + b
    value = with_intercept = at_zero if scores is bare else problem.value_at(theta, b, scores)
    if value > at_zero:  # the search for the intercept has failed
        b, scores, value, with_intercept = np.zeros_like(b), bare, at_zero, at_zero
    directions = free_directions(parts, theta) if parts.scores_are_smooth else none
    if directions is not None and directions.shape[1]:
        moved, its_b, _ = refit(parts, theta, b, scores, directions)
        reached = problem.value_at(moved, its_b)
        if reached < with_intercept:  # otherwise the weights diverge, and round-off in their penalties dominates
            value = reached
            if value > PERFECT * with_intercept:  # otherwise the weights may diverge, and are no good start
                theta, b = moved, its_b
    return NullPoint(theta, b, value, with_intercept, at_zero)


def _of_chain(chain: PlainChain, parts: NormalForm) -> NullPoint:
    """The null point of a long chain with X = I: the best constant, in one pass; its weights are read-only."""
    best, value, at_zero = chain.mean()
    if not value < at_zero:
        best, value = 0.0, at_zero
    start = best if value > PERFECT * at_zero else 0.0
    return NullPoint(np.broadcast_to(start, parts.shape), np.zeros(1), value, at_zero, at_zero)


def _is_lone_loss(parts: NormalForm) -> bool:
    """Whether a smooth loss of all rows is the only term on the scores."""
    pieces = parts.score_pieces
    if len(pieces) != 1 or parts.score_forms or pieces[0].K is not None or not parts.scores_are_smooth:
        return False
    return isinstance(pieces[0].atom, Loss)


def _of_lone_loss(problem: Problem, theta: Array) -> NullPoint:
    """The null point if a loss alone decides it: the best intercept is computed once for each loss."""
    parts = problem.normal_form
    piece, intercept = parts.score_pieces[0], parts.model.intercept
    loss = cast("Loss", piece.atom)
    known = loss.best_intercepts
    if intercept not in known:
        known[intercept] = _best_intercept(parts, loss, theta)
    b, value_at_zero, value = known[intercept]
    at_zero = problem.value_at(theta, b, quadratic=0.0, score_value=piece.scale * value_at_zero)
    best = at_zero if not b.any() else problem.value_at(theta, b, None, 0.0, piece.scale * value)
    return NullPoint(theta, b, best, best, at_zero)


def _best_intercept(parts: NormalForm, loss: Loss, theta: Array) -> tuple[Array, float, float]:
    """The best intercepts of a loss beside zero weights, and its values at zero scores and there."""
    b = np.zeros(parts.n_outputs)
    if (rows := kept_rows(parts)) is not None:
        return _best_intercept_of(rows, parts, loss, theta)
    scores = np.zeros((parts.model.n_rows, parts.n_outputs))
    at_zero = loss.value(scores)
    if not parts.model.intercept:
        return b, at_zero, at_zero
    guess = loss.constants()[0]
    _, best, moved = refit(parts, theta, b + guess, scores + guess, np.zeros((len(theta), 0)))
    value = loss.value(moved)
    return (best, at_zero, value) if value <= at_zero else (b, at_zero, at_zero)


def _best_intercept_of(rows: Any, parts: NormalForm, loss: Loss, theta: Array) -> tuple[Array, float, float]:
    """The same by sums over rows that stay where the blocks are."""
    none = np.zeros(parts.n_outputs)
    at_zero = kept_value(rows, theta, none)
    if not parts.model.intercept:
        return none, at_zero, at_zero
    _, point = best_beside(parts, theta, none + loss.constants()[0], rows, free=False)
    value = point.value()
    return (point.a[-1].copy(), at_zero, value) if value <= at_zero else (none, at_zero, at_zero)


def _with_free_weights(problem: Problem, found: NullPoint) -> NullPoint:
    """The null point with the best weights without penalty, by sums over rows that stay where the blocks are."""
    parts = problem.normal_form
    moved, point = best_beside(parts, found.theta, found.b, kept_rows(parts))
    if moved is found.theta:
        return found
    reached = problem.value_at(moved, point.a[-1], None, None, parts.score_pieces[0].scale * point.value())
    if not reached < found.with_intercept:
        return found
    theta, b = (moved, point.a[-1].copy()) if reached > PERFECT * found.with_intercept else (found.theta, found.b)
    return NullPoint(theta, b, reached, found.with_intercept, found.with_zero_scores)


def _intercepts(piece: Piece, scores: Array) -> list[Array]:
    """Candidates for the best intercept beside given scores, which are not zero if bounds exclude zero weights."""
    loss = cast("Loss", piece.atom)
    found = loss.constants()
    if loss.can("kinks") and scores.any():
        lower, upper, at = loss.kinks()
        found = [*found, lowest_constants(lower, upper, at - piece.forward(scores))]
    return found


def _score_value(parts: NormalForm, scores: Array) -> float:
    pieces = sum(piece.value(scores) for piece in parts.score_pieces)
    return float(pieces + sum(scaled.value(scores) for scaled in parts.score_forms))
