"""The ADMM of Yogatama and Smith (2014, Algorithm 1), with all stops in one run.

    minimize  loss(Xw + b) + lam_1 |w|_1 + lam sum_s c_s ||v_s||   subject to  v_s = w_s for every copy s

The library implements the algorithm with proximal gradient steps for w, as published. This script finds the same
minimiser by Newton steps with coordinate descent, in a hundredth of the time, so that a grid over rho and the number of
iterations is affordable. Sentences with the same words form one group with several copies. These copies always have
equal values, so the result is the same as with all sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from weight_step import DualStep, add_slopes, entries

from cvxstructreg.groups import Groups
from cvxstructreg.solvers.lasso import compiled_coordinate_descent
from cvxstructreg.solvers.lasso.quadratic_model import Coefficients, QuadraticModel
from cvxstructreg.solvers.lasso.working_set import as_columns

#: The relative residuals at which the iterations end, and the relative change of w that ends its Newton steps.
SMALL, W_CHANGE = 1e-3, 1e-2
#: A quadratic model is solved until no weight moves in a pass by more than this fraction of the first pass, or of lam_1
#: (in units of the gradient). With much stricter values, w changes by about 1e-3 of its norm.
OF_FIRST, OF_LAM = 0.3, 1e-2
NEWTON_STEPS, PASSES = 20, 2
#: A Newton step leaves out zero words whose slope is below this part of lam_1, unless they turn out to be needed.
NEAR = 0.7
#: The least ridge for which a word is left to ``DualStep``, as a fraction of the sum of its squares.
OF_SQUARES = 1e-3

Point = tuple[Any, float]


def weight_step(X: Any, y: Any, ridge: Any, lam1: float) -> Any:
    """The faster of two ways to solve the w-step. ``DualStep`` is bad if words have a small ridge or none."""
    primal, squares = PrimalStep(X, y, ridge, lam1), np.asarray(X.multiply(X).sum(axis=0)).ravel()
    if np.any(ridge < OF_SQUARES * squares):
        return primal
    step = DualStep(X, y, ridge, lam1)
    step.rescue = primal
    return step


class PrimalStep:
    """argmin over (w, b) of loss(Xw + b) + lam_1 |w|_1 + 1/2 sum_j ridge_j w_j^2 - <pull, w>."""

    def __init__(self, X: Any, y: Any, ridge: Any, lam1: float) -> None:
        self.X, self.sign, self.ridge, self.lam1 = X, np.where(y == 1, 1.0, -1.0), np.asarray(ridge, float), lam1
        d = X.shape[1]
        box = np.vstack([np.full(d, lam1), np.full(d, -np.inf), np.full(d, np.inf)])
        Q = as_columns(sp.diags_array(self.ridge).tocsc())
        self.model = Coefficients(
            compiled_coordinate_descent, as_columns(sp.csc_array(X)), Q, self.ridge, box, intercept=True
        )
        self.rows = entries(sp.csr_array(X))

    def slopes(self, wrong: Any, w: Any, pull: Any) -> Any:
        """The negative gradient of the smooth part."""
        out = pull - self.ridge * w
        add_slopes(*self.rows, self.sign * wrong, out)
        return out

    def value(self, scores: Any, w: Any, pull: Any) -> float:
        """The objective."""
        loss = np.logaddexp(0.0, -self.sign * scores).sum()
        return float(loss + self.lam1 * np.abs(w).sum() + np.sum((0.5 * self.ridge * w - pull) * w))

    def __call__(self, w: Any, b: float, pull: Any) -> Point:
        """Take Newton steps with a line search until w hardly changes."""
        scores = self.X @ w + b
        value, small, chosen = self.value(scores, w, pull), False, np.zeros(w.size, dtype=bool)
        for _ in range(NEWTON_STEPS):
            wrong = 1.0 / (1.0 + np.exp(np.clip(self.sign * scores, -500.0, 500.0)))
            slopes = np.abs(self.slopes(wrong, w, pull))
            if small and not np.any(slopes[~chosen] > self.lam1):
                break
            chosen = (w != 0.0) | (slopes > NEAR * self.lam1)
            features, h = np.flatnonzero(chosen), np.maximum(wrong * (1.0 - wrong), 1e-10)
            model = QuadraticModel(self.model, features, h, -self.sign * wrong, w, self.ridge * w - pull)
            first, _, _ = model.descend(features, 0.0, 1)
            model.minimise(max(OF_FIRST * first, OF_LAM * self.lam1), PASSES)
            change, shift = model.change()
            step, t = model.w - w, 1.0
            while t > 1e-6 and self.value(scores + t * change, w + t * step, pull) > value + 1e-12 * abs(value):
                t *= 0.5
            w, b, scores = w + t * step, b + t * shift, scores + t * change
            value = self.value(scores, w, pull)
            small = bool(np.linalg.norm(t * step) <= W_CHANGE * np.linalg.norm(w) + 1e-12)
        return w, float(b)


@njit(cache=True)
def update_copies(
    indptr: Any,
    indices: Any,
    tokens: Any,
    each: Any,
    radii: Any,
    w: Any,
    threshold: float,
    v: Any,
    u: Any,
    pull: Any,
) -> None:
    """v_s = the prox of the norm at w_s + u_s, u_s = what is left; add up each * (v - u) of every word in ``pull``.

    An empty v is not kept.
    """
    for g in range(len(indptr) - 1):
        square = 0.0
        for k in range(indptr[g], indptr[g + 1]):
            u[k] += w[indices[k]]
            square += tokens[k] * u[k] * u[k]
        norm = np.sqrt(square)
        kept = 1.0 - threshold * radii[g] / norm if norm > threshold * radii[g] else 0.0
        if v.size:
            for k in range(indptr[g], indptr[g + 1]):
                v[k] = kept * u[k]
        if square > 0.0:
            for k in range(indptr[g], indptr[g + 1]):
                pull[indices[k]] += each[k] * (2.0 * kept - 1.0) * u[k]
                u[k] *= 1.0 - kept


class Copies:
    """The copies v_s of the weights and their multipliers: each group has ``times`` copies of radius c.

    A member with weight m counts as m^2 equal copies: a word that a sentence has m^2 times.
    """

    def __init__(self, groups: Groups, weights_are_counts: bool) -> None:
        self.groups, ones = groups, np.ones(len(groups))
        self.times = groups.weights if weights_are_counts else ones
        self.radii = ones if weights_are_counts else groups.weights
        members = groups.member_weights
        self.tokens = np.ones(groups.n_entries) if members is None else members**2
        self.each = np.repeat(self.times, groups.sizes) * self.tokens
        self.v, self.u = np.zeros(groups.n_entries), np.zeros(groups.n_entries)
        everywhere = (self.each, groups.indices, np.arange(groups.n_entries + 1))
        self.sums = sp.csr_array(everywhere, shape=(groups.n_entries, groups.n_features)).T

    def adjoint(self, entries: Any) -> Any:
        """The sum over all copies of a word."""
        return self.sums @ entries

    def norms(self, entries: Any) -> Any:
        """The norm of each group, divided by its radius."""
        return np.sqrt(np.add.reduceat(self.tokens * entries**2, self.groups.indptr[:-1])) / self.radii

    def update(self, w: Any, threshold: float, residuals: bool) -> bool:
        """Update v by soft thresholding of the norms and u by the remainder; return whether the residuals are small."""
        groups, old = self.groups, self.v
        self.v, self.pull = np.empty(old.size if residuals else 0), np.zeros(groups.n_features)
        given = (groups.indptr, groups.indices, self.tokens, self.each, self.radii)
        update_copies(*map(np.asarray, given), w, threshold, self.v, self.u, self.pull)
        if not residuals:
            return False
        z = w[groups.indices]
        size = max(float(self.each @ z**2), float(self.each @ self.v**2))
        agree = float(self.each @ (z - self.v) ** 2) <= SMALL**2 * size
        moved, held = np.linalg.norm(self.adjoint(self.v - old)), np.linalg.norm(self.adjoint(self.u))
        return bool(agree and moved <= SMALL * held)

    def multipliers(self, rho: float) -> Any:
        """The multipliers of the groups of the library, whose members have weights."""
        return rho * self.each / np.sqrt(self.tokens) * self.u


class Trunk:
    """The iterations as long as all copies are zero. They do not depend on lam, so runs with several lam share them.

    With zero copies, u is the sum of the earlier w. A run leaves the trunk when the norm of some u_s exceeds lam / rho.
    """

    def __init__(
        self, X: Any, y: Any, groups: Groups, lam1: float, rho: float, weights_are_counts: bool = False
    ) -> None:
        self.groups, self.rho, self.weights_are_counts = groups, rho, weights_are_counts
        self.copies = Copies(groups, weights_are_counts)
        self.counts = self.copies.adjoint(np.ones(groups.n_entries))
        self.step = weight_step(X, y, rho * self.counts, lam1)
        self.points: list[Point] = []
        self.largest: list[float] = []  # of the norms of the groups, after each iteration
        self._sum = np.zeros(X.shape[1])

    def point(self, number: int) -> Point:
        """(w, b) of an iteration; the first has the number 0."""
        while len(self.points) <= number:
            w, b = self.points[-1] if self.points else (np.zeros(self._sum.size), 0.0)
            w, b = self.step(w, b, -self.rho * self.counts * self._sum)
            self._sum = self._sum + w
            self.points.append((w, b))
            self.largest.append(float(self.copies.norms(self._sum[self.groups.indices]).max(initial=0.0)))
        return self.points[number]

    def run(self, lam: float, residuals: bool) -> Iterator[tuple[Point, Copies, bool]]:
        """Yield after each iteration (w, b), the copies, and whether the residuals are small (if they are wanted)."""
        copies, number = Copies(self.groups, self.weights_are_counts), 0
        total = np.zeros(self._sum.size)
        while True:  # on the trunk
            w, b = self.point(number)
            if self.largest[number] > lam / self.rho:
                break
            total += w
            copies.u = total[self.groups.indices]
            yield (w, b), copies, False
            number += 1
        while True:
            done = copies.update(w, lam / self.rho, residuals)
            yield (w, b), copies, done
            w, b = self.step(w, b, self.rho * copies.pull)


def iterations(*problem: Any, weights_are_counts: bool = False) -> Iterator[tuple[Point, Any, bool]]:
    """The points, multipliers of the groups and small residuals for (X, y, groups, lam, lam_1, rho)."""
    X, y, groups, lam, lam1, rho = problem
    steps = Trunk(X, y, groups, lam1, rho, weights_are_counts).run(lam, residuals=True)
    return ((point, copies.multipliers(rho), done) for point, copies, done in steps)


class Stops:
    """A run that can be continued: the points after given numbers of iterations.

    If the run ends earlier, the point is the last one. It ends if ||w - w_old|| <= change ||w||, the rule of the paper,
    or, without ``change``, if the residuals are small. With ``weights_are_counts``, a group of weight c stands for c
    equal groups of weight 1, not for one of weight c. A ``trunk`` of an earlier run saves shared iterations.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        groups: Any,
        lam: float,
        lam1: float,
        rho: float,
        weights_are_counts: bool = False,
        change: float | None = None,
        trunk: Trunk | None = None,
    ) -> None:
        trunk = trunk or Trunk(X, y, groups, lam1, rho, weights_are_counts)
        self._steps, self._count, self._change = trunk.run(lam, residuals=change is None), 0, change
        self._rho, self._last = rho, ((np.zeros(0), 0.0), trunk.copies)
        self._done = False

    def after(self, count: int) -> tuple[Point, Any]:
        """(w, b) and the multipliers after ``count`` iterations; ``count`` must not decrease between calls."""
        while self._count < count and not self._done:
            before = self._last[0][0]
            point, copies, self._done = next(self._steps)
            self._last = point, copies
            self._count += 1
            if self._change is not None:
                moved = np.inf if self._count == 1 else np.linalg.norm(point[0] - before)
                self._done = bool(moved <= self._change * np.linalg.norm(point[0]))
        point, copies = self._last
        return point, copies.multipliers(self._rho)

    @property
    def ended(self) -> bool:
        """Whether the stopping rule has ended the run."""
        return self._done

    @property
    def count(self) -> int:
        """The number of iterations so far."""
        return self._count
