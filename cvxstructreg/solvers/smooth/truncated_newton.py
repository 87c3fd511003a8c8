"""Truncated Newton: smooth losses plus quadratic penalties.

Conjugate gradients solve the Newton system in well-conditioned coordinates. Their accuracy follows the accuracy of the
quadratic model in the last step, and is never higher than the tolerance requires. Then the objective is minimised over
the span of the new step, the previous step and the point itself. The images of all three under X and M are known, so
this search needs no matrix product. (If the classes are nearly separable, the first steps of a Newton method mainly
rescale the point.)
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
from cvxstructreg.solvers.sizes import ManyData
from cvxstructreg.solvers.smooth.conjugate_gradients import NewtonStep
from cvxstructreg.solvers.smooth.curvature import Curvature
from cvxstructreg.solvers.smooth.smooth_objective import NEEDS, SmoothObjective, Span, State
from cvxstructreg.solvers.solver import Solver

#: Newton steps between two points whose scores are recomputed from the weights.
REFRESH_EVERY = 5
#: Conjugate gradients stop when a step gains less than PATIENCE * doubt times the average gain so far, or when the
#: smoothed residual is small enough for the tolerance and at most ACCURACY times the gradient. "Doubt" measures how
#: inaccurate the quadratic model was in the last Newton step. After m conjugate gradient steps it may fall by a factor
#: of at most m + 1, since a short step says little about longer ones. With dense data, DENSE_PATIENCE is used instead.
PATIENCE, DENSE_PATIENCE, ACCURACY = 1.0, 3.0, 0.9
#: The part of the allowed gap that a step aims at.
AIM = 0.8
#: If a full step achieves less than BROKEN times the predicted decrease, it has crossed kinks of the derivative
#: (squared hinge) that the quadratic model does not contain. The next steps then use the largest curvature within a
#: distance of the scores. The distance is NEAR at first, is multiplied by 4 after each such step, and is halved after
#: every other step. Doubt is not meaningful in this case, so PERSISTENCE replaces PATIENCE.
BROKEN, NEAR, PERSISTENCE = 0.25, 0.05, 0.2
#: Below this distance, the plain curvature is used again.
NEAREST = 1e-6
#: Large dense data are multiplied in single precision for at most MOST_ROUGH Newton steps. Double precision takes over
#: earlier if a step is broken in the above sense, or takes more than LONG conjugate gradient steps, which round-off
#: slows down. From then on an exact diagonal pays off too.
MOST_ROUGH, LONG = 12, 50
#: A difference of objectives below this part of them is round-off.
ROUND_OFF = 1e-10
#: A point is worth certifying if the predicted decrease is below this part of the allowed gap, and doubt is small.
SMALL_DECREASE, SMALL_DOUBT = 0.005, 0.1


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
        # the gap is at most |g|^2 / (4 mu); aim at slightly less than the allowed gap
        reach = float(np.sqrt(4.0 * proof.least_ridge * AIM * allowed))
        close = size <= reach or (promised <= SMALL_DECREASE * allowed and doubt <= SMALL_DOUBT)
        if close or count > 1:
            yield Iterate(at.theta, at.b, promising=bool(close))
        solver = NewtonStep(curvature, max_cg, single or objective.dense is None)
        usual = DENSE_PATIENCE if isinstance(objective.design, np.ndarray) else PATIENCE
        patience = (PERSISTENCE if ahead else usual) * doubt
        accuracy = min(ACCURACY * size, proof.candidate_size(reach))
        theta = solver.solve(gradient, accuracy, patience, proof.excess(AIM * allowed))
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
        ahead = max(NEAR, 4.0 * ahead) if broken else 0.5 * ahead if ahead > NEAREST else 0.0
        moved = at.plus(move)
        objective.wants_diagonal |= solver.steps > LONG
        if single and (broken or not reached < value or solver.steps > LONG or count >= MOST_ROUGH):
            single = False  # for the rest of the solve
            if not reached < value:
                at = objective.exactly(at)
                value = objective.value(at)
                continue
        if not reached < value:
            # the decrease is below the round-off of the objective, but the gradient may still improve
            move, moved, reached = step, at.plus(step), value
            if not np.linalg.norm(curvature.gradient(moved)[0]) < 0.5 * size:
                yield Iterate(at.theta, at.b, exhausted=True)
                return
        before = move
        # the images were updated along with the point; recompute them regularly, before round-off accumulates
        at, value = objective.state(moved.theta, moved.b) if count % REFRESH_EVERY == 0 else moved, reached


class Proof:
    """The gap caused by a residual r of the optimality conditions: 1/4 r'M^-1 r, or an upper bound on it."""

    def __init__(self, objective: SmoothObjective) -> None:
        self.ridge = objective.parts.ridge
        self.least_ridge = float(self.ridge.min())
        self.times, self.diagonal = objective.quadratic.apply, refined_by(objective.parts)
        # how much the last bound |r|^2 / (4 mu) exceeded the gap, as a factor of |r|
        self.looseness = 1.0 if self.diagonal is None else 2.0
        self.gap = np.inf

    def candidate_size(self, reach: float) -> float:
        """The size of a residual that may be small enough; the size ``reach`` certainly is."""
        return self.looseness * reach

    def excess(self, allowed: float) -> Callable[[Array], float]:
        """A function of a residual: the factor by which the residual is too large for the allowed gap."""

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
    """The point after a step with the dual point phi'(F) + phi''(F) (step), and the Fenchel gap of the loss there.

    This dual point satisfies the linearised optimality conditions exactly, whereas the gradient after the step has
    errors of second order. The Fenchel gap of the loss is of second order in these errors.
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
    """The relative error of the quadratic model for the full step, between 0 and 1.

    The next step uses it as its accuracy: the first choice of Eisenstat and Walker (1996), applied to the objective.
    """
    if promised <= ROUND_OFF * abs(value):
        return least  # the difference of the two values is round-off
    return float(np.clip(max(abs(1.0 - kept / promised), least), 1e-8, 1.0))


SOLVER = Solver("newton", run, NEEDS, by_passes=True, fastest_if=(ManyData(or_smooth=True),))
