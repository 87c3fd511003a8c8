"""The method of multipliers for the hinge loss: a sequence of smooth problems with increasingly good dual points.

Each problem has a smoothed hinge, centred at the current dual point, and is solved by a Newton method for linear or
kernel models. The gradient of its loss is the next dual point. The smoothing has a width of 1/sigma in the margins, and
becomes narrower if the gap does not decrease fast enough. Only products with X, the graph and the labelled rows are
needed, so n may be large.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.forms.shortfall import shortfall
from cvxstructreg.forms.smoothed_hinge import SmoothedHinge
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.kernels import kernel_cg
from cvxstructreg.solvers.kernels.labelled_newton import LabelledNewton, balancing_shift
from cvxstructreg.solvers.needs import FunctionNorm, HoldsEveryWeight, OneLoss, Quadratic, ScoresCan
from cvxstructreg.solvers.sizes import ManyData
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: What this solver requires of a problem.
NEEDS = (OneLoss(forms=True), ScoresCan((("hinges",),), "hinges"), Quadratic(), FunctionNorm(), HoldsEveryWeight())


#: The first sigma; it is multiplied by SHARPEN if the gap is still more than FALL times the previous one.
SIGMA, SHARPEN, FALL = 0.7, 6.0, 0.25
#: A smooth problem is solved to INNER times the gap of the previous one, and the first one to FIRST_ACCURACY.
INNER, FIRST_ACCURACY = 0.1, 1e-2
#: No accuracy beyond this can be reached in double precision.
FINEST = 1e-15
#: The largest number of Newton steps for a smooth problem of a kernel model.
MAX_NEWTON = 50


def run(problem: Problem, start: Iterate, tol: float, sigma: float = SIGMA) -> Iterator[Iterate]:
    """``sigma`` is the first smoothing parameter: hinges are smoothed over a width of 1/sigma in the margin."""
    parts = problem.normal_form
    piece = parts.score_pieces[0]
    loss = piece.atom
    assert isinstance(loss, Loss)
    y, weights = piece.atom.hinges()
    smooth = SmoothedHinge(y, piece.scale * weights, loss.rows)
    terms = [Term(smooth, 1.0, "rows") if n == piece.number else term for n, term in enumerate(problem.terms)]
    inner = Problem(problem.model, Objective(tuple(terms)))
    inner.__dict__["_null_point"] = null_point(problem)  # the scale of accuracies, independent of the smoothing
    given = start.dual.get(piece.number)
    centre = np.zeros((len(y), 1)) if given is None else np.clip(-y[:, None] * given, 0.0, smooth.weight_column)
    machine = _Kernels(inner, start) if problem.given.kernel is not None else _Rows(inner, start, smooth, piece)
    gap, accuracy = np.inf, FIRST_ACCURACY
    while True:
        smooth.recentre(centre, sigma * float(smooth.weight_column.max()))
        z, theta, b = machine.minimised(accuracy)
        centre = smooth.multipliers(z)
        was, gap = gap, _loss_gap(smooth, z, centre)
        scale = objective_scale(problem, machine.quadratic_value() + piece.scale * loss.value(z))
        dual = {piece.number: -y[:, None] * centre}
        yield Iterate(theta, b, dual, promising=bool(gap + accuracy * scale <= 0.9 * tol * scale))
        if gap > FALL * was:
            sigma *= SHARPEN
        if gap > 0.5 * tol * scale:
            accuracy = min(accuracy, max(INNER * gap / scale, 0.2 * tol))
        else:  # the certificate did not confirm the gap
            accuracy *= 0.1
        if accuracy <= FINEST:
            yield Iterate(theta, b, dual, exhausted=True)
            return


class _Rows:
    """The smooth problems of a linear model."""

    def __init__(self, inner: Problem, start: Iterate, smooth: SmoothedHinge, hinge: Piece) -> None:
        self.inner, self.smooth, self.hinge = inner, smooth, hinge
        rows = np.arange(inner.model.n_rows) if smooth.rows is None else smooth.rows
        self.newton = LabelledNewton(inner, rows)
        self.at = self.newton.point(start.theta, start.b)

    def minimised(self, accuracy: float) -> tuple[Array, Array, Array]:
        """The labelled scores and the point."""
        loss = self.hinge.scale * self.hinge.atom.value(self.at.z[:, None])
        scale = objective_scale(self.inner, self.quadratic_value() + loss)
        self.newton.minimise(self.at, self.smooth, accuracy * scale)
        # recompute the images, before round-off accumulates
        self.at = self.newton.point(self.at.w[:, None], np.array([self.at.b]))
        return self.at.z[:, None], self.at.w[:, None].copy(), np.array([self.at.b])

    def quadratic_value(self) -> float:
        """The value of all terms but the loss."""
        return self.at.value


class _Kernels:
    """The smooth problems of a kernel model."""

    def __init__(self, inner: Problem, start: Iterate) -> None:
        self.inner, self.at = inner, start

    def minimised(self, accuracy: float) -> tuple[Array, Array, Array]:
        """The labelled scores and the point."""
        steps = kernel_cg.run(self.inner, self.at, accuracy, direct=False)
        for count, step in enumerate(steps, start=1):
            self.at = step
            if step.promising or step.exhausted or count >= MAX_NEWTON or deadline.passed():
                break
        steps.close()
        piece = self.inner.normal_form.score_pieces[0]
        scores = self.inner.model.scores(self.at.theta, self.at.b)
        if self.inner.model.intercept:
            shift = self._imbalance(scores)
            scores, self.at = scores + shift, Iterate(self.at.theta, self.at.b + shift)
        return piece.forward(scores), self.at.theta, self.at.b

    def _imbalance(self, scores: Array) -> float:
        """The shift to the exact intercept: the gap is linear, not quadratic, in the error of the intercept."""
        parts = self.inner.normal_form
        piece, forms, ones = parts.score_pieces[0], parts.score_forms, np.ones_like(scores)
        pull = sum(float(form.grad(scores).sum()) for form in forms)
        stiffness = sum(float(form.grad(ones).sum()) for form in forms)
        z = piece.forward(scores)
        return balancing_shift(
            lambda shift: pull + shift * stiffness + piece.scale * float(piece.atom.grad(z + shift).sum())
        )

    def quadratic_value(self) -> float:
        """The value of all terms but the loss."""
        piece = self.inner.normal_form.score_pieces[0]
        scores = self.inner.model.scores(self.at.theta, self.at.b)
        return self.inner.value_at(self.at.theta, self.at.b) - piece.value(scores)


def _loss_gap(smooth: SmoothedHinge, z: Array, a: Array) -> float:
    """The Fenchel gap of the hinge loss at the scores z and the dual point a, as a sum of nonnegative terms."""
    return float(np.sum(smooth.weight_column * shortfall(smooth.y * z) - a * smooth.shortfall(z)))


SOLVER = Solver(
    "augmented_lagrangian", run, NEEDS, coordinates=AS_GIVEN, aliases=("multipliers",), fastest_if=(ManyData(),)
)
