"""Newton steps by passes: the curvature of all rows as one d x d matrix, and every penalty that another solver takes.

A pass computes the scores, X'g and X'diag(h)X, where g and h are the slopes and curvatures of the rows. The quadratic
model of the loss is then a least-squares problem with d rows, which is solved in memory together with all terms on the
weights. So an iteration costs one pass, and the memory does not depend on the columns in use, only on d^2.

The dual point of an iterate is that of the last model, g + h (change of the scores). It is feasible up to the accuracy
of the model's solution, and its product with X' is known from the Gram matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.certificates.row_sums.kept_dual import kept_rows
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks import kernels
from cvxstructreg.row_blocks.sampling import loss_of_rows, sampled
from cvxstructreg.row_blocks.surrogate import QuadraticModel, model_of
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers.iterate import InaccurateWarning, Iterate
from cvxstructreg.solvers.needs import Need, OneLoss, Outputs, RowBlockModel, ScoresCan
from cvxstructreg.solvers.row_blocks import sampled_newton
from cvxstructreg.solvers.row_blocks.column_search import Search, Sparsifies
from cvxstructreg.solvers.row_blocks.sampled_newton import HALVINGS, ROUND_OFF
from cvxstructreg.solvers.row_blocks.small_models import solved_model
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: The most weights: a Gram matrix and its eigenvectors must be cheap against a pass.
MOST = 1500
#: Rows of the preliminary fit.
SAMPLE = 20_000
#: The accuracy of a model's solution: this part of the last gap, and of the tolerance.
OF_GAP, OF_TOL = 0.01, 0.1
#: If the objective no longer decreases, models are solved this much more accurately, down to LEAST_ACCURACY.
SHARPER, LEAST_ACCURACY = 0.1, 1e-13
#: A point is worth certifying if the misfit of its dual point is at most this part of the allowed gap.
SMALL_MISFIT = 0.5


@dataclass(frozen=True)
class FewWeights(Need):
    """At most ``most`` weights."""

    most: int

    def __str__(self) -> str:
        return f"at most {self.most} weights"

    def missing(self, problem: Problem) -> str | None:
        """Refuse more weights."""
        d = problem.given.n_weights
        return f"the matrix of all products of {d} columns is too large" if d > self.most else None


@dataclass(frozen=True)
class EveryRow(Need):
    """The loss has a label for every row."""

    def __str__(self) -> str:
        return "a label for every row"

    def missing(self, problem: Problem) -> str | None:
        """Refuse losses of some rows."""
        return "some rows have no label" if problem.normal_form.score_pieces[0].K is not None else None


@dataclass(frozen=True)
class NoWorkingSet(Need):
    """Scores in this process, or penalties that make no weights zero."""

    def __str__(self) -> str:
        return "scores in this process or penalties that make no weights zero"

    def missing(self, problem: Problem) -> str | None:
        """Refuse problems that ``gram_columns`` solves on few columns with scores on the workers."""
        if not problem.given.row_blocks.keeps_scores or Sparsifies().missing(problem) is not None:
            return None
        return None if kept_rows(problem.normal_form) is None else "the scores stay on the workers"


class Rounds:
    """The state between two passes."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.design, self.intercept = problem.model.row_blocks, problem.model.intercept
        (self.piece,) = problem.normal_form.score_pieces

    def visit(self, theta: Array, b: Array) -> tuple[Array, QuadraticModel, Array, Array]:
        """One pass at a point: the scores, the model of the loss, and the slopes and curvatures of the rows."""
        n, d = self.design.shape
        loss = self.piece.atom
        assert isinstance(loss, Loss)
        z, g, h = np.empty((n, 1)), np.empty((n, 1)), np.empty((n, 1))
        slope, centre, gram = np.zeros((d, 1)), np.zeros((d, 1)), np.zeros((d, d))
        scale = self.piece.scale
        for rows, found in self.design.run(
            kernels.second_order, (theta, b), lambda rows: ([(scale, loss_of_rows(loss, rows))],)
        ):
            z[rows], g[rows], h[rows] = found[:3]
            slope += found[3]
            centre += found[4]
            gram += found[5]
        passed = slope[:, 0], centre[:, 0], gram, g, h
        self.design.remember(theta, z - b, g, slope)
        return z, model_of(passed, theta[:, 0], float(b[0]), self.intercept), g, h

    def value(self, theta: Array, b: Array, z: Array) -> float:
        """The objective at a point with known scores."""
        return self.problem.value_at(theta, b, z)


def run(problem: Problem, start: Iterate, tol: float, sample: int = SAMPLE) -> Iterator[Iterate]:
    """``sample`` is the number of rows of a preliminary fit that gives the starting point; 0 for none."""
    theta, b = _first_point(problem, start, sample)
    if kept_rows(problem.normal_form) is not None:  # a working set of all columns, with scores that stay there
        yield from sampled_newton.steps(Search(problem, tol), np.arange(len(theta)), theta, b)
        return
    rounds = Rounds(problem, tol)
    z, model, g, h = rounds.visit(theta, b)
    value, inner, error, sharp = rounds.value(theta, b, z), None, 1e-2, 1.0
    while True:
        small = model.problem(problem)
        warm = theta[:, 0] if inner is None else inner.coef
        accuracy = max(LEAST_ACCURACY, sharp * max(OF_TOL * tol, min(1e-3, OF_GAP * error)))
        inner = solved_model(small, accuracy, (warm, 0.0))
        w = np.asarray(inner.coef)
        ahead, its_b = w[:, None].copy(), np.array([model.intercept(w)])
        its_z, its_model, its_g, its_h = rounds.visit(ahead, its_b)
        reached = rounds.value(ahead, its_b, its_z)
        u, pulled = g + h * (its_z - z), model.pulled(w, float(its_b[0]))[:, None]
        if reached <= value + ROUND_OFF * abs(value):
            rounds.design.remember(ahead, its_z - its_b, u, pulled)
            scale = objective_scale(problem, reached)
            misfit = reached_misfit(rounds, its_z, u)
            missed = (misfit + inner.certificate.gap) / scale
            dual = {number: q for number, q in inner.dual.items() if number != rounds.piece.number}
            dual[rounds.piece.number] = u
            stuck = value - reached <= ROUND_OFF * abs(value)
            last = stuck and accuracy <= LEAST_ACCURACY
            yield Iterate(ahead, its_b, dual, promising=bool(missed <= SMALL_MISFIT * tol or stuck), exhausted=last)
            if last:
                return
            sharp = SHARPER * sharp if stuck or missed <= SMALL_MISFIT * tol else sharp
            error = min(error, missed) if np.isfinite(missed) else 0.5 * error
            theta, b, z, model, g, h, value = ahead, its_b, its_z, its_model, its_g, its_h, reached
        else:
            point = _backtracked(rounds, (theta, b, z, value), (ahead, its_b, its_z))
            if point is None:
                yield Iterate(theta, b, exhausted=True)
                return
            theta, b = point
            z, model, g, h = rounds.visit(theta, b)
            value = rounds.value(theta, b, z)
            yield Iterate(theta, b, promising=False)
        deadline.check()


def reached_misfit(rounds: Rounds, z: Array, u: Array) -> float:
    """The Fenchel gap of the loss at the scores z and the dual point u."""
    return rounds.piece.value(z) + rounds.piece.conj(u) - float(np.vdot(u, z))


def _first_point(problem: Problem, start: Iterate, sample: int) -> tuple[Array, Array]:
    """The starting point, or the optimum of a sample if the start has no weights."""
    if start.theta.any() or not 0 < sample < problem.model.n_rows // 2:
        return start.theta.copy(), start.b.copy()
    small = sampled(problem, sample)
    if small is None:
        return start.theta.copy(), start.b.copy()
    with muted(InaccurateWarning):
        found = small.solve(tol=1e-3)
    if found.status == "no_minimiser":
        return start.theta.copy(), start.b.copy()
    return small.shaped(found.coef, found.intercept)


def _backtracked(
    rounds: Rounds, before: tuple[Array, Array, Array, float], ahead: tuple[Array, Array, Array]
) -> tuple[Array, Array] | None:
    """A point between two points with a lower objective; scores are interpolated, so no pass is needed."""
    theta, b, z, value = before
    t = 0.5
    for _ in range(HALVINGS):
        moved = [x + t * (y - x) for x, y in zip((theta, b, z), ahead, strict=True)]
        if rounds.value(*moved) < value:
            return moved[0], moved[1]
        t *= 0.5
    return None


SOLVER = Solver(
    "gram_newton",
    run,
    (
        RowBlockModel(),
        Outputs(most=1),
        OneLoss(),
        ScoresCan((("grad", "hess_diag"),), "curvature for each row (hess_diag)"),
        EveryRow(),
        FewWeights(MOST),
        NoWorkingSet(),
    ),
    coordinates=AS_GIVEN,
    by_passes=True,
)
