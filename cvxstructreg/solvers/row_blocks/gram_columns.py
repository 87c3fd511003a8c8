"""Newton steps on a working set of columns that stay where they are: one pass for each step.

A pass computes the scores, X'g for all columns, and C'diag(h)C for the columns C in the set, where g and h are the
slopes and curvatures of the rows. The quadratic model over the set is solved in memory together with all terms on the
weights, and X'g tells which columns join the set in the next pass. The memory is a few numbers for each row and the
square of the size of the set. With many rows, passes are cheaper
(:mod:`~cvxstructreg.solvers.row_blocks.sampled_newton`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.certificates.row_sums.kept_dual import kept_rows
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks import kernels
from cvxstructreg.row_blocks.restriction import restricted
from cvxstructreg.row_blocks.sampling import loss_of_rows
from cvxstructreg.row_blocks.surrogate import QuadraticModel, model_of
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import OneLoss, Outputs, RowBlockModel, ScoresCan
from cvxstructreg.solvers.row_blocks import sampled_newton
from cvxstructreg.solvers.row_blocks.column_search import Search, Sparsifies
from cvxstructreg.solvers.row_blocks.gram_newton import EveryRow
from cvxstructreg.solvers.row_blocks.sampled_newton import HALVINGS, ROUND_OFF
from cvxstructreg.solvers.row_blocks.small_models import solved_model
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: The largest working set: the eigenvectors of its matrix must be cheap against a pass.
MOST = 2000
#: The accuracy of a model's solution, as a part of the last decrease and of the tolerance.
OF_DECREASE, OF_TOL, LEAST_ACCURACY = 0.01, 0.1, 1e-13
#: A point is worth certifying if the last step promised a decrease of at most this part of the allowed gap.
SMALL_DECREASE = 0.1


@dataclass(frozen=True, eq=False)
class Visit:
    """A point, and what a pass found there."""

    theta: Array
    b: Array
    chosen: Any
    z: Array
    g: Array
    h: Array
    pull: Array
    model: QuadraticModel
    value: float


def run(problem: Problem, start: Iterate, tol: float, sample: int = 20_000) -> Iterator[Iterate]:
    """``sample`` is the number of rows of a preliminary fit that gives the first working set; 0 for none."""
    search = Search(problem, tol)
    chosen, (theta, b) = search.first_set(start, sample)
    yield from steps(search, chosen, theta, b)


def steps(search: Search, chosen: Any, theta: Array, b: Array) -> Iterator[Iterate]:
    """Newton steps from a point whose nonzero weights are in the set."""
    if search.design.shape[0] >= sampled_newton.MANY_ROWS or kept_rows(search.parts) is not None:
        yield from sampled_newton.steps(search, chosen, theta, b)
        return
    problem, tol = search.problem, search.tol
    (piece,) = problem.normal_form.score_pieces
    at = _visit(search, theta, b, chosen if chosen.size else np.zeros(1, dtype=np.int64))
    accuracy, sharp = 1e-3, 1.0
    dual: dict[int, Array] = {}
    solved = at.chosen
    while True:
        left = -at.pull - search.parts.quadratic_grad(at.theta)
        excess, points = search.excess(left, dual, solved)
        new = search.missing(excess, at.theta, at.chosen)[: max(0, MOST - at.chosen.size)]
        R, target = at.model.least_squares()
        small = restricted(problem, at.chosen, R, target)
        inner = solved_model(small.problem, max(LEAST_ACCURACY, sharp * accuracy), (at.model.w, 0.0))
        promised = small.problem.value(at.model.w) - inner.certificate.lower_bound
        allowed = tol * objective_scale(problem, at.value)
        close = not new.size and promised <= SMALL_DECREASE * allowed
        last = close and sharp * accuracy <= LEAST_ACCURACY
        yield Iterate(at.theta, at.b, {piece.number: at.g, **points}, promising=bool(close), exhausted=bool(last))
        if last:
            return
        sharp = 0.1 * sharp if close else sharp
        scale = max(abs(inner.objective), float(np.finfo(float).tiny))
        accuracy = min(accuracy, max(OF_TOL * tol, OF_DECREASE * max(promised, 0.0) / scale))
        dual = small.lift_dual({number: q for number, q in inner.dual.items() if number != piece.number})
        w = np.asarray(inner.coef)
        ahead, solved = np.zeros_like(at.theta), at.chosen
        ahead[at.chosen, 0] = w
        at = _moved(search, at, ahead, np.array([at.model.intercept(w)]), np.concatenate([at.chosen, new]))
        deadline.check()


def _visit(search: Search, theta: Array, b: Array, chosen: Any) -> Visit:
    """One pass at a point."""
    design, problem = search.design, search.problem
    (piece,) = search.parts.score_pieces
    loss, scale = piece.atom, piece.scale
    assert isinstance(loss, Loss)
    (n, d), m = design.shape, chosen.size
    images, g, h = np.empty((n, 1)), np.empty((n, 1)), np.empty((n, 1))
    pull, centre, gram = np.zeros((d, 1)), np.zeros((m, 1)), np.zeros((m, m))
    for rows, found in design.run(
        kernels.second_order_on, (chosen, theta[chosen], b), lambda rows: ([(scale, loss_of_rows(loss, rows))],)
    ):
        images[rows], g[rows], h[rows] = found[:3]
        pull += found[3]
        centre += found[4]
        gram += found[5]
    design.remember(theta, images, g, pull)
    passed = pull[chosen, 0], centre[:, 0], gram, g, h
    model = model_of(passed, theta[chosen, 0], float(b[0]), problem.model.intercept)
    z = images + b
    return Visit(theta, b, chosen, z, g, h, pull, model, problem.value_at(theta, b, z))


def _moved(search: Search, at: Visit, theta: Array, b: Array, chosen: Any) -> Visit:
    """The new point, or one between the two with a lower objective."""
    new = _visit(search, theta, b, chosen)
    t = 1.0
    for _ in range(HALVINGS):
        if new.value <= at.value + ROUND_OFF * abs(at.value):
            return new
        while t > 0.5**HALVINGS:  # scores are interpolated, so that the search needs no pass
            t *= 0.5
            between = [x + t * (y - x) for x, y in ((at.theta, theta), (at.b, b))]
            if search.problem.value_at(between[0], between[1], at.z + t * (new.z - at.z)) < at.value:
                return _visit(search, between[0], between[1], chosen)
        break
    return at


SOLVER = Solver(
    "gram_columns",
    run,
    (
        RowBlockModel(),
        Outputs(most=1),
        OneLoss(),
        ScoresCan((("grad", "hess_diag"),), "curvature for each row (hess_diag)"),
        EveryRow(),
        Sparsifies(),
    ),
    coordinates=AS_GIVEN,
    by_passes=True,
)
