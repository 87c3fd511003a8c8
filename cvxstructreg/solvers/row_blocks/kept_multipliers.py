"""The method of multipliers for losses with kinks whose rows stay where the blocks are.

Each smooth problem has a loss that is smoothed around multipliers of the rows
(:mod:`cvxstructreg.forms.smoothed_kinks`), and is solved by a solver for smooth losses that leaves scores where they
are. Its dual point is the next centre: each block computes its own part, and no pass is needed. The smoothing becomes
narrower if the misfit of loss and multipliers does not fall fast enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.certificates.certificate import certify_point, objective_scale
from cvxstructreg.certificates.row_sums.kept_dual import best_beside, first_smoothing, kept_rows, kept_value
from cvxstructreg.certificates.row_sums.refitting import RowPoint, scores_at
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.smoothed_kinks import SmoothedKinks
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks.block import LostBlockError
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import Need, OneLoss, RowBlockModel
from cvxstructreg.solvers.row_blocks import gram_columns, gram_newton, kept_fista, kept_newton
from cvxstructreg.solvers.row_blocks.column_search import Search, Sparsifies
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: Sigma is multiplied by SHARPEN unless the misfit falls by FALL (chosen on hinge losses with 10,000 sparse rows).
SHARPEN, FALL = 3.0, 0.3
#: Sigma stays if the misfit is at most this part of the tolerance: sharper problems are harder to solve.
ENOUGH = 0.3
#: A smooth problem is solved to INNER times the misfit of the previous one, and the first one to FIRST_ACCURACY.
INNER, FIRST_ACCURACY, FINEST = 0.2, 1e-2, 1e-13
#: Iterations for one smooth problem (of a solver with cheap steps, and of others), smooth problems, and how often lost
#: multipliers are begun again.
MOST_CHEAP, MOST_INNER, MOST_OUTER, MOST_LOST = 2000, 60, 40, 5
#: The points of a smooth problem are certified when their number has grown by this factor.
CERTIFY_GROWTH = 1.3
#: The solvers of smooth problems, in the order in which they are tried.
INNER_SOLVERS = (gram_columns.SOLVER, gram_newton.SOLVER, kept_newton.SOLVER, kept_fista.SOLVER)


@dataclass(frozen=True)
class KinksStay(Need):
    """A loss with kinks whose rows stay where the blocks are, and a solver of its smoothed twin."""

    def __str__(self) -> str:
        return "a loss with kinks whose scores stay with the blocks"

    def missing(self, problem: Problem) -> str | None:
        """Refuse smooth losses, scores in this process, and penalties that no solver leaves the scores there for."""
        if not problem.given.row_blocks.keeps_scores:
            return "the scores are in this process"
        rows = kept_rows(problem.normal_form)
        if rows is None or rows.is_smooth:
            return "the scores come to this process" if rows is None else "the loss is smooth"
        return None if _inner_solver(_twin(problem)[0]) else "no solver of smooth losses leaves the scores there"


def _twin(problem: Problem) -> tuple[Problem, SmoothedKinks]:
    """The problem with the smoothed twin of its loss."""
    (piece,) = problem.normal_form.score_pieces
    assert isinstance(piece.atom, Loss)
    smooth = SmoothedKinks(piece.atom)
    _put(smooth, kept_rows(problem.normal_form))
    terms = [Term(smooth, piece.scale, "rows") if n == piece.number else t for n, t in enumerate(problem.terms)]
    return Problem(problem.model, Objective(tuple(terms))), smooth


def _put(smooth: SmoothedKinks, rows: Any) -> None:
    object.__setattr__(smooth, "rows_elsewhere", rows)


def _inner_solver(inner: Problem) -> Solver | None:
    return next((solver for solver in INNER_SOLVERS if solver.accepts(inner)), None)


def run(problem: Problem, start: Iterate, tol: float, sample: int = 20_000) -> Iterator[Iterate]:
    """``sample`` is the number of rows of a preliminary fit that gives the starting point; 0 for none."""
    parts = problem.normal_form
    (piece,), rows = parts.score_pieces, kept_rows(parts)
    inner, smooth = _twin(problem)
    solver = _inner_solver(inner)
    assert solver is not None
    inner.__dict__["_scale_floor"] = objective_scale(problem, 0.0)
    theta, b = _first_point(problem, start, tol, sample)
    at, gap, accuracy, lost = Iterate(theta, b), np.inf, FIRST_ACCURACY, 0
    smoothing = first_smoothing(rows, theta, b)
    for count in range(1, MOST_OUTER + 1):
        rows.smoothing = smoothing  # for certificates
        _put(smooth, smoothing)
        try:
            at, point = _solved(inner, solver, at, max(accuracy, FINEST))
            found = piece.scale * float(sum(point.sums(_misfit)))
            value = problem.value_at(at.theta, at.b, score_value=piece.scale * kept_value(rows, at.theta, at.b))
            scale = objective_scale(problem, value)
            fine = bool(found <= tol * scale and accuracy <= tol)
            yield Iterate(at.theta, at.b, at.dual, exhausted=count == MOST_OUTER, promising=fine)
            slow = found > FALL * gap and found > ENOUGH * tol * scale
            sigma = smoothing.sigma * (SHARPEN if slow else 1.0)
            smoothing = smoothing.recentred(sigma, (point.a, point.step), point.states)
            gap = found
            accuracy = min(accuracy, INNER * gap / scale) if gap > tol * scale else 0.3 * min(accuracy, tol)
        except LostBlockError:  # the multipliers were lost with a worker: begin with others
            lost += 1
            if lost > MOST_LOST:
                raise
            smoothing, gap = rows.smoothed(smoothing.sigma), np.inf
        deadline.check()


def _first_point(problem: Problem, start: Iterate, tol: float, sample: int) -> tuple[Array, Array]:
    """The starting point, or that of a sample if the start has no weights."""
    if Sparsifies().missing(problem) is None:
        return Search(problem, tol).first_set(start, sample)[1]
    return gram_newton._first_point(problem, start, sample)


def _solved(inner: Problem, solver: Solver, start: Iterate, accuracy: float) -> tuple[Iterate, RowPoint]:
    """The smooth problem, solved to this relative gap, with the best intercept and weights without penalty."""
    options = {"sample": 0} if solver in (gram_columns.SOLVER, gram_newton.SOLVER) else {}
    at, checked, most = _with_best_intercept(inner, start)[0], 0, MOST_CHEAP if solver.cheap_steps else MOST_INNER
    for count, found in enumerate(solver.run(inner, at, accuracy, **options), start=1):
        deadline.check()
        if found.exhausted or count == most:
            break
        if found.promising is False or (found.promising is None and count < CERTIFY_GROWTH * checked):
            continue
        checked = count
        if certify_point(inner, found.theta, found.b, found.dual, tol=accuracy).error <= accuracy:
            break
    return _with_best_intercept(inner, found)


def _with_best_intercept(inner: Problem, at: Iterate) -> tuple[Iterate, RowPoint]:
    """The point with the best intercept and the best weights without penalty, by sums over rows."""
    theta, point = best_beside(inner.normal_form, at.theta, at.b, kept_rows(inner.normal_form))
    return Iterate(theta, np.array(point.a[-1]), at.dual), point


def _misfit(rows: Any, images: Array, columns: Any, a: Array, step: Any) -> float:
    return float(rows.misfit(scores_at(images, columns, a)))


SOLVER = Solver("row_multipliers", run, (RowBlockModel(), OneLoss(), KinksStay()), coordinates=AS_GIVEN, by_passes=True)
