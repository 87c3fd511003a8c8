"""An interior-point method for piecewise linear losses and penalties, for problems with few weights.

    minimise  1/2 x'Qx + smooth(x) + sum_i  max over l_i <= u_i <= h_i of  u_i (A x - o)_i

Hinges, absolute values, differences and bounds are the terms of the sum. With ``A x - o = p - n``, the optimum has

    Qx + grad smooth(x) + A'u = 0,      p >= 0,  n >= 0,      p_i (h_i - u_i) = 0,      n_i (u_i - l_i) = 0

The products are held at a common number mu > 0 instead, which decreases (predictor and corrector of Mehrotra, 1992).
The Newton system has one unknown for each weight, and ten to twenty such systems are enough for a proof: an augmented
Lagrangian, which smooths the kinks one after the other, needs several times as many. All u are inside their intervals,
so that they are dual points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.general.dense_system import DenseSystem
from cvxstructreg.solvers.general.dual_sets import Intervals
from cvxstructreg.solvers.general.excess import excess, into_domain
from cvxstructreg.solvers.general.few_weights import FewWeights, PiecewiseLinear
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian
from cvxstructreg.solvers.general.newton_matrix import add_row_hessians, bent
from cvxstructreg.solvers.general.smooth_terms import centred_blocks
from cvxstructreg.solvers.general.starts.first_penalties import set_penalties
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.solver import LINEAR, Solver

#: Unknowns and numbers in the data up to which dense Newton matrices are made.
MOST_UNKNOWNS, MOST_ENTRIES = 1_500, 5_000_000
#: A step ends at this part of the way to the boundary.
NEAR = 0.995
#: Steps in all, steps without progress, and the length below which a step consists of round-off.
MOST_STEPS, PATIENCE, SHORTEST = 80, 10, 1e-6
#: This part of a typical bend (argument over multiplier) is added to each: rows of a perfect fit have none, and the
#: Newton matrix would consist of them alone. A step misses A x - o = p - n by this, times the change of u.
LEAST_BEND = 1e-7
#: Dual points keep this part of a typical one from the ends of their intervals, where round-off would let them meet.
LEAST_ROOM = 1e-18
#: A point is worth a proof if its complementarity is this part of the tolerance.
PART = 0.5


@dataclass(eq=False)
class Point:
    """x, the dual points u, and p and n with ``p - n`` near ``A x - o``; all but x are flat, over all terms."""

    x: Array
    u: Array
    p: Array
    n: Array

    def moved(self, step: Point, length: float) -> Point:
        """The point after a part of a step."""
        pairs = (self.x, step.x), (self.u, step.u), (self.p, step.p), (self.n, step.n)
        return Point(*(value + length * change for value, change in pairs))


class Terms:
    """All piecewise linear terms, one after the other in flat arrays."""

    def __init__(self, function: AugmentedLagrangian) -> None:
        self.function = function
        self.shapes = [term.q.shape for term in function.rough]
        self.ends = np.cumsum([0, *(rows * k for rows, k in self.shapes)])
        sets = [term.dual_set for term in function.rough]
        assert all(isinstance(given, Intervals) for given in sets)
        self.lower, self.upper, self.offset = (
            self._flat(
                [np.broadcast_to(getattr(given, name), shape) for given, shape in zip(sets, self.shapes, strict=True)]
            )
            for name in ("lower", "upper", "offset")
        )
        open_set = self.lower < self.upper  # otherwise u is fixed
        self.has_lower, self.has_upper = (np.isfinite(ends) & open_set for ends in (self.lower, self.upper))
        self.is_free = open_set.astype(float)
        self.least_bend = self._flat([np.full(t.q.shape, LEAST_BEND / t.sigma) for t in function.rough])
        self.slopes = self._flat([np.full(t.q.shape, t.sigma * t.typical) for t in function.rough])
        self.least_room = LEAST_ROOM * self.slopes
        self.count = max(1, int(self.has_lower.sum() + self.has_upper.sum()))

    @staticmethod
    def _flat(parts: list[Array]) -> Array:
        return np.concatenate([np.asarray(part, dtype=float).reshape(-1) for part in parts])

    def parts(self, flat: Array) -> list[Array]:
        """The array of each term."""
        return [
            flat[a:b].reshape(shape) for a, b, shape in zip(self.ends[:-1], self.ends[1:], self.shapes, strict=True)
        ]

    def forward(self, x: Array) -> Array:
        """A x."""
        return self._flat([term.forward(x) for term in self.function.rough])

    def adjoint(self, u: Array) -> Array:
        """A'u."""
        total = np.zeros((self.function.size, self.function.k))
        for term, part in zip(self.function.rough, self.parts(u), strict=True):
            total += term.adjoint(part)
        return total

    def start(self, x: Array) -> Point:
        """x, and u in the middle of its interval, with p and n of a typical size."""
        z = self.forward(x) - self.offset
        sizes = self._flat([np.full(term.q.shape, term.typical) for term in self.function.rough])
        lower = np.where(self.has_lower, self.lower, np.where(self.has_upper, self.upper - 2.0 * self.slopes, 0.0))
        upper = np.where(self.has_upper, self.upper, np.where(self.has_lower, self.lower + 2.0 * self.slopes, 0.0))
        u = np.where(self.is_free > 0, 0.5 * (lower + upper), self.lower)
        room = 0.5 * (np.abs(z) + sizes)
        p = np.where(self.has_upper, np.maximum(z, 0.0) + room, 0.0)
        n = np.where(self.has_lower, np.maximum(-z, 0.0) + room, 0.0)
        return Point(x, u, p, n)

    def rooms(self, u: Array) -> tuple[Array, Array]:
        """h - u and u - l; 1 where there is no such end."""
        above = np.where(self.has_upper, np.maximum(self.upper - u, self.least_room), 1.0)
        return above, np.where(self.has_lower, np.maximum(u - self.lower, self.least_room), 1.0)

    def complementarity(self, at: Point) -> float:
        """p'(h - u) + n'(u - l)."""
        above, below = self.rooms(at.u)
        return float(at.p @ above + at.n @ below)

    def added_to(self, H: Array, weights: Array) -> None:
        """H += A'diag(weights) A."""
        k = self.function.k
        for term, part in zip(self.function.rough, self.parts(weights), strict=True):
            if term.of_scores:
                blocks = centred_blocks(part) if term.centred else part[:, :, None] * np.eye(k)
                add_row_hessians(H, term.rows, part if k == 1 else blocks)
            else:
                for output in range(k):
                    term.sparse_rows.add_to(H, part[:, output], output)


class Newton:
    """The Newton system at a point, solved for several right sides."""

    def __init__(self, terms: Terms, at: Point) -> None:
        function = terms.function
        self.terms, self.at = terms, at
        self.above, self.below = terms.rooms(at.u)
        z = terms.forward(at.x) - terms.offset
        self.missed = terms.is_free * (z - at.p + at.n)
        scores = [np.asarray(term.rows @ at.x) for term in function.smooth]
        self.grads = [term.grad(s) for term, s in zip(function.smooth, scores, strict=True)]
        self.hessians = [term.hessians(s) for term, s in zip(function.smooth, scores, strict=True)]
        self.slope = function.quadratic @ at.x + terms.adjoint(at.u)
        for term, g in zip(function.smooth, self.grads, strict=True):
            self.slope += term.rows.T @ g
        self.ratio_p, self.ratio_n = at.p / self.above, at.n / self.below
        self.weights = terms.is_free / (self.ratio_p + self.ratio_n + terms.least_bend)
        H = function.matrix
        H[...] = 0.0
        for a in range(function.k):
            H[a, :, a, :] = function.quadratic
        for term, h in zip(function.smooth, self.hessians, strict=True):
            term.added_to(H, h)
        terms.added_to(H, self.weights)
        size = function.size * function.k
        self.system, self._factored = DenseSystem(function, H.reshape(size, size)), False

    @property
    def mu(self) -> float:
        """The mean of all products."""
        return self.terms.complementarity(self.at) / self.terms.count

    def step(self, mu: float, second_p: Array | float = 0.0, second_n: Array | float = 0.0) -> Point:
        """The step to products of mu, less the terms of second order that an earlier step found."""
        terms, at = self.terms, self.at
        to_p = (np.where(terms.has_upper, mu - second_p, 0.0) - at.p * self.above) / self.above
        to_n = (np.where(terms.has_lower, mu - second_n, 0.0) - at.n * self.below) / self.below
        right = self.missed - to_p + to_n
        dx = self._solved(-self.slope - terms.adjoint(self.weights * right))
        du = self.weights * (terms.forward(dx) + right)
        return Point(dx, du, to_p + self.ratio_p * du, to_n - self.ratio_n * du)

    def _solved(self, right: Array) -> Array:
        if self._factored:
            return self.system.solve(right)
        self._factored, function = True, self.terms.function
        typical = function.typical_score + float(np.max(np.abs(self.at.x) * function.lengths[:, None]))
        return self.system.direction(right, typical)

    def moved_grads(self, step: Point, length: float) -> list[Array]:
        """The gradients of smooth terms after a part of a step, to first order: these are in balance with u."""
        terms = zip(self.terms.function.smooth, self.grads, self.hessians, strict=True)
        return [g + bent(h, length * np.asarray(term.rows @ step.x)) for term, g, h in terms]

    def balanced(self, at: Point, grads: list[Array]) -> tuple[Point, list[Array]]:
        """A later point and its gradients, moved so that the dual points are in balance up to round-off."""
        function = self.terms.function
        left = function.quadratic @ at.x + self.terms.adjoint(at.u)
        for smooth, g in zip(function.smooth, grads, strict=True):
            left += smooth.rows.T @ g
        dx = -self.system.solve(left)
        moved = Point(at.x + dx, at.u + self.weights * self.terms.forward(dx), at.p, at.n)
        pairs = zip(function.smooth, grads, self.hessians, strict=True)
        return moved, [g + bent(h, np.asarray(smooth.rows @ dx)) for smooth, g, h in pairs]

    def longest(self, step: Point) -> float:
        """The length at which the first p, n, h - u or u - l becomes zero; at most 1 / NEAR."""
        tiny = np.finfo(float).tiny
        rates = (
            *(-step.p / np.maximum(self.at.p, tiny), -step.n / np.maximum(self.at.n, tiny)),
            *(np.where(self.terms.has_upper, step.u / self.above, 0.0),),
            *(np.where(self.terms.has_lower, -step.u / self.below, 0.0),),
        )
        return 1.0 / max(NEAR, *(float(np.max(rate, initial=0.0)) for rate in rates))

    def mu_after(self, step: Point, length: float) -> float:
        """The mean of all products after a step of this length."""
        terms, at = self.terms, self.at
        above = self.above - np.where(terms.has_upper, length * step.u, 0.0)
        below = self.below + np.where(terms.has_lower, length * step.u, 0.0)
        return float((at.p + length * step.p) @ above + (at.n + length * step.n) @ below) / terms.count


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Predictor and corrector steps until the driver is content."""
    function = AugmentedLagrangian(problem)
    set_penalties(function)
    terms = Terms(function)
    at = terms.start(function.joined(start.theta, start.b))
    least, best = np.inf, 0
    for count in range(1, MOST_STEPS + 1):
        deadline.check()
        newton = Newton(terms, at)
        mu = newton.mu
        straight = newton.step(0.0)
        length = min(1.0, newton.longest(straight))
        centring = (max(newton.mu_after(straight, length), 0.0) / mu) ** 3 if mu > 0 else 0.0
        second_p = np.where(terms.has_upper, -straight.p * straight.u, 0.0)
        second_n = np.where(terms.has_lower, straight.n * straight.u, 0.0)
        step = newton.step(min(centring, 1.0) * mu, second_p, second_n)
        length = min(1.0, NEAR * newton.longest(step))
        grads = newton.moved_grads(step, length)
        at = at.moved(step, length)
        left = terms.complementarity(at) + excess(function, (1.0 - length) * newton.slope, function.scale(at.x))
        least, best = (left, count) if left < least else (least, best)
        stuck = length < SHORTEST or count - best >= PATIENCE or count == MOST_STEPS
        promising = left <= PART * tol * function.scale(at.x)
        found = newton.balanced(at, grads) if promising or stuck else (at, grads)
        yield Iterate(*function.inside(found[0].x), _dual_points(terms, *found), stuck, promising)


def _dual_points(terms: Terms, at: Point, grads: list[Array]) -> dict[int, Array]:
    """u, and the dual points of smooth terms."""
    function = terms.function
    dual = {smooth.piece.number: into_domain(smooth.piece, g) for smooth, g in zip(function.smooth, grads, strict=True)}
    for term, u in zip(function.rough, terms.parts(at.u), strict=True):
        if term.piece is not None:
            dual[term.piece.number] = term.dual(term.dual_set.project(u))
    return dual


NEEDS = (PiecewiseLinear(), FewWeights(MOST_UNKNOWNS, MOST_ENTRIES))
SOLVER = Solver("interior_point", run, NEEDS, LINEAR, rough_zeros=True)
