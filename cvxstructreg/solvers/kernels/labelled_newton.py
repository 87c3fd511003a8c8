"""Newton steps for linear models whose loss involves few rows and whose other terms are quadratic.

The gradient of the quadratic terms is linear in the point, and conjugate gradients compute its change along a step. So
a Newton step needs no products with X other than those of conjugate gradients. One iteration takes one product with X,
one with X' and one with the graph on the examples. The preconditioner combines the diagonal and the curved rows of the
loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.composed_forms import PulledForm
from cvxstructreg.forms.quadratic_form import to_dense
from cvxstructreg.forms.smoothed_hinge import SmoothedHinge
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.kernels.warp import GraphOperator

#: The relative residual of the first Newton step; later ones are more accurate as the gradient decreases.
FIRST_RESIDUAL = 0.3
#: Limits of the conjugate gradient steps for one Newton step and of the Newton steps.
MAX_CG, MAX_NEWTON = 2000, 200
#: After this many Newton steps that do not halve the gradient, the gradient is round-off.
PATIENCE = 20
#: More conjugate gradient steps than this, per weight, are not useful.
STEPS_PER_WEIGHT = 10
#: Up to this many curved rows are treated exactly in the preconditioner; beyond, only their diagonal.
MOST_ROWS = 1500
#: The longest step that the line search tries.
LONGEST = 64.0


@dataclass(eq=False)
class Point:
    """w, b, the labelled scores z, and the gradient (g, gb) and value of the quadratic terms."""

    w: Array
    b: float
    z: Array
    g: Array
    gb: float
    value: float

    def move(self, step: Point, length: float) -> None:
        """Move along a direction, whose (g, gb) is the Hessian of the quadratic terms times the direction."""
        slope = float(self.g @ step.w) + self.gb * step.b
        curved = float(step.g @ step.w) + step.gb * step.b
        self.value += length * slope + 0.5 * length * length * curved
        self.w += length * step.w
        self.b += length * step.b
        self.z += length * step.z
        self.g += length * step.g
        self.gb += length * step.gb


class LabelledNewton:
    """The quadratic terms of a problem with a Linear model, and Newton's method for them plus a smooth loss."""

    def __init__(self, problem: Problem, rows: Any) -> None:
        model, parts = problem.model, problem.normal_form
        n, d = model.design.shape
        self.X, self.rows, self.intercept = model.design, rows, model.intercept
        self.XT = self.X.T
        self.Xl = self.X[rows]
        on_scores = [(form.scale, form.form) for form in parts.score_forms]
        on_values, self.forms, self.ridge = [], [], np.zeros(d)
        for scaled in parts.weight_forms:
            form = scaled.form
            if isinstance(form, PulledForm) and form.design is self.X:
                on_values.append((scaled.scale, form.form))
            elif form.diagonal is not None:
                self.ridge += scaled.scale * form.diagonal
            else:
                self.forms.append(scaled)
        self.graph = GraphOperator(on_scores + on_values, n)
        self.pull = np.zeros(n)
        if self.intercept and on_scores:
            self.pull = GraphOperator(on_scores, n).apply(np.ones((n, 1)))[:, 0]
        self.pull_total = float(self.pull.sum())
        self.pulled = np.asarray(self.XT @ self.pull) if self.pull.any() else np.zeros(d)
        self.mu = float(parts.ridge.min())
        rows_of_graph = sum((c * form.main_diagonal for c, form in on_scores + on_values), np.zeros(n))
        fixed = sum((scaled.scale * scaled.form.main_diagonal for scaled in self.forms), self.ridge)
        self.squares = _squared(self.Xl)
        self.diagonal = 2.0 * (np.asarray(_squared(self.X).T @ rows_of_graph) + fixed)
        # the scale of the squared derivative by a weight, relative to that by the intercept
        self.unit = float(np.mean(parts.column_norms**2)) / n
        self.products = 0

    def hessian(self, p: Array, pb: float) -> tuple[Array, float, Array]:
        """The Hessian of the quadratic terms times (p, pb), and the labelled scores of this direction."""
        self.products += 1
        h = np.asarray(self.X @ p)
        out, out_b = 2.0 * self.ridge * p, 0.0
        if not self.graph.is_zero:
            bent = self.graph.apply(h[:, None])[:, 0]
            if self.intercept:
                bent = bent + pb * self.pull
                out_b = 2.0 * (float(self.pull @ h) + pb * self.pull_total)
            out += 2.0 * np.asarray(self.XT @ bent)
        for scaled in self.forms:
            out += scaled.grad(p[:, None])[:, 0]
        return out, out_b, h[self.rows] + pb

    def point(self, theta: Array, b: Array) -> Point:
        """The point (theta, b) with its scores, gradient and value."""
        w, start = theta[:, 0].copy(), float(b[0])
        g, gb, z = self.hessian(w, start)
        return Point(w, start, z, g, gb, 0.5 * (float(w @ g) + start * gb))

    def minimise(self, at: Point, loss: SmoothedHinge, goal: float) -> float:
        """Newton steps, in place, until ||gradient||^2 / (4 mu) is below ``goal``; returns that bound."""
        first, best, idle = None, np.inf, 0
        for _ in range(MAX_NEWTON):
            if self.intercept:
                self._balance(at, loss)
            slope = loss.grad(at.z[:, None])[:, 0]
            g = at.g + self.Xl.T @ slope
            gb = at.gb + float(slope.sum()) if self.intercept else 0.0
            size = float(g @ g) + self.unit * gb * gb
            idle = 0 if size < 0.25 * best else idle + 1
            best = min(best, size)
            if size / (4.0 * self.mu) <= goal or idle > PATIENCE or deadline.passed():
                break
            first = first or size
            accuracy = max(min(FIRST_RESIDUAL, (size / first) ** 0.25) ** 2 * size, 0.5 * 4.0 * self.mu * goal)
            curved = loss.hess_diag(at.z[:, None])[:, 0]
            if not curved.any():  # all rows are in linear parts of the loss: keep a free intercept from diverging
                curved += 0.1 * loss.lipschitz()
            step = self._step(curved, g, gb, accuracy)
            length = self._length(at, step, loss)
            if length <= 0:
                break
            at.move(step, length)
        return size / (4.0 * self.mu)

    def _balance(self, at: Point, loss: SmoothedHinge) -> None:
        """Move to the exact intercept: the gap is linear, not quadratic, in the error of the intercept."""
        unit = Point(np.zeros_like(at.w), 1.0, np.ones_like(at.z), 2.0 * self.pulled, 2.0 * self.pull_total, 0.0)

        def derivative(shift: float) -> float:
            return at.gb + shift * unit.gb + float(loss.grad((at.z + shift)[:, None]).sum())

        at.move(unit, balancing_shift(derivative))

    def _step(self, curved: Array, g: Array, gb: float, accuracy: float) -> Point:
        """Conjugate gradients for (quadratic Hessian + Xl'diag(curved)Xl) step = -(g, gb)."""
        near = _Preconditioner(self, curved)
        r, rb = -g, -gb
        step = Point(np.zeros_like(g), 0.0, np.zeros(len(self.rows)), np.zeros_like(g), 0.0, 0.0)
        y, yb = near.solve(r, rb)
        p, pb, energy = y.copy(), yb, float(r @ y) + rb * yb
        for _ in range(min(MAX_CG, 50 + STEPS_PER_WEIGHT * len(g))):
            q, qb, z = self.hessian(p, pb)
            bent = curved * z
            full, full_b = q + self.Xl.T @ bent, qb + float(bent.sum()) if self.intercept else 0.0
            length = energy / (float(p @ full) + pb * full_b)
            step.w += length * p
            step.b += length * pb
            step.z += length * z
            step.g += length * q
            step.gb += length * qb
            r = r - length * full
            rb -= length * full_b
            if float(r @ r) + self.unit * rb * rb <= accuracy or deadline.passed():
                break
            y, yb = near.solve(r, rb)
            was, energy = energy, float(r @ y) + rb * yb
            p, pb = y + (energy / was) * p, yb + (energy / was) * pb
        return step

    def _length(self, at: Point, step: Point, loss: SmoothedHinge) -> float:
        """The exact line search: where the derivative changes sign. Only the labelled rows are needed."""
        slope = float(at.g @ step.w) + at.gb * step.b
        curved = float(step.g @ step.w) + step.gb * step.b

        def derivative(length: float) -> float:
            inner = loss.grad((at.z + length * step.z)[:, None])[:, 0]
            return slope + length * curved + float(inner @ step.z)

        if derivative(0.0) >= 0:
            return 0.0
        low, high = 0.0, 1.0
        while derivative(high) < 0 and high < LONGEST:
            low, high = high, 2.0 * high
        return _root(derivative, low, high)


class _Preconditioner:
    """The diagonal of the quadratic terms plus the curved rows of the loss, which a large sigma makes stiff."""

    def __init__(self, newton: LabelledNewton, curved: Array) -> None:
        active = np.flatnonzero(curved)
        self.intercept = newton.intercept
        self.inverse, self.active = 1.0 / newton.diagonal, None
        self.inverse_b = 1.0 / (2.0 * newton.pull_total + 1e-6 * float(curved.sum())) if self.intercept else 0.0
        if active.size > MOST_ROWS:
            self.inverse = 1.0 / (newton.diagonal + newton.squares.T @ curved)
            self.inverse_b = 1.0 / (2.0 * newton.pull_total + float(curved.sum())) if self.intercept else 0.0
            return
        self.active = newton.Xl[active]
        scaled = self.active * self.inverse if not sp.issparse(self.active) else self.active.multiply(self.inverse)
        inner = to_dense(sp.csr_array(scaled) @ self.active.T if sp.issparse(scaled) else scaled @ self.active.T)
        inner += self.inverse_b
        np.einsum("ii->i", inner)[:] += 1.0 / curved[active]
        self.factor = _factor(inner)

    def solve(self, r: Array, rb: float) -> tuple[Array, float]:
        """The inverse of the preconditioner times (r, rb), by the Woodbury formula."""
        y, yb = self.inverse * r, self.inverse_b * rb
        if self.active is None:
            return y, yb
        inner = scipy.linalg.cho_solve(self.factor, self.active @ y + yb, check_finite=False)
        return y - self.inverse * (self.active.T @ inner), yb - self.inverse_b * float(inner.sum())


def _factor(matrix: Array) -> Any:
    """The Cholesky factor of a matrix, or of a slightly shifted one if round-off has made it indefinite."""
    shift, largest = 0.0, float(matrix.diagonal().max(initial=0.0))
    while True:
        trial = matrix if shift == 0.0 else matrix + shift * largest * np.eye(len(matrix))
        try:
            return scipy.linalg.cho_factor(trial, check_finite=False)
        except np.linalg.LinAlgError:
            if shift > 1.0:
                raise
            shift = 10.0 * shift or 1e-15


def balancing_shift(derivative: Callable[[float], float]) -> float:
    """The zero of a nondecreasing, piecewise linear function of a shift; 0 if it never changes its sign."""
    first, reach = derivative(0.0), 1e-3
    if first == 0.0:
        return 0.0
    while derivative(-np.sign(first) * reach) * first > 0:
        reach *= 4.0
        if reach > 1e18:
            return 0.0
    return _root(derivative, *((-reach, 0.0) if first > 0 else (0.0, reach)))


def _root(derivative: Callable[[float], float], low: float, high: float) -> float:
    """The point between low and high where a nondecreasing, piecewise linear function changes sign."""
    at_low, at_high = derivative(low), derivative(high)
    for turn in range(100):
        if at_high <= at_low or high - low <= 1e-16 * max(abs(low), abs(high)):
            break
        # the secant is exact on one linear piece; alternate with bisection for the worst case
        middle = low - at_low * (high - low) / (at_high - at_low) if turn % 2 == 0 else 0.5 * (low + high)
        value = derivative(middle)
        if value == 0.0 or middle in (low, high):
            return middle
        if value > 0:
            high, at_high = middle, value
        else:
            low, at_low = middle, value
    return 0.5 * (low + high)


def _squared(matrix: Any) -> Any:
    squares = matrix.copy()
    if sp.issparse(squares):
        squares.data **= 2
        return squares
    return squares**2
