"""Truncated Newton: smooth losses plus quadratic penalties.

The Newton system is solved by conjugate gradients in well-conditioned coordinates, as accurately as the quadratic
model has proved to be so far and never more than the tolerance needs. Then the objective is minimised over the span of
the new step, the step before and the point itself: their images under X and M are known, so that this costs no product
with either. (Where the classes can nearly be separated, stretching the point is what a Newton method spends its first
steps on.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.certificates.quadratic_conjugate import conjugate_bound, refined_by
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.smooth.conjugate_gradients import NewtonStep
from cvxstructreg.solvers.smooth.curvature import Curvature
from cvxstructreg.solvers.smooth.smooth_objective import NEEDS, SmoothObjective, Span, State
from cvxstructreg.solvers.solver import Solver

#: Newton steps between two points whose scores are computed anew.
REFRESH_EVERY = 5
#: Conjugate gradients stop when a step gains less than PATIENCE * doubt times the average step so far, or when the
#: residual is ACCURACY times the gradient at which the tolerance is met. After m conjugate gradient steps doubt falls
#: by 1 / (m + 1) at most: a step that was short says little about longer ones.
PATIENCE, ACCURACY, AIM = 3.0, 0.9, 0.8
#: Where a whole step keeps less than BROKEN of what the model promised, the model does not see the kinks of the second
#: derivative (squared hinge) that the step crosses: the next ones take the largest curvature within a distance of the
#: scores, NEAR at first, four times as far after each such step and half as far after one that kept its promise. Doubt
#: is no measure then, and conjugate gradients go on until they gain little.
BROKEN, NEAR, PERSISTENCE = 0.25, 0.05, 0.2
#: Large dense data are multiplied in single precision for so many Newton steps at most, and until a step breaks its
#: promise or takes LONG conjugate gradient steps, which round-off slows down. From there on an exact diagonal pays too.
MOST_ROUGH, LONG = 12, 50
#: Differences of objectives below this part of them have no digits left.
ROUND_OFF = 1e-10


def run(problem: Problem, start: Iterate, tol: float, max_cg: int = 1000) -> Iterator[Iterate]:
    """``max_cg`` limits the conjugate gradient steps for one Newton step."""
    objective = SmoothObjective(problem)
    proof = Proof(objective)
    at = objective.state(start.theta.copy(), start.b.copy())
    value, before, doubt, promised, ahead, single = objective.value(at), None, 1.0, np.inf, 0.0, objective.has_single
    for count in itertools.count(1):
        allowed = tol * objective_scale(problem, value)
        objective.rough = single and objective.single_will_do(at, allowed)
        curvature = Curvature(objective, at, ahead)
        gradient, slope_b = curvature.gradient(at)
        size = float(np.linalg.norm(gradient))
        # the gap is at most |g|^2 / (4 mu); aim at somewhat less than is asked
        reach = float(np.sqrt(4.0 * proof.least_ridge * AIM * allowed))
        close = size <= reach or (promised <= 0.005 * allowed and doubt <= 0.1)
        if close or count > 1:
            yield Iterate(at.theta, at.b, promising=bool(close))
        solver = NewtonStep(curvature, max_cg, single or objective.dense is None)
        patience = (PERSISTENCE if ahead else PATIENCE) * doubt
        theta = solver.solve(gradient, min(ACCURACY * size, proof.look(reach)), patience, proof.excess(AIM * allowed))
        if solver.enough:
            trial, missed = _linearised(objective, at, curvature, solver.average(), slope_b)
            if missed + proof.gap <= allowed:
                yield trial
        step = curvature.step(theta, slope_b)
        promised = solver.decrease
        span = Span(objective, at, value, [step] if before is None else [step, before, at])
        move, reached = span.minimise(), span.best
        kept = value - span.whole
        doubt = _doubt(promised, kept, value, doubt / (1.0 + solver.steps))
        broken = objective.rowwise and kept < BROKEN * promised and promised > ROUND_OFF * abs(value)
        ahead = max(NEAR, 4.0 * ahead) if broken else 0.5 * ahead if ahead > 1e-6 else 0.0
        moved = at.plus(move)
        objective.wants_diagonal |= solver.steps > LONG
        if single and (broken or not reached < value or solver.steps > LONG or count >= MOST_ROUGH):
            single = False  # from now on
            if not reached < value:
                at = objective.exactly(at)
                value = objective.value(at)
                continue
        if not reached < value:
            # at the end of the digits of the objective the gradient may still have some
            move, moved, reached = step, at.plus(step), value
            if not np.linalg.norm(curvature.gradient(moved)[0]) < 0.5 * size:
                yield Iterate(at.theta, at.b, exhausted=True)
                return
        before = move
        # the images have moved along with the point; now and then they are computed anew, before round-off adds up
        at, value = objective.state(moved.theta, moved.b) if count % REFRESH_EVERY == 0 else moved, reached


class Proof:
    """The gap that a residual r of the optimality conditions leaves, 1/4 r'M^-1 r, or a bound of it."""

    def __init__(self, objective: SmoothObjective) -> None:
        self.ridge = objective.parts.ridge
        self.least_ridge = float(self.ridge.min())
        self.times, self.diagonal = objective.quadratic.apply, refined_by(objective.parts)
        self.looseness = 1.0 if self.diagonal is None else 2.0  # of |r| / (4 mu)^(1/2) as a bound, as seen last
        self.gap = np.inf

    def look(self, reach: float) -> float:
        """The size of a residual that may be small enough, where ``reach`` certainly is."""
        return self.looseness * reach

    def excess(self, allowed: float) -> Callable[[Array], float]:
        """By which factor a residual is too large for a gap."""

        def factor(r: Array) -> float:
            simple = float(np.sum(r**2 / self.ridge[:, None])) / 4.0 if self.least_ridge > 0 else np.inf
            self.gap = simple
            if self.diagonal is not None and simple > allowed:
                self.gap = conjugate_bound(self.times, self.diagonal, self.ridge, r)
                self.looseness = float(np.sqrt(float(np.vdot(r, r)) / (4.0 * self.least_ridge * self.gap)))
            return float(np.sqrt(self.gap / allowed))

        return factor


def _linearised(
    objective: SmoothObjective, at: State, curvature: Curvature, theta: Array, slope_b: Array
) -> tuple[Iterate, float]:
    """The point at the end of a step with the dual point phi'(F) + phi''(F) (step), and what it misses to be exact.

    The gradient at the end of the step has errors of second order; this dual point has none, and its conjugate is
    second order in them.
    """
    step = curvature.step(theta, slope_b)
    moved = at.plus(step)
    dual, missed = {}, 0.0
    pieces = objective.parts.score_pieces
    alone = objective.rowwise and len(pieces) == 1 and pieces[0].K is None and not objective.parts.score_forms
    for piece, bending in zip(pieces, curvature.of_scores.pieces, strict=True):
        x = piece.forward(step.scores)
        u = piece.grad(bending.z) + (curvature.rows * x if alone else bending.bent(x))
        z = piece.forward(moved.scores)
        missed += piece.scale * piece.atom.value(z) + piece.conj(u) - float(np.vdot(u, z))
        dual[piece.number] = u
    return Iterate(moved.theta, moved.b, dual, promising=True), missed


def _doubt(promised: float, kept: float, value: float, least: float) -> float:
    """How far the quadratic model was from the truth for the whole step, between 0 and 1.

    It is the accuracy that the next step deserves: Eisenstat and Walker's (1996) first choice, for the objective.
    """
    if promised <= ROUND_OFF * abs(value):
        return least  # the difference of two values has no digits left to tell
    return float(np.clip(max(abs(1.0 - kept / promised), least), 1e-8, 1.0))


SOLVER = Solver("newton", run, NEEDS)
