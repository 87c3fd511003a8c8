"""Accelerated proximal gradient (FISTA) with backtracking and adaptive restart.

For smooth terms plus at most one term with a prox: absolute values and bounds, disjoint groups, the latent norm.
Nesterov (1983), Beck and Teboulle (2009); restart of O'Donoghue and Candes (2015).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import largest_row_sum
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import OneProx, ScoresCan
from cvxstructreg.solvers.solver import Solver

#: The shortest step, relative to the first one.
SHORTEST = 1e-18
#: The smooth part is taken to be nowhere flatter than this many times flatter than a bound of its curvature.
FLATTEST = 1e12


def _picks_rows_once(parts: NormalForm) -> bool:
    """Whether no weight is in two groups."""
    return parts.piece_diagonal is not None and bool(np.all(parts.piece_diagonal <= 1))


class _Smooth:
    """The smooth part as a function of x = (theta, b), stacked."""

    def __init__(self, problem: Problem) -> None:
        self.parts, self.model = problem.normal_form, problem.model

    def __call__(self, x: Array) -> tuple[float, Array]:
        theta, b = x[:-1], x[-1]
        scores = self.model.scores(theta, b)
        value = sum(piece.value(scores) for piece in self.parts.score_pieces)
        value += sum(form.value(scores) for form in self.parts.score_forms) + self.parts.quadratic_value(theta)
        slope = self.parts.smooth_score_grad(scores)
        grad_b = slope.sum(axis=0) if self.model.intercept else np.zeros_like(b)
        grad = self.model.adjoint(slope) + self.parts.quadratic_grad(theta)
        return float(value), np.vstack([grad, grad_b])


def _metric(parts: NormalForm) -> Array:
    """Relative step sizes of the weights (one) and of the intercept, whose column has a scale of its own."""
    typical = float(np.mean(parts.column_norms**2)) or 1.0
    scale = np.ones((parts.model.n_weights + 1, 1))
    scale[-1] = typical / parts.model.n_rows
    return scale


def _longest_step(value: float, grad: Array, metric: Array, longest: float) -> float:
    """2 f / ||f'||^2, which for a nonnegative f is at least 1/L, L the Lipschitz constant of its gradient."""
    steepness = float(np.sum(metric * grad**2))
    if not (value > 0.0 and steepness > 0.0):
        return min(1.0, longest)
    return min(2.0 * value / steepness, longest) if steepness * longest > 0.0 else longest


def _hopeless_step(parts: NormalForm, metric: Array) -> float:
    """A step that is too long wherever the smooth part is curved at all: near an optimum gradients are round-off."""
    pieces = [piece for piece in parts.score_pieces if piece.atom.can("lipschitz")]
    if len(pieces) < len(parts.score_pieces):
        return np.inf
    design = float(np.sum(parts.column_norms**2)) + float(metric[-1, 0]) * parts.model.n_rows
    on_scores = 0.0
    for piece in pieces:
        spread = 1.0 if piece.K is None else largest_row_sum(piece.K) * largest_row_sum(piece.K.T)
        on_scores += piece.scale * piece.atom.lipschitz() * spread
    on_scores += sum(2.0 * scaled.scale * scaled.form.norm_bound for scaled in parts.score_forms)
    curvature = on_scores * design + sum(2.0 * scaled.scale * scaled.form.norm_bound for scaled in parts.weight_forms)
    return FLATTEST / curvature if curvature > 0.0 else np.inf


def run(problem: Problem, start: Iterate, tol: float, first_step: float = 1.0) -> Iterator[Iterate]:
    """``first_step`` is the step to begin with, relative to a step that is long enough; it adapts itself."""
    if not first_step > 0:
        raise ValueError(f"first_step must be positive, got {first_step}")
    parts = problem.normal_form
    smooth, metric = _Smooth(problem), _metric(parts)
    piece = parts.weight_pieces[0] if parts.weight_pieces else None
    atom = problem.terms[piece.number].atom if piece is not None else None

    def prox(x: Array, step: float) -> Array:
        theta = x[:-1]
        if parts.separable is not None:
            theta = parts.separable.prox(theta, step)
        elif atom is not None and piece is not None:
            theta = atom.prox(theta, step * piece.scale)
        return np.vstack([theta, x[-1:]])

    x = prox(np.vstack([start.theta, start.b]), 1e-300)
    point, momentum, (value, grad) = x, 1.0, smooth(x)
    longest = _hopeless_step(parts, metric)
    step = first_step * _longest_step(value, grad, metric, longest)
    shortest = SHORTEST * step
    while True:
        while True:
            moved = prox(point - step * metric * grad, step)
            change = moved - point
            reached, _ = smooth(moved)
            limit = value + float(np.sum(grad * change)) + float(np.sum(change**2 / metric)) / (2.0 * step)
            if reached <= limit + 1e-14 * abs(value) or step < shortest:
                break
            step *= 0.5
        yield Iterate(moved[:-1], moved[-1])
        if np.sum((point - moved) * (moved - x) / metric) > 0:
            momentum = 1.0  # the momentum points uphill: start it anew
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        point = moved + ((momentum - 1.0) / following) * (moved - x)
        x, momentum = moved, following
        step = min(1.02 * step, longest)  # let the step recover from one bad region
        value, grad = smooth(point)


SOLVER = Solver("fista", run, (ScoresCan((("grad",),), "gradient"), OneProx()))
