"""Newton steps on a working set of columns for many rows: each pass costs little more than one product with the data.

A pass computes the scores, C'g for the columns C in the set, and C'diag(h)C over a part of the rows, where g and h are
the slopes and curvatures of the rows. The quadratic model over the set is solved in memory together with all terms on
the weights. Each pass takes other rows for C'diag(h)C, and close to the optimum the curvatures of several passes are
added up. If a step does not decrease the objective as the model promised, more rows are taken, in the end all.

When little decrease is left on the set, a pass for X'u tells which columns join it, for the dual point u that the
certificate uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.certificates.row_sums.kept_dual import kept_rows
from cvxstructreg.core.loss import Loss
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks import kernels
from cvxstructreg.row_blocks.restriction import restricted
from cvxstructreg.row_blocks.sampling import loss_of_rows
from cvxstructreg.row_blocks.surrogate import QuadraticModel
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.row_blocks.column_search import Search
from cvxstructreg.solvers.row_blocks.judging import judge
from cvxstructreg.solvers.row_blocks.small_models import solved_model

#: From so many rows on, these steps are used: with fewer rows, a pass is cheap, and all products are made in each one.
MANY_ROWS = 100_000
#: The curvature is taken from one of at most so many rows, but from so many rows for each column in the set.
MOST_STEP, ROWS_PER_COLUMN = 4, 100
#: If a step leaves more than this part of the promised decrease, the curvature is taken from so many times more rows.
STALLED, MORE_ROWS = 0.3, 4
#: Below this promised decrease, relative to the objective, curvatures of earlier passes are used as well.
SETTLED = 1e-3
#: X'u is computed when the set promises this part of what it did with its last columns, unless none were missing.
ENOUGH = 0.03
#: A point is worth certifying if the set promises a relative decrease of at most tol^2, or this: the gap is about the
#: root of it. After so many points without a proof the solver gives up.
SMALL_DECREASE, MOST_TRIES = 1e-12, 6
#: The accuracy of a model's solution, as a part of the last decrease, and at most; iterations for it at most.
OF_DECREASE, LEAST_ACCURACY, MODEL_STEPS = 1e-3, 3e-13, 2000
#: Step sizes of the line search at most.
HALVINGS = 30
#: A difference of objectives below this part of them is round-off.
ROUND_OFF = 1e-13
#: The largest working set: the eigenvectors of its matrix must be cheap against a pass.
MOST = 2000


@dataclass(frozen=True, eq=False)
class Visit:
    """A point, and what a pass found there."""

    theta: Array
    b: Array
    chosen: Any
    scores: Any  # an array, or a state that stays where the blocks are
    slope: Array
    slope_b: float
    curved: kernels.SomeRows
    value: float
    n_rows: int

    def model(self, intercept: bool) -> QuadraticModel:
        """The model of the loss on the set, with the curvature of some rows in place of that of all."""
        grown = self.n_rows / self.curved.size
        sums = (self.slope_b, grown * self.curved.total) if intercept else (0.0, 0.0)
        point = self.theta[self.chosen, 0], float(self.b[0])
        return QuadraticModel(*point, self.slope, grown * self.curved.centre, grown * self.curved.gram, *sums)


class Shares:
    """The rows that the next passes take the curvature from: one of several in each block, other ones each time."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows, self.most, self.count = n_rows, MOST_STEP, 0

    def next(self, n_columns: int) -> tuple[int, int]:
        """The first row and the step, for a set of so many columns."""
        step = max(1, min(self.most, self.n_rows // (ROWS_PER_COLUMN * n_columns)))
        self.count += 1
        return self.count % step, step

    def more(self) -> None:
        """Take more rows from now on."""
        self.most = max(1, self.most // MORE_ROWS)


def steps(search: Search, chosen: Any, theta: Array, b: Array) -> Iterator[Iterate]:
    """Newton steps from a point whose nonzero weights are in the set."""
    problem, tol, shares = search.problem, search.tol, Shares(search.design.shape[0])
    (piece,) = problem.normal_form.score_pieces
    at = _visit(search, theta, b, chosen if chosen.size else np.zeros(1, dtype=np.int64), shares)
    accuracy, judged, before, tries = 1e-3, np.inf, np.inf, 0
    dual: dict[int, Array] = {}
    solved = at.chosen
    while True:
        model = at.model(problem.model.intercept)
        R, target = model.least_squares()
        small = restricted(problem, at.chosen, R, target)
        inner = solved_model(small.problem, accuracy, (model.w, 0.0), MODEL_STEPS)
        promised = small.problem.value(model.w) - inner.certificate.lower_bound
        little = promised <= max(tol**2, SMALL_DECREASE) * objective_scale(problem, at.value)
        if promised > STALLED * before:
            shares.more()
        judged, before, new = promised if np.isnan(judged) else judged, promised, np.zeros(0, dtype=np.int64)
        if little or promised <= ENOUGH * judged:
            excess, points = judge(search, at.theta, at.b, dual, solved)
            new = search.missing(excess, at.theta, at.chosen)[: max(0, MOST - at.chosen.size)]
            judged, before = (np.nan, np.inf) if new.size else (0.0, promised)
            close = little and not new.size
            tries += close
            yield Iterate(at.theta, at.b, points, promising=close, exhausted=tries == MOST_TRIES)
            if tries == MOST_TRIES:
                return
        else:
            yield Iterate(at.theta, at.b, promising=False)
        scale = max(abs(inner.objective), float(np.finfo(float).tiny))
        accuracy = min(accuracy, max(LEAST_ACCURACY, OF_DECREASE * promised / scale))
        dual = small.lift_dual({number: q for number, q in inner.dual.items() if number != piece.number})
        w = np.asarray(inner.coef)
        ahead, solved = np.zeros_like(at.theta), at.chosen
        ahead[at.chosen, 0] = w
        point = ahead, np.array([model.intercept(w)])
        settled = promised <= SETTLED * abs(at.value)
        at = _moved(search, at, point, np.concatenate([at.chosen, new]), shares, settled)
        deadline.check()


def _visit(search: Search, theta: Array, b: Array, chosen: Any, shares: Shares) -> Visit:
    """One pass at a point."""
    design, problem, m = search.design, search.problem, chosen.size
    (piece,) = search.parts.score_pieces
    shared = chosen, theta[chosen], b, shares.next(m)
    scores: Any
    if (rows := kept_rows(search.parts)) is not None:
        scores, found = rows.run(kernels.newton_kept, (*shared, piece.scale), theta)
    else:
        scores, found = _scores_here(search, theta, shared)
        scores += b
    slope, curved = np.zeros((m, 1)), kernels.SomeRows(0, 0.0, np.zeros(m), np.zeros((m, m)))
    for its_slope, its_curved, _, _ in found:
        slope += its_slope
        curved = curved.plus(its_curved)
    slope_b, value = (float(sum(part[i] for part in found)) for i in (2, 3))
    objective = problem.value_at(theta, b, score_value=value)
    return Visit(theta, b, chosen, scores, slope[:, 0], slope_b, curved, objective, design.shape[0])


def _scores_here(search: Search, theta: Array, shared: tuple[Any, ...]) -> tuple[Array, list[Any]]:
    """A pass that brings X theta to this process, and the other results of all blocks."""
    (piece,) = search.parts.score_pieces
    loss, scale = piece.atom, piece.scale
    assert isinstance(loss, Loss)
    images, found = np.empty((search.design.shape[0], 1)), []
    for rows, part in search.design.run(kernels.newton_on, shared, lambda rows: ([(scale, loss_of_rows(loss, rows))],)):
        images[rows] = part[0]
        found.append(part[1:])
    search.design.remember(theta, images)
    return images, found


def _value_between(search: Search, at: Visit, new: Visit, t: float) -> float:
    """The objective between two points; scores are interpolated, so that no pass is needed."""
    theta, b = at.theta + t * (new.theta - at.theta), at.b + t * (new.b - at.b)
    if (rows := kept_rows(search.parts)) is None:
        return search.problem.value_at(theta, b, at.scores + t * (new.scores - at.scores))
    values = rows.sums(kernels.value_between, t, float(b[0]), states=(at.scores, new.scores))
    return search.problem.value_at(theta, b, score_value=search.parts.score_pieces[0].scale * float(sum(values)))


def _moved(search: Search, at: Visit, point: tuple[Array, Array], chosen: Any, shares: Shares, settled: bool) -> Visit:
    """The new point, or one between the two with a lower objective; ``settled`` means that curvatures change little."""
    new = _visit(search, *point, chosen, shares)
    if new.value <= at.value + ROUND_OFF * abs(at.value):
        same = settled and chosen.size == at.chosen.size and at.curved.size + new.curved.size <= at.n_rows
        return replace(new, curved=new.curved.plus(at.curved)) if same else new
    shares.more()
    for halvings in range(1, HALVINGS):
        t = 0.5**halvings
        if _value_between(search, at, new, t) < at.value:
            return _visit(search, at.theta + t * (new.theta - at.theta), at.b + t * (new.b - at.b), chosen, shares)
    return at
