"""Alternating steps before Newton's method: one factorisation for all of them, and no search.

Every nonsmooth term, max over p in B of <p, K x - o>, is split off. With the argument u and the multiplier p of each
term, and the over-relaxation a, a step of the alternating direction method of multipliers is

    x <- H^-1 sum K'(u - 2 p + sigma o),      H = sum sigma K'K
    u <- p + a sigma (K x - o) + (1 - a)(u - p),      p <- projection of u onto B

It costs two products with the data in single precision: a small part of a Newton step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg.blas import strsv
from scipy.linalg.lapack import spotrf

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.general.dense_system import TINY_SINGLE
from cvxstructreg.solvers.general.dual_sets import Balls, DualSet
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian
from cvxstructreg.solvers.general.rough_term import RoughTerm

#: Steps, and their over-relaxation.
STEPS, RELAXATION = 50, 1.8
#: What multiplies sigmas afterwards, of the scores and of the weights: the multipliers are nearly right by then. (Found
#: on hinge, absolute and pinball losses with 1,000 x 500 data and groups.)
AFTER_SCORES, AFTER_WEIGHTS = 48.0, 96.0


def alternating_start(function: AugmentedLagrangian, x: Array) -> Array:
    """The point after ``STEPS`` steps from x; its multipliers become those of the terms, and all sigmas grow.

    If there is no factor, or the steps end at no number, nothing changes.
    """
    splits: list[_Split] = [(_ScoreSplit if term.of_scores else _WeightSplit)(term, x) for term in function.rough]
    factor = _factor(function, splits)
    if factor is None:
        return x
    for _ in range(STEPS):
        right = sum((split.pull() for split in splits[1:]), splits[0].pull())
        half = strsv(factor, right, lower=1)
        step = strsv(factor, half, lower=1, trans=1, overwrite_x=1)
        for split in splits:
            split.follow(step)
    if not np.all(np.isfinite(step)):
        return x
    for split in splits:
        split.term.q = split.term.dual_set.project(split.p.astype(float))
        split.term.sigma *= AFTER_SCORES if split.term.of_scores else AFTER_WEIGHTS
    return np.asarray(step, dtype=float)[:, None]


class _Split:
    """A term with its u and p in single precision."""

    def __init__(self, term: RoughTerm, x: Array) -> None:
        self.term, self.sigma, self.size = term, term.sigma, len(x)
        self.dual_set = _in_single(term.dual_set)
        self.shift = _single(term.sigma * term.dual_set.offset)
        self.u = _single(term.argument(term.forward(x)))
        self.p = self.dual_set.project(self.u)

    def pull(self) -> Array:
        """K'(u - 2 p + sigma o)."""
        return self.adjoint((self.u - 2.0 * self.p + self.shift)[:, 0])

    def follow(self, x: Array) -> None:
        """The next u and p for this x."""
        self.u -= self.p
        self.u *= 1.0 - RELAXATION
        self.u += self.p
        self.u += RELAXATION * (self.sigma * self.forward(x)[:, None] - self.shift)
        self.p = self.dual_set.project(self.u)

    def forward(self, x: Array) -> Array:
        """K x."""
        raise NotImplementedError

    def adjoint(self, v: Array) -> Array:
        """K'v."""
        raise NotImplementedError

    def add_gram(self, H: Array) -> None:
        """H = sigma K'K for the scores, H += sigma K'K for weights, above the diagonal."""
        raise NotImplementedError


class _ScoreSplit(_Split):
    """A term of the scores, whose rows are dense."""

    def __init__(self, term: RoughTerm, x: Array) -> None:
        super().__init__(term, x)
        (self.active_rows,) = term.single_rows
        self.rows = self.active_rows.rows

    def forward(self, x: Array) -> Array:
        return np.asarray(self.rows @ x)

    def adjoint(self, v: Array) -> Array:
        return np.asarray(v @ self.rows)

    def add_gram(self, H: Array) -> None:
        np.multiply(self.active_rows.of(np.ones(len(self.rows), dtype=bool)), self.sigma, out=H, casting="same_kind")


class _WeightSplit(_Split):
    """A term of single weights: each row has one entry."""

    def __init__(self, term: RoughTerm, x: Array) -> None:
        super().__init__(term, x)
        self.places, self.data = term.rows.indices, _single(term.rows.data)

    def forward(self, x: Array) -> Array:
        return np.asarray(self.data * x[self.places])

    def adjoint(self, v: Array) -> Array:
        return _single(np.bincount(self.places, self.data * v, minlength=self.size))

    def add_gram(self, H: Array) -> None:
        weights = self.sigma * self.data**2
        np.einsum("ii->i", H)[:] += np.bincount(self.places, weights, minlength=self.size)


def _factor(function: AugmentedLagrangian, splits: list[_Split]) -> Array | None:
    """The lower Cholesky factor of H, slightly lifted."""
    H = function.factor_memory[np.float32]
    for split in sorted(splits, key=lambda split: not split.term.of_scores):  # the first overwrites H
        split.add_gram(H)
    diagonal = np.einsum("ii->i", H)
    diagonal += TINY_SINGLE * (diagonal + function.capacity)
    factor, failed = spotrf(H.T, lower=1, clean=0, overwrite_a=1)  # the transpose is in Fortran order
    return None if failed else np.asarray(factor)


def _in_single(dual_set: DualSet) -> Any:
    """The same set with its ends or radii in single precision."""
    if isinstance(dual_set, Balls):
        return replace(dual_set, radii=_single(dual_set.radii))
    return replace(dual_set, lower=_single(dual_set.lower), upper=_single(dual_set.upper))


def _single(values: Any) -> Array:
    return np.asarray(values, dtype=np.float32)
