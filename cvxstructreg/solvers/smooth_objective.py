"""The objective of the second-order solvers: smooth terms of the scores plus quadratic terms of the weights.

    P(theta, b) = phi(F) + <theta, M theta>,   F = X theta + 1 b'

A :class:`State` keeps F and M theta with the point, so that moving along directions whose images are known costs no
product with X or M.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxstructreg.core.atom import Array
from cvxstructreg.core.normal_form import NormalForm
from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers.iterate import Refusal
from cvxstructreg.solvers.products import Product, by_rows, squared
from cvxstructreg.solvers.quadratic_part import QuadraticPart
from cvxstructreg.solvers.score_curvature import ScoreCurvature, is_rowwise

#: Minimising over a few directions ends with a step that gains less than this part of the whole.
LEAST_GAIN = 0.1


def refusal(problem: Problem) -> Refusal | None:
    """Why a problem is not of this form, in words; None if it is."""
    linear = problem.linear()
    parts = linear.normal_form
    for piece in parts.score_pieces:
        if not piece.atom.can("grad", "hessp"):
            return Refusal(f"{piece.atom!r} has no second derivatives")
    if parts.separable is not None:
        return Refusal("absolute values or bounds on the weights have no gradient")
    if parts.weight_pieces:
        name = type(linear.terms[parts.weight_pieces[0].number].atom).__name__
        return Refusal(f"{name} is not a quadratic function of the weights")
    return None


@dataclass(frozen=True, eq=False)
class State:
    """A point, or a direction, with its images: F = X theta + 1 b' and M theta."""

    theta: Array
    b: Array
    scores: Array
    pulled: Array

    def moved(self, directions: Sequence[State], lengths: Array) -> State:
        """The point plus a combination of directions."""
        theta, b, scores, pulled = (x.copy() for x in (self.theta, self.b, self.scores, self.pulled))
        for direction, length in zip(directions, lengths, strict=True):
            theta += length * direction.theta
            b += length * direction.b
            scores += length * direction.scores
            pulled += length * direction.pulled
        return State(theta, b, scores, pulled)

    def to(self, other: State) -> State:
        """The direction from here to there."""
        return State(other.theta - self.theta, other.b - self.b, other.scores - self.scores, other.pulled - self.pulled)


class SmoothObjective:
    """Values, gradients and Hessian products of P."""

    def __init__(self, problem: Problem) -> None:
        self.parts: NormalForm = problem.normal_form
        self.design = problem.model.design
        self.intercept = problem.model.intercept
        self.shape = (problem.model.n_weights, problem.n_outputs)
        self.quadratic = QuadraticPart(self.parts)
        self.forward = Product(self.design)
        self.adjoint = Product(self.design.T if self.shape[1] == 1 else by_rows(self.design.T))
        self.squares = Product(squared(self.adjoint.matrix))
        self.rowwise = (
            self.shape[1] == 1
            and all(is_rowwise(piece) for piece in self.parts.score_pieces)
            and all(scaled.form.diagonal is not None for scaled in self.parts.score_forms)
        )
        self.compiled = self.forward.compiled if self.rowwise else None

    def state(self, theta: Array, b: Array) -> State:
        """The point with its images."""
        return State(theta, b, self.forward.plus(b, theta), self.quadratic.apply(theta))

    def score_value(self, scores: Array) -> float:
        """phi(F)."""
        total = sum(piece.value(scores) for piece in self.parts.score_pieces)
        return float(total + sum(form.value(scores) for form in self.parts.score_forms))

    def value(self, at: State) -> float:
        """P."""
        return self.score_value(at.scores) + float(np.vdot(at.theta, at.pulled))

    def gradient(self, at: State) -> tuple[Array, Array]:
        """(X' phi'(F) + 2 M theta, 1' phi'(F)); the second part is zero without intercept."""
        slope = self.parts.smooth_score_grad(at.scores)
        grad_b = slope.sum(axis=0) if self.intercept else np.zeros(self.shape[1])
        return self.adjoint.plus(2.0 * at.pulled, slope), grad_b


def minimise_over(
    objective: SmoothObjective, at: State, value: float, directions: list[State], max_steps: int = 8
) -> tuple[State, float]:
    """The minimum of P over ``at`` plus the span of the directions, and its value, by damped Newton steps.

    It begins with the whole first direction; with images known, a step costs a few passes over the scores.
    """
    weights = np.stack([p.theta.ravel() for p in directions])
    linear = 2.0 * weights @ at.pulled.ravel()
    gram = 2.0 * weights @ np.stack([p.pulled.ravel() for p in directions]).T
    images = np.stack([p.scores.ravel() for p in directions])
    quadratic = value - objective.score_value(at.scores)
    parts = objective.parts

    def scores_at(c: Array) -> Array:
        return np.asarray(at.scores + (c @ images).reshape(at.scores.shape))

    def value_at(c: Array, scores: Array) -> float:
        return objective.score_value(scores) + quadratic + float(linear @ c + 0.5 * c @ gram @ c)

    c, best = np.zeros(len(directions)), value
    trial = np.eye(len(directions))[0]
    for _ in range(max_steps):
        scores, halvings = scores_at(trial), 0
        reached = value_at(trial, scores)
        while not reached < best and halvings < 30:
            trial, halvings = 0.5 * (trial + c), halvings + 1
            scores = scores_at(trial)
            reached = value_at(trial, scores)
        if not reached < best:
            break
        gain, c, best = best - reached, trial, reached
        if gain <= LEAST_GAIN * (value - best):
            break
        gradient = images @ parts.smooth_score_grad(scores).ravel() + linear + gram @ c
        bent = ScoreCurvature(parts, scores).times_each(images.reshape(len(images), *scores.shape))
        hessian = images @ bent.reshape(images.shape).T + gram
        trial = c - np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
    return at.moved(directions, c), best
