"""Smooth losses on a kernel with graphs: Newton steps by conjugate gradients in the inner product of the kernel.

With g the derivative of all terms on the scores, the optimality condition is 2 lam1 theta + g = 0, up to the null space
of gram. A Newton step solves (2 lam1 I + S gram) d = r, where S is the Hessian with respect to the scores with the
intercept eliminated. This matrix is self-adjoint and positive in the inner product <u, v> = u'gram v. So each step of
conjugate gradients needs one product with gram and a sparse one with the graph, and no n x n matrix besides gram. The
bound on the gap, r'gram r / (4 lam1), comes at no extra cost. A squared loss takes one Newton step; a squared hinge
ends once the set of active rows is right.

If a strong graph makes conjugate gradients slow, the direct solver ``warped_kernel`` takes over as soon as they have
cost as much as the direct solver would.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Kernel
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.semidefinite import not_psd
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.memory import available_memory
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.kernels import warped_kernel
from cvxstructreg.solvers.needs import FunctionNorm, KernelModel, ScoresCan
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: What this solver requires of a problem.
NEEDS = (
    KernelModel(),
    FunctionNorm(),
    ScoresCan((("grad", "hess_diag", "lipschitz"),), "second derivatives row by row", losses=True),
)


#: The direct solver costs as much as LEAST_PRODUCTS + PRODUCTS_PER_ROW * n products with gram (measured for n from 500
#: to 10,000).
PRODUCTS_PER_ROW = 0.1
LEAST_PRODUCTS = 60
#: The bytes per entry of gram that the direct solver needs.
DIRECT_BYTES = 20.0
#: Newton steps between two points whose images are recomputed from the weights.
REFRESH_EVERY = 4
#: The solver stops after PATIENCE Newton steps that decrease the objective by less than ROUND_OFF times its value.
ROUND_OFF, PATIENCE = 1e-13, 5
#: More conjugate gradient steps than this, per row, are not useful.
STEPS_PER_ROW = 10
#: The part of the tolerance that a step aims at; and if the certificate does not confirm the gap.
AIM, SECOND_AIM = 0.25, 1e-3
#: If a loss has no curvature, this part of its Lipschitz constant is used, so that the intercept has a finite step.
LEAST_CURVATURE = 0.1
#: The line search: bisections at most, and their relative accuracy.
BISECTIONS, SEARCH_ACCURACY = 30, 0.05


def run(problem: Problem, start: Iterate, tol: float, direct: bool = True) -> Generator[Iterate, None, None]:
    """``direct`` allows a switch to the direct solver if conjugate gradients are slow."""
    model = problem.model.kernel
    assert model is not None
    budget = _budget(problem) if direct else np.inf
    at = KernelState.of(model, start.theta.copy(), start.b.copy())
    newton = KernelNewton(problem)
    value, count, idle = newton.value(at), 0, 0
    while True:
        count += 1
        scale = objective_scale(problem, value)
        step = newton.step(at, AIM * tol * scale, budget)
        if step is None:
            yield Iterate(at.theta, at.b, promising=True)
            step = newton.step(at, SECOND_AIM * tol * scale, budget)  # the certificate did not confirm the gap
            if step is None:
                yield Iterate(at.theta, at.b, exhausted=True)
                return
        elif count > 1:
            yield Iterate(at.theta, at.b, promising=False)
        if newton.products > budget:
            yield from warped_kernel.run(problem, start, tol)
            return
        moved, reached = newton.line_search(at, step, value)
        idle = 0 if value - reached > ROUND_OFF * abs(value) else idle + 1
        if not reached <= value or idle > PATIENCE:
            yield Iterate(at.theta, at.b, exhausted=True)
            return
        at, value = moved, reached
        if count % REFRESH_EVERY == 0 or newton.is_quadratic:
            at = KernelState.of(model, at.theta, at.b)
            value = newton.value(at)


def _budget(problem: Problem) -> float:
    """The number of products with gram that cost as much as the direct solver; infinite if that cannot be used."""
    n = problem.model.n_rows
    if not warped_kernel.SOLVER.accepts(problem) or DIRECT_BYTES * n * n > available_memory():
        return np.inf
    return LEAST_PRODUCTS + PRODUCTS_PER_ROW * n


def _has_constant_curvature(piece: Piece) -> bool:
    """Whether the loss is quadratic, judged by its curvature at three distant points."""
    count = piece.atom.y.shape[0] if isinstance(piece.atom, Loss) else 0
    shape = (count, piece.atom.n_outputs if isinstance(piece.atom, Loss) else 1)
    at = [piece.atom.hess_diag(np.full(shape, z)) for z in (-1e3, 0.0, 1e3)]
    return np.array_equal(at[0], at[1]) and np.array_equal(at[1], at[2])


@dataclass(frozen=True, eq=False)
class KernelState:
    """A point, or a direction, with h = gram theta."""

    theta: Array
    b: Array
    h: Array

    @classmethod
    def of(cls, model: Kernel, theta: Array, b: Array) -> KernelState:
        """The point with its image computed from the weights."""
        return cls(theta, b, model.scores(theta, np.zeros_like(b)))

    @property
    def scores(self) -> Array:
        """F = h + 1 b'."""
        return self.h + self.b

    def moved(self, step: KernelState, length: float) -> KernelState:
        """The point plus ``length`` times the direction."""
        return KernelState(self.theta + length * step.theta, self.b + length * step.b, self.h + length * step.h)


class KernelNewton:
    """Newton directions and line searches for one problem; counts the products with gram."""

    def __init__(self, problem: Problem) -> None:
        assert problem.model.kernel is not None
        self.model: Kernel = problem.model.kernel
        self.parts: NormalForm = problem.normal_form
        assert self.parts.function_norm is not None
        self.norm = self.parts.function_norm
        self.intercept = self.model.intercept
        self.products = 0
        self.trace = float(self.model.design.trace())
        shape = (self.model.n_rows, problem.n_outputs)
        self.ones = np.ones(shape)
        self.bent_ones = self._score_forms(self.ones) if self.intercept else np.zeros(shape)
        self.is_quadratic = all(_has_constant_curvature(piece) for piece in self.parts.score_pieces)
        self.first_energy: float | None = None

    def value(self, at: KernelState) -> float:
        """The objective."""
        scores = at.scores
        total = sum(piece.value(scores) for piece in self.parts.score_pieces)
        total += sum(form.value(scores) for form in self.parts.score_forms)
        total += sum(form.value(at.h) for form in self.parts.function_forms)
        return float(total) + self.norm.value(at.theta, at.h)

    def _row_curvature(self, scores: Array) -> Array:
        """The diagonal of the Hessian of the losses, with a positive substitute for losses without curvature."""
        total = np.zeros_like(scores)
        for piece in self.parts.score_pieces:
            curved = piece.atom.hess_diag(piece.forward(scores))
            if self.intercept and not curved.any():
                curved = np.full_like(curved, LEAST_CURVATURE * piece.atom.lipschitz())
            total += piece.adjoint(piece.scale * curved)
        return total

    def _score_forms(self, V: Array) -> Array:
        return sum((form.grad(V) for form in self.parts.score_forms), np.zeros_like(V))

    def step(self, at: KernelState, goal: float, budget: float) -> KernelState | None:
        """The Newton step; None if the point is already within ``goal`` of the optimum."""
        parts, scores = self.parts, at.scores
        slope = parts.smooth_score_grad(scores)
        slope_b = slope.sum(axis=0) if self.intercept else np.zeros_like(at.b)
        rows = self._row_curvature(scores)
        side = rows + self.bent_ones if self.intercept else np.zeros_like(rows)
        weight = side.sum(axis=0)
        weight_inverse = np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 1e-300)

        def hessian(V: Array) -> Array:
            """S V with the intercept eliminated."""
            total = rows * V + self._score_forms(V) + parts.function_grad(V)
            if self.intercept:
                total -= side * (weight_inverse * np.einsum("ij,ij->j", side, V))
            return total

        right = -(slope + parts.function_grad(at.h) + self.norm.grad(at.theta))
        right += side * (weight_inverse * slope_b)
        result = self._conjugate_gradients(hessian, right, goal, budget, float(slope_b**2 @ weight_inverse) / 2.0)
        if result is None:
            return None
        theta, h = result
        b = -weight_inverse * (slope_b + np.einsum("ij,ij->j", side, h)) if self.intercept else np.zeros_like(at.b)
        return KernelState(theta, b, h)

    def _conjugate_gradients(
        self, hessian: object, right: Array, goal: float, budget: float, from_b: float
    ) -> tuple[Array, Array] | None:
        """(d, gram d) with (2 lam I + S gram) d = right, to the accuracy that ``goal`` or the Newton step requires."""
        assert callable(hessian)
        r, lam2 = right, self.norm.curvature
        Kr = self._gram(r)
        energy = self._energy(r, Kr)
        if self.norm.conj(energy) + from_b <= goal:
            return None
        if not self.first_energy:
            self.first_energy = energy
        # for the quadratic model, the gap after the step is at most energy / (4 lam)
        enough = lam2 * goal
        if not self.is_quadratic and energy > 0.0:  # Eisenstat and Walker: no more accurate than the model is
            enough = max(enough, min(0.01, np.sqrt(energy / self.first_energy)) * energy)
        x, Kx = np.zeros_like(r), np.zeros_like(r)
        p, Kp = r.copy(), Kr.copy()
        last = self.products + 50 + STEPS_PER_ROW * len(r)
        while energy > enough and self.products <= min(budget, last) and not deadline.passed():
            q = lam2 * p + hessian(Kp)
            curved = float(np.vdot(q, Kp))
            if curved <= 0:
                break
            length = energy / curved
            x += length * p
            Kx += length * Kp
            r = r - length * q
            Kr = self._gram(r)
            was, energy = energy, self._energy(r, Kr)
            p = r + (energy / was) * p
            Kp = Kr + (energy / was) * Kp
        return x, Kx

    def _gram(self, V: Array) -> Array:
        self.products += 1
        return self.model.times(V)

    def _energy(self, r: Array, Kr: Array) -> float:
        """r'gram r, which can be negative only by round-off if gram is positive semidefinite."""
        energy, square = float(np.vdot(r, Kr)), float(np.vdot(r, r))
        if energy < -self.model.round_off * self.trace * square:  # psd=True was wrong
            raise not_psd(energy / square, self.trace, exact=False)
        return max(energy, 0.0)

    def line_search(self, at: KernelState, step: KernelState, value: float) -> tuple[KernelState, float]:
        """The minimum along the step and its value: the full step if that is good, else by bisection of the slope."""
        whole = at.moved(step, 1.0)
        reached = self.value(whole)
        if self.is_quadratic and reached <= value:
            return whole, reached
        if reached <= value and self._slope(whole, step) <= 0.5 * abs(self._slope(at, step)):
            return whole, reached
        low, high = 0.0, 1.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if self._slope(at.moved(step, middle), step) > 0:
                high = middle
            else:
                low = middle
            if high - low <= SEARCH_ACCURACY * high:
                break
        moved = at.moved(step, 0.5 * (low + high))
        return moved, self.value(moved)

    def _slope(self, at: KernelState, step: KernelState) -> float:
        """The derivative of the objective along the step."""
        slope = self.parts.smooth_score_grad(at.scores)
        along = float(np.vdot(slope, step.scores)) + float(np.vdot(self.parts.function_grad(at.h), step.h))
        return along + float(np.vdot(self.norm.grad(at.theta), step.h))


SOLVER = Solver("kernel_cg", run, NEEDS, coordinates=AS_GIVEN)
