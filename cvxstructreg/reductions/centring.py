"""Data far from zero beside an intercept: the same problem around their means, where no digits are lost.

    F = X theta + 1 b'  =  (X - 1 m') theta + 1 (b + theta'm)',      loss of F and y  =  loss of F - t and y - t

Only the intercept changes, so that all terms of the weights and of the scores keep their meaning. Columns of a dense X
and the targets of a loss that offers ``shifted`` are moved if their mean is FAR times as large as their spread: X - m
is then exact, or nearly so (Sterbenz), while products with X would lose those digits again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cvxstructreg.core.model import Linear, Model
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.reductions.reduction import Point, Reduction

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: Means are far from zero if they are so many times the standard deviation.
FAR = 30.0
#: The first rows tell which columns to look at: half of them are so many times nearer to their median than zero is.
FIRST_ROWS, NEARER = 16, 8.0


@dataclass(frozen=True, eq=False)
class Centring(Reduction):
    """A problem around the means of its data."""

    problem: Problem
    columns: Array  # m, one number for each weight
    targets: Array  # t, one number for each output

    @classmethod
    def make(cls, problem: Problem) -> Self | None:
        """None if nothing is far from zero, or nothing can be moved."""
        model = problem.given
        if not isinstance(model, Linear) or not model.intercept:
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
        """The intercept of the moved data."""
        return Point(point.theta, point.b + self.columns @ point.theta - self.targets, point.dual)

    def lift(self, point: Point) -> Point:
        """The intercept of the given data."""
        return Point(point.theta, point.b - self.columns @ point.theta + self.targets, point.dual)


def _centred_model(model: Linear) -> tuple[Linear, Array]:
    """The model with columns around zero, and what was taken from them; kept with the model."""
    known: Any = model.__dict__.get("_centred")
    if known is None:
        columns = _column_shift(model)
        known = (Linear(model.design - columns) if columns.any() else model), columns
        model.__dict__["_centred"] = known
    return known


def _column_shift(model: Model) -> Array:
    """The means of the columns that are far from zero; zero for the others."""
    X, shift = model.design, np.zeros(model.n_weights)
    if not isinstance(X, np.ndarray):
        return shift
    first = X[:FIRST_ROWS]
    middle = first.sum(axis=0) / len(first)
    spread = np.abs(first - middle).sum(axis=0) / len(first)
    candidates = np.flatnonzero((np.abs(middle) >= NEARER * spread) & (middle != 0.0))
    for some in np.array_split(candidates, max(1, candidates.size // 64)):
        values = X[:, some]
        means = values.mean(axis=0)
        far = np.abs(means) > FAR * (values - means).std(axis=0)
        shift[some[far]] = means[far]
    return shift


def _target_shift(problem: Problem) -> Array:
    """The mean of the targets, where they are far from zero and can be moved together; else zero."""
    none, parts = np.zeros(problem.n_outputs), problem.normal_form
    losses: list[Any] = [piece.atom for piece in parts.score_pieces]
    if parts.score_forms or not all(hasattr(loss, "shifted") for loss in losses):
        return none
    y = np.concatenate([np.broadcast_to(loss.y, (len(loss.y), problem.n_outputs)) for loss in losses])
    means = y.mean(axis=0)
    return np.where(np.abs(means) > FAR * (y - means).std(axis=0), means, 0.0)


def _moved(term: Term, targets: Array) -> Term:
    """The term of scores that are smaller by the targets."""
    if not targets.any() or not hasattr(term.atom, "shifted"):
        return term
    return Term(term.atom.shifted(-targets), term.scale, term.target)
