"""Truncated Newton: smooth losses plus quadratic penalties.

The Newton system is solved by conjugate gradients in well-conditioned coordinates, as accurately as the quadratic
model has proved to be so far and never more than the tolerance needs. Then the objective is minimised over the span of
the new step, the step before and the point itself: their images under X and M are known, so that this costs no product
with either. (Where the classes can nearly be separated, stretching the point is what a Newton method spends its first
steps on.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from cvxstructreg.core.atom import Array
from cvxstructreg.core.certificate import objective_scale
from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers.coordinates import Diagonal, coordinates
from cvxstructreg.solvers.iterate import Iterate, Refusal
from cvxstructreg.solvers.smooth_objective import Curvature, SmoothObjective, minimise_over, refusal

NAME = "newton"
ITERATES = True

#: Newton steps between two points whose scores are computed anew.
REFRESH_EVERY = 5
#: Conjugate gradients stop when a step gains less than PATIENCE * doubt times the average step so far, or when the
#: residual is ACCURACY times the gradient at which the tolerance is met. After m conjugate gradient steps doubt falls
#: by 1 / (m + 1) at most: a step that was short says little about longer ones.
PATIENCE, ACCURACY = 3.0, 0.9
#: Where a whole step keeps less than BROKEN of what the model promised, the model does not see the kinks of the second
#: derivative (squared hinge) that the step crosses: the next ones take the largest curvature within a distance of the
#: scores, NEAR at first, four times as far after each such step and half as far after one that kept its promise. Doubt
#: is no measure then, and conjugate gradients go on until they gain little.
BROKEN, NEAR, PERSISTENCE = 0.25, 0.05, 0.2
#: Differences of objectives below this part of them have no digits left.
ROUND_OFF = 1e-10
#: Conjugate gradients that have to reduce the residual by less than this work in single precision, at half the memory
#: traffic; what round-off leaves is for the next Newton step, whose gradient is in double precision.
LEAST_SINGLE = 1e-4


def accepts(problem: Problem) -> Refusal | None:
    """Smooth terms of the scores with second derivatives, and quadratic terms of the weights."""
    return refusal(problem)


def run(problem: Problem, start: Iterate, tol: float, max_cg: int = 1000) -> Iterator[Iterate]:
    """``max_cg`` limits the conjugate gradient steps for one Newton step."""
    objective = SmoothObjective(problem)
    mu = float(problem.normal_form.ridge.min())
    at = objective.state(start.theta.copy(), start.b.copy())
    value, before, doubt, promised, ahead = objective.value(at), None, 1.0, np.inf, 0.0
    for count in itertools.count(1):
        gradient, slope_b = objective.gradient(at)
        size = _norm(gradient, slope_b)
        # the gap is at most |g|^2 / (4 mu); aim at half of what is asked
        goal = 0.5 * tol * objective_scale(problem, value)
        reach = float(np.sqrt(4.0 * mu * goal))
        close = size <= reach or (promised <= 0.01 * goal and doubt <= 0.1)
        if close or count > 1:
            yield Iterate(at.theta, at.b, promising=bool(close))
        solver = NewtonStep(objective.curvature(at, ahead), max_cg)
        patience = (PERSISTENCE if ahead else PATIENCE) * doubt
        step = objective.state(*solver.solve(gradient, slope_b, ACCURACY * min(size, reach), patience))
        promised = solver.decrease
        kept = value - objective.value(at.moved([step], np.ones(1)))
        doubt = _doubt(promised, kept, value, doubt / (1.0 + solver.steps))
        broken = objective.rowwise and kept < BROKEN * promised and promised > ROUND_OFF * abs(value)
        ahead = max(NEAR, 4.0 * ahead) if broken else 0.5 * ahead if ahead > 1e-6 else 0.0
        moved, reached = minimise_over(objective, at, value, [step] if before is None else [step, before, at])
        if not reached < value:
            # at the end of the digits of the objective the gradient may still have some
            moved, reached = at.moved([step], np.ones(1)), value
            if not _norm(*objective.gradient(moved)) < 0.5 * size:
                yield Iterate(at.theta, at.b, exhausted=True)
                return
        before = at.to(moved)
        # the images have moved along with the point; now and then they are computed anew, before round-off adds up
        at, value = objective.state(moved.theta, moved.b) if count % REFRESH_EVERY == 0 else moved, reached


def _norm(x: Array, xb: Array) -> float:
    return float(np.sqrt(np.vdot(x, x) + np.vdot(xb, xb)))


def _doubt(promised: float, kept: float, value: float, least: float) -> float:
    """How far the quadratic model was from the truth for the whole step, between 0 and 1.

    It is the accuracy that the next step deserves: Eisenstat and Walker's (1996) first choice, for the objective.
    """
    if promised <= ROUND_OFF * abs(value):
        return least  # the difference of two values has no digits left to tell
    return float(np.clip(max(abs(1.0 - kept / promised), least), 1e-8, 1.0))


class NewtonStep:
    """H s = -g by conjugate gradients in coordinates v, s = G^-1 v.

    They stop when ||H s + g|| <= accuracy, or (Nash and Sofer 1990) when the steps no longer gain ``patience`` times
    the average decrease of the quadratic model per step.
    """

    def __init__(self, curvature: Curvature, max_steps: int) -> None:
        self.space, self.max_steps = coordinates(curvature), max_steps
        self.single = curvature.in_single_precision and isinstance(self.space, Diagonal)
        self.steps, self.decrease = 0, 0.0

    def solve(self, gradient: Array, slope_b: Array, accuracy: float, patience: float) -> tuple[Array, Array]:
        """The step; ``decrease`` is what the quadratic model promises of it."""
        space = self.space
        r, rb = space.pull(-gradient, -slope_b)
        if self.single and accuracy >= LEAST_SINGLE * _norm(gradient, slope_b):
            r = r.astype(np.float32)
        s, sb = np.zeros_like(r), np.zeros_like(rb)
        p, pb = r.copy(), rb
        energy = float(np.vdot(r, r)) + float(np.vdot(rb, rb))
        ratio = 0.0  # of ||G'r|| to ||r|| when last measured: measuring takes a pass over the factor
        while self.steps < self.max_steps and energy > 0:
            hp, hb = space.times(p, pb)
            curved = float(np.vdot(p, hp)) + float(np.vdot(pb, hb))
            if curved <= 0:
                break
            self.steps += 1
            length = energy / curved
            gain = 0.5 * length * energy
            self.decrease += gain
            s += length * p
            sb += length * pb
            r -= length * hp
            rb = rb - length * hb
            was, energy = energy, float(np.vdot(r, r)) + float(np.vdot(rb, rb))
            if self.steps * gain <= patience * self.decrease:
                break
            if ratio * np.sqrt(energy) <= accuracy:
                norm = space.norm(r, rb)
                if norm <= accuracy:
                    break
                ratio = 0.9 * norm / np.sqrt(energy)
            p *= energy / was
            p += r
            pb = rb + (energy / was) * pb
        return space.to_weights(s.astype(float), sb)
