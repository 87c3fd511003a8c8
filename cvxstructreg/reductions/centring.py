"""Centring: shift data far from zero to their means, to avoid cancellation.

    F = X theta + 1 b'  =  (X - 1 m') theta + 1 (b + theta'm)',      loss of F and y  =  loss of F - t and y - t

Only the intercept changes, so all terms on the weights and on the scores keep their meaning. The columns of a dense X,
and the targets of a loss with a method ``shifted``, are centred if their mean is more than FAR times their standard
deviation. Then X - m is exact or nearly so (Sterbenz lemma), while every product with X would lose digits. The model
must have an intercept, or all terms on the scores must be losses that ignore constants (Cox): then nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Linear, Model
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.reductions.reduction import Point, Reduction

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: A mean is far from zero if it is more than this many times the standard deviation.
FAR = 30.0
#: The first rows select the candidate columns: their mean is at least NEARER times their mean absolute deviation.
FIRST_ROWS, NEARER = 16, 8.0
#: Columns whose means are computed at a time.
COLUMNS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Centring(Reduction):
    """A problem with centred data."""

    problem: Problem
    columns: Array  # m, one number for each weight
    targets: Array  # t, one number for each output

    @classmethod
    def make(cls, problem: Problem) -> Self | None:
        """None if no data are far from zero, or none can be centred."""
        model = problem.given
        if model.kernel is not None or not (model.intercept or _ignores_constants(problem)):
            return None
        if any(term.target == "values" and term.scale > 0 for term in problem.terms):  # scores without intercept
            return None
        moved, columns = _centred_model(model)
        targets = _target_shift(problem)
        if moved is model and not targets.any():
            return None
        terms = tuple(_moved(term, targets) for term in problem.terms)
        centred = type(problem)(moved, Objective(terms))
        cls.settle(centred)
        return cls(centred, columns, targets)

    def lower(self, point: Point) -> Point:
        """The point with the intercept for the centred data."""
        if not self.problem.given.intercept:
            return point
        return Point(point.theta, point.b + self.columns @ point.theta - self.targets, point.dual)

    def lift(self, point: Point) -> Point:
        """The point with the intercept for the given data."""
        if not self.problem.given.intercept:
            return point
        return Point(point.theta, point.b - self.columns @ point.theta + self.targets, point.dual)


def _ignores_constants(problem: Problem) -> bool:
    """Whether all terms on the scores are losses that do not change when a constant is added to the scores."""
    on_scores = [term.atom for term in problem.terms if term.target != "weights"]
    return bool(on_scores) and all(isinstance(atom, Loss) and atom.ignores_constants for atom in on_scores)


def _centred_model(model: Model) -> tuple[Model, Array]:
    """The model with centred columns, and the means that were subtracted; cached with the model."""
    known: Any = model.__dict__.get("_centred")
    if known is None:
        columns = _column_shift(model)
        known = (Linear(model.design - columns, intercept=model.intercept) if columns.any() else model), columns
        model.__dict__["_centred"] = known
    return known


def _column_shift(model: Model) -> Array:
    """The means of the columns far from zero; zero for all other columns."""
    X, shift = model.design, np.zeros(model.n_weights)
    if not isinstance(X, np.ndarray):
        return shift
    first = X[:FIRST_ROWS]
    middle = first.sum(axis=0) / len(first)
    spread = np.abs(first - middle).sum(axis=0) / len(first)
    candidates = np.flatnonzero((np.abs(middle) >= NEARER * spread) & (middle != 0.0))
    for some in np.array_split(candidates, max(1, candidates.size // COLUMNS_AT_ONCE)):
        values = X[:, some]
        means = values.mean(axis=0)
        far = np.abs(means) > FAR * (values - means).std(axis=0)
        shift[some[far]] = means[far]
    return shift


def _target_shift(problem: Problem) -> Array:
    """The mean of the targets if they are far from zero and all losses can be shifted; else zero."""
    none, parts = np.zeros(problem.n_outputs), problem.normal_form
    losses: list[Any] = [piece.atom for piece in parts.score_pieces]
    if parts.score_forms or not all(hasattr(loss, "shifted") for loss in losses):
        return none
    y = np.concatenate([np.broadcast_to(loss.y, (len(loss.y), problem.n_outputs)) for loss in losses])
    means = y.mean(axis=0)
    return np.where(np.abs(means) > FAR * (y - means).std(axis=0), means, 0.0)


def _moved(term: Term, targets: Array) -> Term:
    """The term as a function of scores from which the target means were subtracted."""
    if not targets.any() or not hasattr(term.atom, "shifted"):
        return term
    return Term(term.atom.shifted(-targets), term.scale, term.target)
