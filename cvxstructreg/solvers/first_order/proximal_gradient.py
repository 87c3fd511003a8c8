"""Accelerated proximal gradient (FISTA) with backtracking and adaptive restart.

For smooth terms plus at most one term with a prox: L1 and bounds, disjoint groups, or the latent norm. References:
Nesterov (1983), Beck and Teboulle (2009); restart by O'Donoghue and Candes (2015).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.forms.quadratic_form import largest_row_sum
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import OneProx, ScoresCan
from cvxstructreg.solvers.solver import Solver

#: The smallest step size, relative to the first one.
SHORTEST = 1e-18
#: The largest step size, relative to 1 / (upper bound on the curvature of the smooth part).
FLATTEST = 1e12
#: Factors of the step size after a failed test of sufficient decrease, and after every iteration.
SHRINK, GROW = 0.5, 1.02
#: Round-off allowed in the test of sufficient decrease, relative to the objective.
ROUND_OFF = 1e-14


class _Smooth:
    """The smooth part as a function of x = (theta, b), stacked."""

    def __init__(self, problem: Problem) -> None:
        self.parts, self.model = problem.normal_form, problem.model
        self.penalties = [piece for piece in self.parts.weight_pieces if piece.is_smooth]

    def __call__(self, x: Array) -> tuple[float, Array]:
        theta, b = x[:-1], x[-1]
        scores = self.model.scores(theta, b)
        value = sum(piece.value(scores) for piece in self.parts.score_pieces)
        value += sum(form.value(scores) for form in self.parts.score_forms) + self.parts.quadratic_value(theta)
        value += sum(piece.value(theta) for piece in self.penalties)
        slope = self.parts.smooth_score_grad(scores)
        grad_b = slope.sum(axis=0) if self.model.intercept else np.zeros_like(b)
        grad = self.model.adjoint(slope) + self.parts.quadratic_grad(theta)
        for piece in self.penalties:
            grad += piece.adjoint(piece.grad(piece.forward(theta)))
        return float(value), np.vstack([grad, grad_b])


def _metric(parts: NormalForm) -> Array:
    """Relative step sizes: 1 for the weights, and for the intercept one that fits the scale of its column."""
    typical = float(np.mean(parts.column_norms**2)) or 1.0
    scale = np.ones((parts.model.n_weights + 1, 1))
    scale[-1] = typical / parts.model.n_rows
    return scale


def _longest_step(value: float, grad: Array, metric: Array, longest: float) -> float:
    """The step size 2 f / ||f'||^2, at least 1/L for a nonnegative f whose gradient has Lipschitz constant L."""
    steepness = float(np.sum(metric * grad**2))
    if not (value > 0.0 and steepness > 0.0):
        return min(1.0, longest)
    return min(2.0 * value / steepness, longest) if steepness * longest > 0.0 else longest


def _step_limit(smooth: _Smooth, metric: Array, x: Array) -> float:
    """An upper limit of the step size. Near an optimum, gradients are round-off and would allow any step size."""
    parts, penalties, scores = smooth.parts, smooth.penalties, smooth.model.scores(x[:-1], x[-1])
    if not all(_has_curvature(piece) for piece in (*parts.score_pieces, *penalties)):
        return np.inf
    design = float(np.sum(parts.column_norms**2)) + float(metric[-1, 0]) * parts.model.n_rows
    on_scores = sum(_curvature(piece, scores) for piece in parts.score_pieces)
    on_scores += sum(2.0 * scaled.scale * scaled.form.norm_bound for scaled in parts.score_forms)
    curvature = on_scores * design + sum(2.0 * scaled.scale * scaled.form.norm_bound for scaled in parts.weight_forms)
    curvature += sum(_curvature(piece, x[:-1]) for piece in penalties)
    return FLATTEST / curvature if curvature > 0.0 else np.inf


def _has_curvature(piece: Piece) -> bool:
    return piece.atom.can("lipschitz") or piece.atom.can("hess_diag")


def _curvature(piece: Piece, z: Array) -> float:
    """A bound of the curvature of a smooth piece; without any such bound, the largest curvature at z."""
    spread = 1.0 if piece.K is None else largest_row_sum(piece.K) * largest_row_sum(piece.K.T)
    if piece.atom.can("lipschitz"):
        return piece.scale * piece.atom.lipschitz() * spread
    return piece.scale * float(np.max(piece.atom.hess_diag(piece.forward(z)), initial=0.0)) * spread


def run(problem: Problem, start: Iterate, tol: float, first_step: float = 1.0) -> Iterator[Iterate]:
    """``first_step`` is the initial step size, relative to a step size that is long enough; backtracking adapts it."""
    if not first_step > 0:
        raise ValueError(f"first_step must be positive, got {first_step}")
    parts = problem.normal_form
    smooth, metric = _Smooth(problem), _metric(parts)
    piece = next((piece for piece in parts.weight_pieces if not piece.is_smooth), None)
    atom = piece.source if piece is not None else None

    def prox(x: Array, step: float) -> Array:
        theta = x[:-1]
        if parts.separable is not None:
            theta = parts.separable.prox(theta, step)
        elif atom is not None and piece is not None:
            theta = atom.prox(theta, step * piece.scale)
        return np.vstack([theta, x[-1:]])

    x = prox(np.vstack([start.theta, start.b]), 1e-300)
    point, momentum, (value, grad) = x, 1.0, smooth(x)
    longest = _step_limit(smooth, metric, x)
    step = first_step * _longest_step(value, grad, metric, longest)
    shortest = SHORTEST * step
    while True:
        while True:
            moved = prox(point - step * metric * grad, step)
            change = moved - point
            reached, _ = smooth(moved)
            limit = value + float(np.sum(grad * change)) + float(np.sum(change**2 / metric)) / (2.0 * step)
            if reached <= limit + ROUND_OFF * abs(value) or (step < shortest and _is_round_off(change, point)):
                break
            step *= SHRINK
        yield Iterate(moved[:-1], moved[-1])
        if np.sum((point - moved) * (moved - x) / metric) > 0:
            momentum = 1.0  # restart: the momentum points uphill
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        point = moved + ((momentum - 1.0) / following) * (moved - x)
        x, momentum = moved, following
        step = min(GROW * step, longest)  # let the step size recover after a steep region
        value, grad = smooth(point)
        if not np.isfinite(value):  # too far ahead, where the loss overflows
            point, momentum, (value, grad) = moved, 1.0, smooth(moved)


def _is_round_off(change: Array, point: Array) -> bool:
    return bool(np.max(np.abs(change), initial=0.0) <= UNIT * np.max(np.abs(point), initial=0.0))


SOLVER = Solver("fista", run, (ScoresCan((("grad",),), "gradient"), OneProx()), by_passes=True, cheap_steps=True)
