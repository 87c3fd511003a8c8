"""The method of multipliers for the hinge loss beside L1, bounds and group norms: large sparse data.

Each smooth problem has a smoothed hinge, centred at the current dual point (:mod:`cvxstructreg.forms.smoothed_hinge`),
and is solved with working sets by the solver for its penalties. The gradient of its loss is the next dual point. The
smoothing becomes narrower if the gap does not decrease fast enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.smoothed_hinge import SmoothedHinge
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.groups import group_descent, group_newton
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.lasso import working_set
from cvxstructreg.solvers.needs import Need, OneLoss, ScoresCan
from cvxstructreg.solvers.solver import COPIED, Solver

#: The first sigma, relative to the weights of the rows; it is multiplied by SHARPEN unless the gap falls by FALL.
SIGMA, SHARPEN, FALL = 0.7, 4.0, 0.2
#: A smooth problem is solved to INNER times the gap of the previous one, and the first one to FIRST_ACCURACY.
INNER, FIRST_ACCURACY, FINEST = 0.2, 1e-2, 1e-14
#: Iterations for one smooth problem, starts of its solver, and smooth problems.
MOST_INNER, MOST_RESTARTS, MOST_OUTER = 100, 20, 60


@dataclass(frozen=True)
class SmoothTwin(Need):
    """With a smooth loss in place of the hinge, some solver with working sets accepts the problem."""

    def __str__(self) -> str:
        return "penalties of working_set, group_descent or group_newton"

    def missing(self, problem: Problem) -> str | None:
        """Whether no such solver accepts the problem."""
        if problem.given.kernel is not None:
            return "only Linear models are supported"
        if _inner_solver(_smoothed(problem)[0]) is None:
            return f"only {self} are supported"
        return None


def _smoothed(problem: Problem) -> tuple[Problem, SmoothedHinge]:
    """The problem with a smoothed hinge."""
    piece = problem.normal_form.score_pieces[0]
    y, weights = piece.atom.hinges()
    assert isinstance(piece.atom, Loss)
    smooth = SmoothedHinge(y, piece.scale * weights, piece.atom.rows)
    terms = [Term(smooth, 1.0, "rows") if n == piece.number else term for n, term in enumerate(problem.terms)]
    return Problem(problem.model, Objective(tuple(terms))), smooth


def _inner_solver(inner: Problem) -> Solver | None:
    return next((s for s in (working_set.SOLVER, group_descent.SOLVER, group_newton.SOLVER) if s.accepts(inner)), None)


def run(problem: Problem, start: Iterate, tol: float, sigma: float = SIGMA) -> Iterator[Iterate]:
    """``sigma`` is the first smoothing parameter: hinges are smoothed over a width of 1/sigma in the margin."""
    piece = problem.normal_form.score_pieces[0]
    inner, smooth = _smoothed(problem)
    solver = _inner_solver(inner)
    assert solver is not None
    top = smooth.weight_column
    given = start.dual.get(piece.number)
    centre = np.zeros_like(top) if given is None else np.clip(-smooth.y * given, 0.0, top)
    sigma = sigma * float(np.mean(top))
    at, gap, accuracy = Iterate(start.theta, start.b), np.inf, FIRST_ACCURACY
    if not start.theta.any():  # the best intercept of the hinge is at a kink, where no row has curvature
        at = Iterate(start.theta, np.zeros_like(start.b))
    for count in range(1, MOST_OUTER + 1):
        smooth.recentre(centre, sigma)
        fresh = Problem(problem.model, Objective(inner.terms))  # nothing kept from another smoothing
        at = _solved(fresh, solver, smooth, at, max(accuracy, FINEST))
        scores = problem.model.scores(at.theta, at.b)
        z = piece.forward(scores)
        a = smooth.multipliers(z)
        found = piece.value(scores) - float(np.vdot(a, smooth.shortfall(z)))
        scale = objective_scale(problem, problem.value_at(at.theta, at.b, scores))
        dual = {**at.dual, piece.number: -smooth.y * a}
        promising = bool(found <= tol * scale and accuracy <= tol)
        yield Iterate(at.theta, at.b, dual, exhausted=count == MOST_OUTER, promising=promising)
        if found > FALL * gap:
            sigma *= SHARPEN
        gap, centre = found, a
        accuracy = min(accuracy, INNER * gap / scale) if gap > tol * scale else 0.3 * min(accuracy, tol)


def _solved(inner: Problem, solver: Solver, smooth: SmoothedHinge, start: Iterate, accuracy: float) -> Iterate:
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


def _with_best_intercept(inner: Problem, smooth: SmoothedHinge, at: Iterate) -> tuple[Iterate, float]:
    """The point with the best intercept, if that one is better, and its objective."""
    scores = inner.model.scores(at.theta, at.b)
    value = inner.value_at(at.theta, at.b, scores)
    if not inner.model.intercept:
        return at, value
    shift = smooth.balancing_shift(inner.normal_form.score_pieces[0].forward(scores))
    better = inner.value_at(at.theta, at.b + shift, scores + shift)
    return (Iterate(at.theta, at.b + shift, at.dual), better) if better < value else (at, value)


NEEDS = (OneLoss(), ScoresCan((("hinges",),), "hinges"), SmoothTwin())
SOLVER = Solver("nested_multipliers", run, NEEDS, COPIED)
