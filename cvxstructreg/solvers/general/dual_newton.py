"""Proximal points by Newton's method on the dual: losses with kinks and L1, few rows and many columns.

    minimize over (w, b)    sum_i max over l_i <= u_i <= r_i of u_i (x_i'w + b - y_i)  +  sum_j lam_j |w_j|

A step from w and z = Xw minimises the objective, with the loss at its own scores, plus |w - w_k|^2 / (2 sigma) +
|z - z_k|^2 / (2 tau) subject to Xw = z. Its dual has one unknown u for each row and is smooth and concave:

    w(u) = soft(w_k - sigma X'u, sigma lam),    z(u) = prox of tau loss at z_k + tau u,    gradient  X w(u) - z(u)

Newton's matrix is sigma X_A X_A' + tau D, where A are the nonzero weights and D the rows away from their kinks: its
size is the number of rows, whatever the number of columns. An intercept is a column of ones without L1. Steps become
longer as long as few Newton steps solve them.

Reference: Li, Sun and Toh (2018), A highly efficient semismooth Newton augmented Lagrangian method for solving lasso
problems; Tang, Wang, Sun and Toh (2020) for losses that are not smooth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.general.dual_sets import Intervals, dual_set_of
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import LinearModel, Need, OneLoss, Outputs, ScoresCan
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: The largest number of rows: Newton's matrix is dense.
MOST_ROWS = 1_500
#: sigma is so many times tau over the mean squared column: a weight may move further than one score.
WIDER = 10.0
#: A step is solved until X w - z is this part of the step; at least to ROUND_OFF of the scores.
INNER, ROUND_OFF = 0.05, 1e-10
#: Sigma and tau grow by LONGER after at most FEW Newton steps, and by SHORTER after more than MANY. A step that
#: MOST do not solve is not taken, and the next one is MUCH_SHORTER.
FEW, MANY, MOST, LONGER, SHORTER, MUCH_SHORTER = 8, 20, 50, 1.5, 0.7, 0.25
#: The most steps, and the growth of sigma and tau.
STEPS, GROWTH = 300, 1e9
#: Newton's matrix is regularised by TINY times its size. If a step is longer than LONGEST times the widths of the
#: intervals, by SMALL or more, growing by 100: rows at their kinks with few nonzero weights have no curvature.
TINY, SMALL, LONGEST = 1e-9, 1e-6, 10.0
#: The line search: required part of the predicted decrease, and the shortest step.
SUFFICIENT, SHORTEST = 1e-4, 1e-6
#: Values of the dual function that differ by less than this part are equal.
EQUAL = 1e-13


@dataclass(frozen=True)
class OnlyL1(Need):
    """L1 on every weight is the only term on the weights."""

    def __str__(self) -> str:
        return "L1 on all weights and no other term on them"

    def missing(self, problem: Problem) -> str | None:
        """Whether there are other terms, bounds, or weights without L1."""
        parts = problem.normal_form
        part = parts.separable
        if parts.weight_pieces or parts.weight_forms or part is None or part.bounded or not np.all(part.weights > 0):
            return f"only {self} is supported"
        return None


@dataclass(frozen=True)
class FewRows(Need):
    """At most ``most`` rows."""

    most: int

    def __str__(self) -> str:
        return f"at most {self.most:,} rows"

    def missing(self, problem: Problem) -> str | None:
        """Refuse more rows."""
        n = problem.given.n_rows
        return f"{self} are supported, and there are {n:,}" if n > self.most else None


class _Data:
    """The columns as rows of a matrix, with one of ones for an intercept; the slopes of the losses; the strengths."""

    def __init__(self, problem: Problem) -> None:
        parts = problem.normal_form
        self.piece = piece = parts.score_pieces[0]
        design, n, d = problem.model.design, problem.model.n_rows, problem.model.n_weights
        ones = piece.forward(np.ones((n, 1))).T
        if sp.issparse(design):
            rows = sp.csr_array(design) if piece.K is None else sp.csr_array(piece.K @ sp.csr_array(design))
            self.columns: Any = sp.csr_array(rows.T)
        else:
            self.columns = np.ascontiguousarray(piece.forward(design).T)
        assert parts.separable is not None
        self.lam: Array = np.array(np.broadcast_to(parts.separable.weights, (d, 1)), dtype=float)[:, 0]
        if problem.model.intercept:
            stack = sp.vstack if sp.issparse(design) else np.vstack
            self.columns, self.lam = stack([self.columns, ones]), np.r_[self.lam, 0.0]
            self.columns = sp.csr_array(self.columns) if sp.issparse(design) else self.columns
        box = dual_set_of(piece, (ones.size, 1))
        assert isinstance(box, Intervals)
        self.lower, self.upper, self.at = (
            np.broadcast_to(x, (ones.size, 1))[:, 0] for x in (box.lower, box.upper, box.offset)
        )
        squares = (
            self.columns.multiply(self.columns).sum() if sp.issparse(design) else np.vdot(self.columns, self.columns)
        )
        self.width, self.part = float(np.mean(self.upper - self.lower)) or 1.0, TINY
        self.square = float(squares) / max(self.columns.shape[0], 1) or 1.0

    def loss(self, z: Array) -> float:
        """The loss at the scores z."""
        left = z - self.at
        return float(np.sum(np.where(left > 0, self.upper * left, self.lower * left)))

    def scores(self, w: Array, active: NDArray[np.int64]) -> Array:
        """X w, given the nonzero weights."""
        return np.asarray(self.columns[active].T @ w[active])


@dataclass(frozen=True, eq=False)
class _Point:
    """A dual point u of one step, with all that follows from it."""

    u: Array
    value: float  # minus the dual function
    w: Array
    z: Array
    p: Array  # the slopes of the losses at z
    active: NDArray[np.int64]
    scores: Array


class _Step:
    """One proximal step."""

    def __init__(self, data: _Data, w: Array, z: Array, sigma: float, tau: float) -> None:
        self.data, self.w, self.z, self.sigma, self.tau = data, w, z, sigma, tau

    def at(self, u: Array) -> _Point:
        """The point of a dual point."""
        data, sigma, tau = self.data, self.sigma, self.tau
        a = self.w - sigma * np.asarray(data.columns @ u)
        w = a - np.clip(a, -sigma * data.lam, sigma * data.lam)
        moved = self.z + tau * u
        p = np.clip((moved - data.at) / tau, data.lower, data.upper)
        z = moved - tau * p
        active = np.flatnonzero(w)
        scores = data.scores(w, active)
        value = data.loss(z) + float(data.lam @ np.abs(w)) + float(u @ (scores - z))
        value += float(np.sum((w - self.w) ** 2)) / (2.0 * sigma) + float(np.sum((z - self.z) ** 2)) / (2.0 * tau)
        return _Point(u, -value, w, z, p, active, scores)

    def length(self, point: _Point) -> float:
        """The length of the step, in units of scores."""
        return float(np.sqrt(np.sum((point.w - self.w) ** 2) * self.tau / self.sigma + np.sum((point.z - self.z) ** 2)))

    def newton(self, point: _Point) -> Array:
        """Newton's step in u, regularised as little as possible."""
        data = self.data
        chosen = data.columns[point.active]
        if sp.issparse(chosen):
            matrix = self.sigma * (chosen.T @ chosen).toarray()
        else:
            matrix = dsyrk(self.sigma, chosen.T) if point.active.size else np.zeros((self.z.size,) * 2)
        away = (point.p <= data.lower) | (point.p >= data.upper)
        diagonal = np.einsum("ii->i", matrix)
        size, added = self.sigma * data.square + self.tau, 0.0
        diagonal += self.tau * away
        while True:
            diagonal += (data.part - added) * size
            _, step, failed = dposv(matrix, point.scores - point.z)
            if data.part > 1.0 or (not failed and float(np.max(np.abs(step))) <= LONGEST * data.width):
                break
            added, data.part = data.part, max(100.0 * data.part, SMALL)
        data.part = max(0.01 * data.part, TINY)
        return np.asarray(step)

    def solved(self, u: Array, least: float) -> tuple[_Point, int]:
        """Newton's method from u; the last point and the number of Newton steps."""
        point = self.at(u)
        for count in range(MOST):
            gradient = point.z - point.scores
            enough = max(INNER * self.length(point), least) if count else least  # without a step, errors would add up
            if float(np.linalg.norm(gradient)) <= enough or deadline.passed():
                return point, count
            step = self.newton(point)
            slope, t = float(gradient @ step), 1.0
            if not slope < 0.0:
                return point, MOST
            new = self.at(point.u + step)
            while not new.value <= point.value + SUFFICIENT * t * slope + EQUAL * abs(point.value):
                t *= 0.5
                if t < SHORTEST:
                    return point, MOST
                new = self.at(point.u + t * step)
            point = new
        return point, MOST


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Proximal steps from the start; Newton's method on the dual of each."""
    data = _Data(problem)
    piece, d = data.piece, problem.model.n_weights
    w = start.theta[:, 0] if data.lam.size == d else np.r_[start.theta[:, 0], start.b]
    z = data.scores(w, np.flatnonzero(w))
    if data.loss(z) + float(data.lam @ np.abs(w)) == 0.0:  # a perfect fit without weights
        yield Iterate(start.theta, start.b, {piece.number: np.zeros((z.size, 1))}, promising=True)
    known = start.dual.get(piece.number)
    slopes = np.where(z > data.at, data.upper, data.lower)
    u = slopes * _factor(data, slopes) if known is None or known.size != z.size else known[:, 0]
    typical = float(np.mean(np.abs(z - data.at))) or 1.0
    tau = first = 2.0 * typical / data.width
    least = ROUND_OFF * (typical * np.sqrt(z.size) + float(np.linalg.norm(z)))
    for number in range(1, STEPS + 1):
        deadline.check()
        point, count = _Step(data, w, z, WIDER * tau / data.square, tau).solved(u, least)
        stuck = np.array_equal(point.w, w) and np.array_equal(point.z, z) and count in (0, MOST)
        if count < MOST:
            w, z, u = point.w, point.z, point.u
        theta, b = point.w[:d, None].copy(), point.w[d:].copy() if data.lam.size > d else start.b
        objective = data.loss(point.scores) + float(data.lam @ np.abs(point.w))
        gap = objective + _factor(data, point.p) * float(point.p @ data.at)
        good = bool(gap <= tol * objective_scale(problem, objective))
        dual = {piece.number: point.p[:, None]}
        last = number == STEPS or (stuck and tau >= GROWTH * first)
        yield Iterate(theta, b, dual, exhausted=last, promising=good)
        if last:
            return
        tau *= LONGER if count <= FEW else 1.0 if count <= MANY else SHORTER if count < MOST else MUCH_SHORTER
        tau = min(tau, GROWTH * first)


def _factor(data: _Data, u: Array) -> float:
    """The largest s <= 1 with s |X'u| within the strengths, apart from the intercept."""
    held = data.lam > 0
    pull = np.abs(np.asarray(data.columns @ u))[held]
    over = pull > data.lam[held]
    return float(np.min(data.lam[held][over] / pull[over], initial=1.0))


KINKS = ScoresCan((("kinks",),), "kinks (piecewise linear)")
NEEDS = (LinearModel(), Outputs(1, 1), OneLoss(), KINKS, OnlyL1(), FewRows(MOST_ROWS))
SOLVER = Solver("dual_newton", run, NEEDS, AS_GIVEN)
