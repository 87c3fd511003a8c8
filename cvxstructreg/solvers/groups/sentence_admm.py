"""The ADMM of Yogatama and Smith (2014, Algorithm 1) for overlapping groups, as published.

    minimize  loss(Xw + b) + w'Mw + sum_j lam_j |w_j| + sum_g c_g ||v_g||   subject to  v = Kw

One iteration updates w by accelerated proximal gradient steps on the augmented Lagrangian, each v_g by block soft
thresholding, and the multipliers u by the residual. The copies enter the step in w only through
rho/2 sum_j N_j (w_j - m_j)^2, where N_j is the number of groups that contain feature j, and m_j the mean of v - u over
its copies.

The paper stops by the relative change of w (``change``), after at most 100 iterations. Far from the optimum the result
is a different estimator, in effect with a ridge weighted by N_j. The iterates are w, not the copies, with their gap.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.momentum import Momentum
from cvxstructreg.numerics.units import power_of_two
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.groups.group_newton import NEEDS
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.solver import Solver

#: Options for an accurate solution, used in tests. With the published options, each w is only one gradient step away
#: from the last one, so the multipliers converge very slowly.
ACCURATE = {"rho": 0.1, "w_tol": 1e-6}
#: The relative residuals at which ``stop`` ends the iterations.
SMALL = 1e-3
#: The largest number of proximal gradient steps for one w, and the growth of their length before each.
W_STEPS, GROWTH = 1000, 1.02


def run(
    problem: Problem,
    start: Iterate,
    tol: float,
    rho: float = 1.0,
    w_tol: float = 1e-5,
    stop: bool = False,
    change: float | None = None,
) -> Iterator[Iterate]:
    """``rho`` is the penalty, and ``w_tol`` the relative change of w that ends its gradient steps.

    ``stop`` ends the solve when the residuals are small; ``change`` ends it when ||w - w_old|| <= change ||w|| after an
    iteration, the rule of the paper (which does not give its value). Every iteration is yielded, so that ``max_iter``
    truncates. As published, ``rho`` has the units of the objective divided by those of the squared weights.
    """
    if not rho > 0 or not w_tol > 0:
        raise ValueError(f"rho and w_tol must be positive, got {rho} and {w_tol}")
    if change is not None and not change > 0:
        raise ValueError(f"change must be positive, or None for no such rule, got {change}")
    parts = problem.normal_form
    pieces = parts.weight_pieces
    theta, b = start.theta, start.b
    copies = [piece.forward(theta) for piece in pieces]
    multipliers = [
        start.dual[piece.number] / rho if piece.number in start.dual else np.zeros_like(copy)
        for piece, copy in zip(pieces, copies, strict=True)
    ]
    step = _WeightStep(parts, rho, w_tol)
    while True:
        pairs = zip(pieces, copies, multipliers, strict=True)
        target = sum(piece.adjoint(v - u) for piece, v, u in pairs)
        before = theta
        theta, b = step(theta, b, np.asarray(target))
        moved, apart, size, held = np.zeros_like(theta), 0.0, 0.0, np.zeros_like(theta)
        for t, piece in enumerate(pieces):
            z, old = piece.forward(theta), copies[t]
            copies[t] = piece.atom.prox(z + multipliers[t], piece.scale / rho)
            multipliers[t] = multipliers[t] + z - copies[t]
            moved += piece.adjoint(copies[t] - old)
            held += piece.adjoint(multipliers[t])
            apart += float(np.sum((z - copies[t]) ** 2))
            size = max(size, float(np.sum(z**2)), float(np.sum(copies[t] ** 2)))
        dual = {piece.number: rho * u for piece, u in zip(pieces, multipliers, strict=True)}
        small = apart <= SMALL**2 * size and np.linalg.norm(moved) <= SMALL * np.linalg.norm(held)
        still = change is not None and np.linalg.norm(theta - before) <= change * np.linalg.norm(theta)
        yield Iterate(theta, b, dual, exhausted=bool((stop and small) or still))


class _WeightStep:
    """argmin over (w, b) of loss + w'Mw + sum lam |w| + rho/2 sum_j N_j w_j^2 - rho <target, w>."""

    def __init__(self, parts: NormalForm, rho: float, tol: float) -> None:
        assert parts.piece_diagonal is not None  # every K picks rows
        self.parts, self.rho, self.tol = parts, rho, tol
        self.counts = parts.piece_diagonal[:, None]
        self.step = 0.0  # chosen from the scale of the problem when first needed
        # steps are taken in b / unit, so that the column of the intercept is about as long as the longest of X
        self.unit = power_of_two(float(parts.column_norms.max()) / np.sqrt(parts.model.n_rows))

    def _smooth(self, w: Array, b: Array, target: Array) -> tuple[float, Array]:
        """The smooth terms, and the scores."""
        parts, scores = self.parts, self.parts.model.scores(w, b)
        value = sum(piece.value(scores) for piece in parts.score_pieces) + parts.quadratic_value(w)
        value += sum(form.value(scores) for form in parts.score_forms)
        value += self.rho * float(np.sum((0.5 * self.counts * w - target) * w))
        return float(value), scores

    def __call__(self, w: Array, b: Array, target: Array) -> tuple[Array, Array]:
        """Accelerated proximal gradient steps with backtracking until the relative change is small."""
        momentum = Momentum([w, b / self.unit])
        trial = momentum.points
        for _ in range(W_STEPS):
            moved, change = self._gradient_step(trial, target)
            trial = momentum.ahead(trial, moved)
            if change <= self.tol**2 * float(sum(np.sum(part**2) for part in moved)) or deadline.passed():
                break
        w, b = momentum.points
        return w, self.unit * b

    def _gradient_step(self, trial: list[Array], target: Array) -> tuple[list[Array], float]:
        """Return the end of a step from (w, b / unit), and its squared length."""
        parts, (w, b) = self.parts, trial
        value, scores = self._smooth(w, self.unit * b, target)
        slope = parts.smooth_score_grad(scores)
        grad = parts.model.adjoint(slope) + parts.quadratic_grad(w) + self.rho * (self.counts * w - target)
        grad_b = self.unit * slope.sum(axis=0) if parts.model.intercept else np.zeros_like(b)
        self.step = GROWTH * (self.step or _first_step(abs(value), grad, grad_b))
        while True:
            moved, moved_b = w - self.step * grad, b - self.step * grad_b
            if parts.separable is not None:
                moved = parts.separable.prox(moved, self.step)
            reached, _ = self._smooth(moved, self.unit * moved_b, target)
            change = float(np.sum((moved - w) ** 2) + np.sum((moved_b - b) ** 2))
            linear = float(np.sum(grad * (moved - w)) + np.sum(grad_b * (moved_b - b)))
            if reached <= value + linear + change / (2.0 * self.step) + 1e-14 * abs(value):
                return [moved, moved_b], change
            self.step *= 0.5


def _first_step(value: float, grad: Array, grad_b: Array) -> float:
    """2 f / ||f'||^2, rounded up to a power of two: at least 1/L for a nonnegative f with an L-Lipschitz gradient."""
    steepness = float(np.sum(grad**2) + np.sum(grad_b**2))
    return float(np.exp2(np.ceil(np.log2(2.0 * value / steepness)))) if value > 0.0 and steepness > 0.0 else 1.0


SOLVER = Solver("sentence_admm", run, NEEDS, accurate=ACCURATE, baseline=True)
