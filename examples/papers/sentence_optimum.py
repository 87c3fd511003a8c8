"""The optimum of the sentence regularizer, by weighted ridges, and a lower bound that proves it.

    minimize  loss(Xw + b) + lam_1 |w|_1 + lam sum_g c_g ||w_g||

A norm is at most ||w_g||^2 / (2 n_g) + n_g / 2, with equality at n_g = ||w_g||. With n_g^2 = ||w_g||^2 + eps^2 at the
last w, the next w is a w-step of the published algorithm with the ridge lam sum_g c_g / n_g of every word and no pull.
eps falls from step to step. A small ridge around the last weight is added, which vanishes at the end. With
lam c_g w_g / n_g as multipliers of the groups, theta of the w-step is nearly a dual point, and a scaled one is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from published_admm import Copies
from weight_step import ACCURACY, RESIDUAL, W_CHANGE, DualStep

#: The relative gap of an optimum, the largest number of steps, and how many there are between two bounds.
ENOUGH, MOST_STEPS, BETWEEN = 1e-4, 300, 5
#: After so many steps, w-steps are solved to these tolerances (change of w, residual, accuracy), for a better bound.
ROUGH, STRICT = 40, (1e-5, 1e-3, 1e-7)
#: Every word has a ridge around its last weight, because the w-step needs one: this fraction of its curvature.
#: If the steps do not converge, the next fraction is used.
OF_SQUARES = (0.01, 0.1, 1.0)
#: Weights below this fraction of the largest are set to zero if the objective does not show it (to NO_MORE).
TINY, NO_MORE = 1e-5, 1e-6
#: eps: the first value, the factor from step to step, and the last value, as a fraction of the largest weight.
FIRST, FACTOR, LAST = 1.0, 0.7, 1e-7


@dataclass(frozen=True, eq=False)
class Optimum:
    """A point with its objective, a lower bound of the optimum, and the CPU seconds that it took."""

    coef: Any
    intercept: float
    objective: float
    bound: float
    seconds: float

    @property
    def gap(self) -> float:
        """The relative gap."""
        return self.gap_of(self.objective)

    def gap_of(self, objective: float) -> float:
        """The relative gap of a point with this objective."""
        return (objective - self.bound) / max(abs(objective), 1e-12)


@njit(cache=True)
def weighted_ridge(indptr: Any, indices: Any, tokens: Any, each: Any, w: Any, eps: float, n: Any, ridge: Any) -> None:
    """n_g = sqrt(||w_g||^2 + eps^2); add the sum of each / n_g of every word to ``ridge``."""
    for g in range(len(indptr) - 1):
        square = eps * eps
        for k in range(indptr[g], indptr[g + 1]):
            square += tokens[k] * w[indices[k]] ** 2
        n[g] = np.sqrt(square)
        for k in range(indptr[g], indptr[g + 1]):
            ridge[indices[k]] += each[k] / n[g]


@njit(cache=True)
def pull_of_groups(indptr: Any, indices: Any, tokens: Any, each: Any, w: Any, n: Any, pull: Any) -> None:
    """Add the sum of each * w / max(n_g, ||w_g||) of every word to ``pull``."""
    for g in range(len(indptr) - 1):
        square = 0.0
        for k in range(indptr[g], indptr[g + 1]):
            square += tokens[k] * w[indices[k]] ** 2
        size = max(n[g], np.sqrt(square))
        for k in range(indptr[g], indptr[g + 1]):
            pull[indices[k]] += each[k] * w[indices[k]] / size


class SentenceProblem:
    """The problem for one part of the data and one pair of strengths."""

    def __init__(self, X: Any, y: Any, groups: Any, lam: float, lam1: float) -> None:
        self.lam, self.lam1, self.groups = lam, lam1, groups
        copies = Copies(groups, True)
        self.entries = tuple(map(np.asarray, (groups.indptr, groups.indices, copies.tokens, copies.each)))
        self.times = np.asarray(copies.times)
        self.step = DualStep(X, y, np.ones(X.shape[1]), lam1)
        self.squares = sp.csr_array(X.multiply(X)).T.tocsr()

    def ridges_at(self, w: Any, eps: float, fraction: float) -> tuple[Any, Any, Any]:
        """n of every group, the ridge of its groups for every word, and a small one around its last weight."""
        n, ridge = np.empty(len(self.groups)), np.zeros(w.size)
        weighted_ridge(*self.entries, w, eps, n, ridge)
        wrong = np.full(self.step.sign.size, 0.5) if self.step.theta is None else np.abs(self.step.theta)
        bend = np.maximum(wrong * (1.0 - wrong), 1e-6)
        return n, self.lam * ridge, fraction * (self.squares @ bend)

    def objective(self, w: Any, b: float) -> float:
        """The objective."""
        norms = np.sqrt(np.add.reduceat(self.entries[2] * w[self.entries[1]] ** 2, self.entries[0][:-1]))
        loss = np.logaddexp(0.0, -self.step.sign * self.step.scores(w, b)).sum()
        return float(loss + self.lam1 * np.abs(w).sum() + self.lam * (self.times @ norms))

    def bound(self, w: Any, theta: Any, n: Any) -> float:
        """A lower bound of the optimum from theta and the multipliers lam c_g w_g / n_g."""
        pull, sign = np.zeros(w.size), self.step.sign
        pull_of_groups(*self.entries, w, n, pull)
        part = np.clip(sign * theta, 0.0, 1.0)  # of both classes, they must have the same sum
        sums = part[sign > 0].sum(), part[sign < 0].sum()
        part = np.where(sign > 0, part * min(1.0, sums[1] / max(sums[0], 1e-300)), part)
        part = np.where(sign < 0, part * min(1.0, sums[0] / max(sums[1], 1e-300)), part)
        left = self.step.slopes(sign * part) - self.lam * pull
        part = part * min(1.0, self.lam1 / max(float(np.abs(left).max(initial=0.0)), 1e-300))
        inside = part[(part > 0.0) & (part < 1.0)]
        return float(-(inside * np.log(inside) + (1.0 - inside) * np.log1p(-inside)).sum())

    def solve(self, start: Optimum | None = None) -> Optimum:
        """The point with the least objective, when the gap is small enough or after the most steps."""
        found = self.steps(start, OF_SQUARES[0])
        for fraction in OF_SQUARES[1:]:
            if found.gap <= 10.0 * ENOUGH:
                break
            other = self.steps(None, fraction)
            found = min(found, other, key=lambda one: one.gap)
        return found

    def steps(self, start: Optimum | None, fraction: float) -> Optimum:
        """The steps with one fraction. They end early if they diverge."""
        began, step = time.process_time(), self.step
        zeros = np.zeros(step.ridge.size)
        w, b = (zeros, 0.0) if start is None else (start.coef, start.intercept)
        eps, best, bound, most = FIRST, (np.inf, w, 0.0), 0.0, self.objective(zeros, 0.0)
        step.theta, step.last, step.preconditioner = None, None, None
        step.w_change, step.residual, step.accuracy = W_CHANGE, RESIDUAL, ACCURACY
        for number in range(1, MOST_STEPS + 1):
            n, ridge, around = self.ridges_at(w, eps, fraction)
            step.ridge = ridge + around
            w, b = step(w, b, around * w)
            eps = max(FACTOR * eps, LAST * float(np.abs(w).max(initial=0.0)), 1e-12)
            if number == ROUGH:
                step.w_change, step.residual, step.accuracy = STRICT
            if number % BETWEEN == 0 and number > ROUGH:
                best = min(best, (self.objective(w, b), w, b), key=lambda one: one[0])
                bound = max(bound, self.bound(w, step.theta, n))
                if best[0] - bound <= ENOUGH * abs(best[0]) or not best[0] <= 2.0 * most:
                    break
        objective, w, b = best
        rounded = np.where(np.abs(w) > TINY * np.abs(w).max(initial=0.0), w, 0.0)
        other = self.objective(rounded, b)
        if other <= objective + NO_MORE * abs(objective):
            w, objective = rounded, other
        return Optimum(w, float(b), objective, bound, time.process_time() - began)
