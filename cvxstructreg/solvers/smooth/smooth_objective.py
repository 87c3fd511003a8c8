"""The objective of the second-order solvers: smooth terms on the scores plus smooth terms on the weights.

    P(theta, b) = phi(F) + <theta, M theta> + h(theta),   F = X theta + 1 b'

A :class:`State` stores F and M theta with the point. A move along directions with known images then needs no product
with X or M.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.solvers.needs import ScoresCan, SmoothWeights, acts_by_row
from cvxstructreg.solvers.smooth import matrix_products
from cvxstructreg.solvers.smooth.matrix_products import DenseRows, Product, by_rows, squared
from cvxstructreg.solvers.smooth.penalty_part import PenaltyPart
from cvxstructreg.solvers.smooth.quadratic_part import QuadraticPart
from cvxstructreg.solvers.smooth.score_curvature import ScoreCurvature

#: What solvers for this objective require of a problem.
NEEDS = (ScoresCan((("grad", "hessp"),), "second derivatives"), SmoothWeights())

#: Dense data with at least SINGLE_FROM entries are multiplied in single precision where that is accurate enough, if the
#: norms of all columns are between 1 / SINGLE_RANGE and SINGLE_RANGE.
SINGLE_FROM, SINGLE_RANGE = 500_000, 1e12
#: With intercepts, single precision also requires each column to have this variance, relative to its mean square.
LEAST_VARIANCE = 1e-3
#: The part of the allowed gap that round-off may cost.
NEGLIGIBLE = 0.1
#: The search over a few directions ends with a step that gains less than this part of the total gain.
LEAST_GAIN = 0.1
#: How often a step of this search is halved at most.
MOST_HALVINGS = 30


@dataclass(frozen=True, eq=False)
class State:
    """A point, or a direction, with its images: F = X theta + 1 b' and M theta."""

    theta: Array
    b: Array
    scores: Array
    pulled: Array

    def plus(self, direction: State) -> State:
        """The point plus a direction."""
        return State(
            self.theta + direction.theta,
            self.b + direction.b,
            self.scores + direction.scores,
            self.pulled + direction.pulled,
        )

    def to(self, other: State) -> State:
        """The direction from this point to another."""
        return State(other.theta - self.theta, other.b - self.b, other.scores - self.scores, other.pulled - self.pulled)


class SmoothObjective:
    """Values, gradients and Hessian products of P."""

    def __init__(self, problem: Problem) -> None:
        self.parts: NormalForm = problem.normal_form
        self.design = problem.model.design
        self.intercept = problem.model.intercept
        self.shape = (problem.model.n_weights, problem.n_outputs)
        self.quadratic, self.penalty = QuadraticPart(self.parts), PenaltyPart(self.parts)
        self.forward = Product(self.design)
        self.adjoint = Product(self.design.T if self.shape[1] == 1 else by_rows(self.design.T))
        self.rowwise = (
            self.shape[1] == 1
            and all(acts_by_row(piece) for piece in self.parts.score_pieces)
            and all(scaled.form.diagonal is not None for scaled in self.parts.score_forms)
        )
        self.compiled = self.forward.compiled if self.rowwise else None
        self.blocks = problem.model.row_blocks if self.rowwise else None
        self.dense = DenseRows(self.design) if self.rowwise and isinstance(self.design, np.ndarray) else None
        self.first_diagonal: Array | None = None  # the diagonal of the data part of the Hessian at the first point
        self.wants_diagonal = False  # whether to compute this diagonal at every point
        self.rough = False  # whether images and gradients are currently computed in single precision

    @cached_property
    def has_single(self) -> bool:
        """Whether dense data are large enough for a single-precision copy to pay off, and within its range."""
        if self.dense is None or self.design.size < SINGLE_FROM or self.penalty.any:
            return False
        norms = self.dense.single_norms
        within = bool(norms.max() <= SINGLE_RANGE and norms[norms > 0].min(initial=1.0) >= 1.0 / SINGLE_RANGE)
        if within and self.intercept:
            # the intercepts remove the means: the remainder must be well above round-off
            sums = self.dense.pull(np.ones((len(self.design), 1)), single=True)[:, 0]
            within = bool(np.all(sums**2 <= (1.0 - LEAST_VARIANCE) * len(self.design) * norms**2))
        if within:
            self.parts.keep_column_norms(norms)
        return within

    @cached_property
    def within_single(self) -> bool:
        """Whether sparse data are within the range of single precision."""
        largest = float(np.abs(self.design.data).max(initial=0.0))
        return 1.0 / SINGLE_RANGE <= largest <= SINGLE_RANGE

    def single_will_do(self, at: State, allowed: float) -> bool:
        """Whether single-precision round-off costs far less than a gap of ``allowed`` at this point.

        An error e of the scores costs 1/2 e'phi''e, and an error r of the gradient costs 1/4 r'M^-1 r.
        """
        ridge = self.parts.ridge
        if not self.has_single or not ridge.min() > 0:
            return False
        squares, eps = self.parts.column_norms**2, float(np.finfo(np.float32).eps)
        slope, bend = self.parts.smooth_score_grad(at.scores), ScoreCurvature(self.parts, at.scores).diagonal()
        of_scores = 0.5 * float(bend.max()) * float(squares.sum()) * float(np.vdot(at.theta, at.theta))
        of_gradient = 0.25 * float(np.vdot(slope, slope)) * float(np.sum(squares / ridge))
        return eps**2 * (of_scores + of_gradient) <= NEGLIGIBLE * allowed

    def image(self, theta: Array) -> Array:
        """X theta."""
        return self.forward.times(theta) if self.dense is None else self.dense.times(theta, self.rough)

    def pull(self, u: Array) -> Array:
        """X'u."""
        return self.adjoint.times(u) if self.dense is None else self.dense.pull(u, self.rough)

    @property
    def has_nearly_diagonal(self) -> bool:
        """Whether the diagonal at the first point may be rescaled for other points.

        The reason may be one output and dense or small data, or data in blocks, where it saves a pass.
        """
        if self.blocks is not None:
            return True
        return self.rowwise and (self.dense is not None or self.design.nnz < matrix_products.COMPILE_FROM)

    def data_diagonal(self, rows: Array) -> Array:
        """The diagonal of X'diag(rows)X."""
        if self.has_nearly_diagonal and bool(np.all(rows == rows[0])):
            return self.parts.column_norms[:, None] ** 2 * rows[0]
        return self.squares.times(rows) if self.dense is None else self.dense.weighted_squares(rows)

    @cached_property
    def squares(self) -> Product:
        """Products with the squares of X'."""
        return Product(squared(self.adjoint.matrix))

    def state(self, theta: Array, b: Array) -> State:
        """The point with its images."""
        if not theta.any():
            return State(theta, b, np.zeros((self.parts.model.n_rows, len(b))) + b, np.zeros_like(theta))
        return State(theta, b, self.image(theta) + b, self.quadratic.apply(theta))

    def exactly(self, at: State) -> State:
        """The same point, with its images recomputed in double precision."""
        self.rough = False
        return self.state(at.theta, at.b)

    def score_value(self, scores: Array) -> float:
        """phi(F)."""
        total = sum(piece.value(scores) for piece in self.parts.score_pieces)
        return float(total + sum(form.value(scores) for form in self.parts.score_forms))

    def value(self, at: State) -> float:
        """P."""
        value = self.score_value(at.scores) + float(np.vdot(at.theta, at.pulled))
        return value + self.penalty.value(at.theta) if self.penalty.any else value

    def gradient(self, at: State) -> tuple[Array, Array]:
        """(X' phi'(F) + 2 M theta + h'(theta), 1' phi'(F)); the second part is zero without intercept."""
        slope = self.parts.smooth_score_grad(at.scores)
        grad_b = slope.sum(axis=0) if self.intercept else np.zeros(self.shape[1])
        return self.pull(slope) + self.weight_grad(at), grad_b

    def weight_grad(self, at: State) -> Array:
        """2 M theta + h'(theta)."""
        return 2.0 * at.pulled + self.penalty.grad(at.theta) if self.penalty.any else 2.0 * at.pulled


class Span:
    """P over a point plus the span of a few directions with known images; a step costs a few passes over the scores.

    The search begins with the full first direction. ``whole`` is the value there, ``best`` is the lowest value found,
    and ``shares`` are the coefficients of the directions that reach it.
    """

    def __init__(self, objective: SmoothObjective, at: State, value: float, directions: list[State]) -> None:
        self.objective, self.at, self.value = objective, at, value
        self.directions = directions
        self._weights = np.stack([p.theta.ravel() for p in directions])
        self._pulled = np.stack([p.pulled.ravel() for p in directions])
        self._images = np.stack([p.scores.ravel() for p in directions])
        with np.errstate(over="ignore", invalid="ignore"):  # directions that are much too long
            self._linear = 2.0 * self._weights @ at.pulled.ravel()
            self._gram = 2.0 * self._weights @ self._pulled.T
        self._quadratic = float(np.vdot(at.theta, at.pulled))
        self.whole = self.best = value
        self.shares = np.zeros(len(directions))

    def _at(self, c: Array) -> tuple[Array, float]:
        """Scores and value at a combination of the directions."""
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is much too long; its value is not accepted
            scores = self.at.scores + (c @ self._images).reshape(self.at.scores.shape)
            quadratic = self._quadratic + float(self._linear @ c + 0.5 * c @ self._gram @ c)
            if self.objective.penalty.any:
                quadratic += self.objective.penalty.value(self._theta(c))
            return scores, self.objective.score_value(scores) + quadratic

    def _theta(self, c: Array) -> Array:
        return np.asarray(self.at.theta + (c @ self._weights).reshape(self.at.theta.shape))

    def minimise(self, max_steps: int = 8) -> State:
        """The move to the minimiser over the span, by damped Newton steps."""
        m = len(self.directions)
        c, trial = np.zeros(m), np.eye(m)[0]
        for count in range(max_steps):
            scores, reached = self._at(trial)
            if count == 0:
                self.whole = reached
            halvings = 0
            while not reached < self.best and halvings < MOST_HALVINGS:
                trial, halvings = 0.5 * (trial + c), halvings + 1
                scores, reached = self._at(trial)
            if not reached < self.best:
                break
            gain, c, self.best = self.best - reached, trial, reached
            if gain <= LEAST_GAIN * (self.value - self.best):
                break
            step = self._newton_step(c, scores)
            if step is None:
                break
            trial = c + step
        self.shares = c
        return self._move(c)

    def _newton_step(self, c: Array, scores: Array) -> Array | None:
        """The Newton step in the span; None if the directions are so long that their products overflow."""
        parts, images = self.objective.parts, self._images
        curvature = ScoreCurvature(parts, scores)
        if self.objective.rowwise:
            bent = images * curvature.diagonal()[:, 0]
        else:
            bent = curvature.times_each(images.reshape(len(images), *scores.shape)).reshape(images.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = images @ parts.smooth_score_grad(scores).ravel() + self._linear + self._gram @ c
            gram = images @ bent.T + self._gram
        if self.objective.penalty.any:
            theta, penalty = self._theta(c), self.objective.penalty
            gradient = gradient + self._weights @ penalty.grad(theta).ravel()
            products = [penalty.hessp(theta, p.reshape(theta.shape)).ravel() for p in self._weights]
            gram = gram + self._weights @ np.stack(products).T
        if not (np.isfinite(gram).all() and np.isfinite(gradient).all()):
            return None
        return np.asarray(-np.linalg.lstsq(gram, gradient, rcond=1e-12)[0])

    def _move(self, c: Array) -> State:
        at = self.at
        b = sum((share * p.b for share, p in zip(c, self.directions, strict=True)), np.zeros_like(at.b))
        return State(
            (c @ self._weights).reshape(at.theta.shape),
            b,
            (c @ self._images).reshape(at.scores.shape),
            (c @ self._pulled).reshape(at.pulled.shape),
        )
