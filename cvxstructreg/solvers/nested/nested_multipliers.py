"""The method of multipliers for hinge losses beside L1, bounds and group norms: large sparse data.

Each smooth problem has a smoothed hinge, centred at the current dual point (:mod:`cvxstructreg.forms.smoothed_hinge`),
and is solved with working sets by the solver for its penalties. The gradient of its loss is the next dual point. The
smoothing becomes narrower if the gap does not decrease fast enough. The multiclass hinge has group norms only, and one
coordinate less than classes (:mod:`cvxstructreg.solvers.groups.centred_twin`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.smoothed_hinge import SmoothedHinge
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.groups import group_descent, group_newton
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.lasso import working_set
from cvxstructreg.solvers.needs import Need, OneLoss, ScoresCan
from cvxstructreg.solvers.nested import centred_twin
from cvxstructreg.solvers.nested.centred_twin import SmoothedCentredHinge
from cvxstructreg.solvers.solver import COPIED, Solver

#: The first sigma, relative to the weights of the rows; it is multiplied by SHARPEN unless the gap falls by FALL.
SIGMA, SHARPEN, FALL = 0.7, 4.0, 0.2
#: A smooth problem is solved to INNER times the gap of the previous one, and the first one to FIRST_ACCURACY.
INNER, FIRST_ACCURACY, FINEST = 0.2, 1e-2, 1e-14
#: Iterations for one smooth problem, starts of its solver, and smooth problems.
MOST_INNER, MOST_RESTARTS, MOST_OUTER = 100, 20, 60
Smooth = SmoothedHinge | SmoothedCentredHinge


@dataclass(frozen=True)
class SmoothTwin(Need):
    """With a smooth loss in place of the hinge, some solver with working sets accepts the problem."""

    def __str__(self) -> str:
        return "penalties of working_set, group_descent or group_newton"

    def missing(self, problem: Problem) -> str | None:
        """Whether no such solver accepts the problem."""
        if problem.given.kernel is not None:
            return "only Linear models are supported"
        if problem.n_outputs > 1 and (reason := centred_twin.refusal(problem)) is not None:
            return reason
        if _inner_solver(_Twin(problem).inner) is None:
            return f"only {self} are supported"
        return None


class _Twin:
    """The problem with a smoothed loss, and its points: for several classes in one coordinate less."""

    def __init__(self, problem: Problem) -> None:
        self.piece = piece = problem.normal_form.score_pieces[0]
        self.basis: Array | None = None
        loss = piece.atom
        assert isinstance(loss, Loss)
        self.smooth: Smooth
        if problem.n_outputs > 1:
            hinges = loss.centred_hinges(problem.n_outputs)
            self.smooth = SmoothedCentredHinge(replace(hinges, costs=piece.scale * hinges.costs), loss.rows)
            self.basis = self.smooth.basis
        else:
            y, weights = loss.hinges()
            self.smooth = SmoothedHinge(y, piece.scale * weights, loss.rows)
        smooth = Term(self.smooth, 1.0, "rows")
        terms = [smooth if n == piece.number else term for n, term in enumerate(problem.terms)]
        self.inner = Problem(problem.model, Objective(tuple(terms)))

    def lowered(self, at: Iterate) -> Iterate:
        """A point of the problem, without its dual points, as one of the smooth problem."""
        return Iterate(at.theta, at.b) if self.basis is None else Iterate(at.theta @ self.basis, at.b @ self.basis)

    def lifted(self, at: Iterate, a: Array) -> Iterate:
        """A point of the smooth problem with the multipliers a, as one of the problem with its dual points."""
        theta, b, dual = at.theta, at.b, dict(at.dual)
        if self.basis is not None:
            theta, b = theta @ self.basis.T, self.basis @ b
            dual = {number: q @ self.basis.T for number, q in dual.items()}
        return Iterate(theta, b, {**dual, self.piece.number: self.smooth.dual(a)})


def _inner_solver(inner: Problem) -> Solver | None:
    return next((s for s in (working_set.SOLVER, group_descent.SOLVER, group_newton.SOLVER) if s.accepts(inner)), None)


def run(problem: Problem, start: Iterate, tol: float, sigma: float = SIGMA) -> Iterator[Iterate]:
    """``sigma`` is the first smoothing parameter: hinges are smoothed over a width of 1/sigma in the margin."""
    twin = _Twin(problem)
    inner, smooth, piece = twin.inner, twin.smooth, twin.piece
    solver = _inner_solver(inner)
    assert solver is not None
    given = start.dual.get(piece.number)
    centre = np.zeros_like(smooth.top) if given is None else smooth.centre_of(given)
    sigma = sigma * float(np.mean(smooth.top[smooth.top > 0]))
    at, gap, accuracy = twin.lowered(start), np.inf, FIRST_ACCURACY
    if not start.theta.any():  # the best intercept of the hinge is at a kink, where no row has curvature
        at = Iterate(at.theta, np.zeros_like(at.b))
    for count in range(1, MOST_OUTER + 1):
        smooth.recentre(centre, sigma)
        fresh = Problem(problem.model, Objective(inner.terms))  # nothing kept from another smoothing
        at = _solved(fresh, solver, smooth, at, max(accuracy, FINEST))
        z = fresh.normal_form.score_pieces[0].forward(problem.model.scores(at.theta, at.b))
        a = smooth.multipliers(z)
        point = twin.lifted(at, a)
        scores = problem.model.scores(point.theta, point.b)
        found = piece.value(scores) - float(np.vdot(a, smooth.shortfall(z)))
        scale = objective_scale(problem, problem.value_at(point.theta, point.b, scores))
        promising = bool(found <= tol * scale and accuracy <= tol)
        yield replace(point, exhausted=count == MOST_OUTER, promising=promising)
        if found > FALL * gap:
            sigma *= SHARPEN
        gap, centre = found, a
        accuracy = min(accuracy, INNER * gap / scale) if gap > tol * scale else 0.3 * min(accuracy, tol)


def _solved(inner: Problem, solver: Solver, smooth: Smooth, start: Iterate, accuracy: float) -> Iterate:
    """The smooth problem, solved to this relative gap.

    The inner solver may stop at an intercept where no row has curvature. It then continues from the best intercept.
    """
    at, value = _with_best_intercept(inner, smooth, start)
    for _ in range(MOST_RESTARTS):
        for count, found in enumerate(solver.run(inner, at, accuracy), start=1):
            deadline.check()
            if found.promising or found.exhausted or count == MOST_INNER:
                break
        at, better = _with_best_intercept(inner, smooth, found)
        if at is found or value - better <= accuracy * objective_scale(inner, better):
            break
        value = better
    return at


def _with_best_intercept(inner: Problem, smooth: Smooth, at: Iterate) -> tuple[Iterate, float]:
    """The point with the best intercept, if that one is better, and its objective."""
    scores = inner.model.scores(at.theta, at.b)
    value = inner.value_at(at.theta, at.b, scores)
    if not inner.model.intercept:
        return at, value
    shift = smooth.balancing_shift(inner.normal_form.score_pieces[0].forward(scores))
    better = inner.value_at(at.theta, at.b + shift, scores + shift)
    return (Iterate(at.theta, at.b + shift, at.dual), better) if better < value else (at, value)


NEEDS = (OneLoss(), ScoresCan((("hinges",), ("centred_hinges",)), "hinges"), SmoothTwin())
SOLVER = Solver("nested_multipliers", run, NEEDS, COPIED)
