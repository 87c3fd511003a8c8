"""Truncated Newton: smooth losses plus quadratic penalties.

The Newton system is solved by preconditioned conjugate gradients, only as accurately as the progress so far deserves
(Eisenstat and Walker 1996) and never more than the tolerance needs. The step is not just shortened or not: the objective is
minimised over the plane of the new step, the one before and the point itself, whose images under X and M are known, so
that this costs no product with either.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxstructreg.core.atom import Array
from cvxstructreg.core.certificate import objective_scale
from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers.iterate import Iterate, Refusal
from cvxstructreg.solvers.smooth_objective import Curvature, SmoothObjective, State, refusal

NAME = "newton"
ITERATES = True

#: Newton steps between two iterates that are handed over although the bound of the gap is not within tolerance.
REPORT_EVERY = 10


def accepts(problem: Problem) -> Refusal | None:
    """Smooth terms of the scores with second derivatives, and quadratic terms of the weights."""
    return refusal(problem)


def run(problem: Problem, start: Iterate, tol: float, max_cg: int = 1000) -> Iterator[Iterate]:
    """``max_cg`` limits the conjugate gradient steps for one Newton step."""
    objective = SmoothObjective(problem)
    mu = float(problem.normal_form.ridge.min())
    at = objective.state(start.theta.copy(), start.b.copy())
    value, before, doubt = objective.value(at), None, 1.0
    count = 0
    while True:
        gradient, slope_b = objective.gradient(at)
        # the gap is g'M^-1 g / 4, once the intercepts are the best for theta; aim at half of what is asked
        goal = 0.5 * tol * objective_scale(problem, value)
        reach = np.sqrt(4.0 * mu * goal)
        size = float(np.sqrt(np.vdot(gradient, gradient) + np.vdot(slope_b, slope_b)))
        if size <= reach or mu == 0 or count % REPORT_EVERY == REPORT_EVERY - 1:
            yield Iterate(at.theta, at.b)
        count += 1
        curvature = objective.curvature(at)
        system = ConjugateGradients(curvature, max_cg)
        step = system.solve(gradient, slope_b, ACC * min(size, reach), CC * min(1.0, doubt**EE))
        step = objective.state(*step)
        predicted = system.decrease
        unit = value - objective.value(at.moved([step], np.ones(1)))
        doubt = abs(1 - unit / predicted)
        directions = [step] if before is None else [step, before, at]
        at_new, value_new = minimise_over(objective, at, value, directions)
        if VERB: print(count, value, 'size/reach', size/reach, 'cg', system.steps, 'unit/pred', unit/predicted, 'got', (value-value_new)/predicted)
        if not value_new < value:
            yield Iterate(at.theta, at.b, exhausted=True)
            return
        before = _difference(at_new, at)
        at, value = objective.state(at_new.theta, at_new.b), value_new

VERB=False
ACC=.5
CC=.5
EE=1.
def _difference(new: State, old: State) -> State:
    return State(new.theta - old.theta, new.b - old.b, new.scores - old.scores, new.pulled - old.pulled)


class ConjugateGradients:
    """Solves H s = -g, preconditioned by the diagonal of H."""

    def __init__(self, curvature: Curvature, max_steps: int) -> None:
        self.curvature, self.max_steps = curvature, max_steps
        diagonal, diagonal_b = curvature.diagonal()
        floor = 1e-12 * max(float(diagonal.max()), 1e-300)
        self.scale = 1.0 / np.maximum(diagonal, floor)
        self.scale_b = np.where(diagonal_b > 0, 1.0 / np.where(diagonal_b > 0, diagonal_b, 1.0), 0.0)
        self.steps = 0

    def solve(self, gradient: Array, slope_b: Array, accuracy: float, patience: float) -> tuple[Array, Array]:
        """s with ||H s + g|| <= accuracy."""
        s, sb = np.zeros_like(gradient), np.zeros_like(slope_b)
        r, rb = -gradient, -slope_b
        z, zb = self.scale * r, self.scale_b * rb
        p, pb = z, zb
        energy = float(np.vdot(r, z) + np.vdot(rb, zb))
        self.decrease = 0.0
        for self.steps in range(1, self.max_steps + 1):
            hp, hb = self.curvature.times(p, pb)
            curved = float(np.vdot(p, hp) + np.vdot(pb, hb))
            if curved <= 1e-300:
                break
            length = energy / curved
            gain = 0.5 * length * energy
            self.decrease += gain
            s += length * p
            sb += length * pb
            r -= length * hp
            rb = rb - length * hb
            if np.sqrt(np.vdot(r, r) + np.vdot(rb, rb)) <= accuracy or self.steps * gain <= patience * self.decrease:
                break
            z, zb = self.scale * r, self.scale_b * rb
            energy, was = float(np.vdot(r, z) + np.vdot(rb, zb)), energy
            p = z + (energy / was) * p
            pb = zb + (energy / was) * pb
        return (s, sb) if s.any() or sb.any() else (z, zb)


def minimise_over(
    objective: SmoothObjective, at: State, value: float, directions: list[State], max_steps: int = 8
) -> tuple[State, float]:
    """The minimum of P over ``at`` plus the span of the directions, by damped Newton steps in few variables."""
    m = len(directions)
    linear = 2.0 * np.array([np.vdot(p.theta, at.pulled) for p in directions])
    gram = np.array([[2.0 * np.vdot(p.theta, q.pulled) for q in directions] for p in directions])
    base = value - objective.score_value(at.scores)
    parts = objective.parts

    def scores_at(c: Array) -> Array:
        return at.scores + sum(x * p.scores for x, p in zip(c, directions, strict=True))

    def value_at(c: Array) -> float:
        return objective.score_value(scores_at(c)) + base + float(linear @ c + 0.5 * c @ gram @ c)

    c, best, gained = np.zeros(m), value, 0.0
    trial = np.eye(m)[0]
    for _ in range(max_steps):
        reached = value_at(trial)
        halvings = 0
        while not reached < best and halvings < 30:
            trial, halvings = 0.5 * (trial + c), halvings + 1
            reached = value_at(trial)
        if not reached < best:
            break
        c, gain, best = trial, best - reached, reached
        gained += gain
        if gain <= 0.01 * gained < gained:
            break
        scores = scores_at(c)
        slope = parts.smooth_score_grad(scores)
        gradient = np.array([np.vdot(p.scores, slope) for p in directions]) + linear + gram @ c
        bent = [parts.smooth_score_hessp(scores, p.scores) for p in directions]
        hessian = np.array([[np.vdot(p.scores, q) for q in bent] for p in directions]) + gram
        trial = c - np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
    return at.moved(directions, c), best
