"""The smooth part of an objective whose rows stay where the blocks are: a value and its gradient cost one pass.

The values between two points are sums over rows of both, so that line searches cost no pass, and bring back a number
for each block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.certificates.row_sums.kept_dual import kept_rows
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks import kernels
from cvxstructreg.solvers.needs import Need, RowBlockModel

#: A step is accepted if it gains this part of what the gradient promises; it is halved so often at most.
LEAST_GAIN, HALVINGS = 1e-4, 40
#: A difference of objectives below this part of them is round-off.
ROUND_OFF = 1e-13


@dataclass(frozen=True, eq=False)
class Place:
    """A point x = (theta, b), stacked, with its scores where the blocks are, its value and its gradient."""

    x: Array
    state: Any
    value: float
    gradient: Array

    @property
    def theta(self) -> Array:
        """The weights."""
        return self.x[:-1]

    @property
    def b(self) -> Array:
        """The intercepts."""
        return np.asarray(self.x[-1])


@dataclass(frozen=True)
class ScoresStay(Need):
    """Scores that stay where the blocks are."""

    kinds: ClassVar[frozenset[str]] = RowBlockModel.kinds

    def __str__(self) -> str:
        return "data in blocks of rows with scores that stay there"

    def missing(self, problem: Problem) -> str | None:
        """Refuse data in memory, scores in this process, and losses that are no smooth sum over rows."""
        if problem.given.row_blocks is None or not problem.given.row_blocks.keeps_scores:
            return "the scores are in this process"
        if kept_rows(problem.normal_form) is None:
            return "the scores come to this process"
        return None if problem.normal_form.scores_are_smooth else "the loss has kinks"


class KeptSmooth:
    """Values and gradients of the smooth terms at x = (theta, b), stacked."""

    def __init__(self, problem: Problem) -> None:
        self.parts: NormalForm = problem.normal_form
        self.model, self.rows = problem.model, kept_rows(self.parts)
        (self.piece,) = self.parts.score_pieces
        self.penalties = [piece for piece in self.parts.weight_pieces if piece.is_smooth]

    def at(self, x: Array) -> Place:
        """A point, by one pass."""
        theta, b = x[:-1], x[-1]
        state, found = self.rows.run(kernels.value_and_pull, (theta, b), theta)
        value, pull, sums = (sum(each) for each in zip(*found, strict=True))
        scale = self.piece.scale
        grad = scale * pull + self.parts.quadratic_grad(theta)
        for piece in self.penalties:
            grad += piece.adjoint(piece.grad(piece.forward(theta)))
        grad_b = scale * sums if self.model.intercept else np.zeros_like(b)
        return Place(x, state, scale * float(value) + self._on_weights(theta), np.vstack([grad, grad_b]))

    def _on_weights(self, theta: Array) -> float:
        return self.parts.quadratic_value(theta) + sum(piece.value(theta) for piece in self.penalties)

    def value(self, x: Array) -> float:
        """The value at a point, by one pass."""
        values = self.rows.sums(kernels.value_at, x[-1], states=(self.rows.state(x[:-1]),))
        return self.piece.scale * float(sum(values)) + self._on_weights(x[:-1])

    def between(self, at: Place, other: Place, t: float) -> float:
        """The value at a point between two others, without a pass."""
        x = at.x + t * (other.x - at.x)
        values = self.rows.sums(kernels.value_between, t, x[-1], states=(at.state, other.state))
        return self.piece.scale * float(sum(values)) + self._on_weights(x[:-1])

    def searched(self, at: Place, step: Array) -> tuple[Place, float]:
        """The point after a step that is short enough, and the share of the step; the same point if none is."""
        slope = float(np.vdot(at.gradient, step))
        ahead, t = self.at(at.x + step), 1.0
        slack = ROUND_OFF * abs(at.value)
        if ahead.value <= at.value + LEAST_GAIN * slope + slack:
            return ahead, t
        for _ in range(HALVINGS):
            t *= 0.5
            if self.between(at, ahead, t) <= at.value + LEAST_GAIN * t * slope:
                return self.at(at.x + t * step), t
        return at, 0.0

    def bent(self, at: Place, p: Array) -> Array:
        """The Hessian at a point times a direction, by one pass."""
        found = self.rows.pass_with(kernels.hessian_pull, (p[:-1], p[-1], at.b), (at.state,))
        pull, sums = (sum(part) for part in zip(*found, strict=True))
        product = self.piece.scale * pull + self.parts.quadratic_grad(p[:-1])
        for piece in self.penalties:
            bend = piece.atom.hessp(piece.forward(at.theta), piece.forward(p[:-1]))
            product += piece.scale * piece.adjoint(bend)
        return np.vstack([product, self.piece.scale * sums if self.model.intercept else np.zeros_like(p[-1])])

    def diagonal(self, at: Place) -> Array:
        """About the diagonal of the Hessian: the mean curvature of each output times squared columns, and ridges."""
        totals = self.piece.scale * sum(self.rows.sums(kernels.curvature_totals, at.b, states=(at.state,)))
        weights = self.parts.column_norms[:, None] ** 2 * (totals / self.model.n_rows) + 2.0 * self.parts.ridge[:, None]
        diagonal = np.vstack([weights, totals[None, :]])
        return np.asarray(np.maximum(diagonal, np.finfo(float).eps * max(float(diagonal.max()), 1e-300)))
