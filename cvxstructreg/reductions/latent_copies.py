"""Latent group norms as norms of disjoint groups, by copies of the columns.

    min over w  f(X w) + lam sum_g c_g ||v_g||,  w = sum_g E_g'v_g    =    min over v  f(X E'v) + lam sum_g c_g ||v_g||

Each group has its own copies of its features (Jacob, Obozinski and Vert 2009). Other terms on the weights act on E'v.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.model import Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.groups import Groups
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.composed import compose
from cvxstructreg.penalties.group_lasso import GroupLasso
from cvxstructreg.reductions.reduction import Point, Reduction

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem


@dataclass(frozen=True, eq=False)
class LatentCopies(Reduction):
    """A problem with a latent group norm as one with disjoint groups of copied columns.

    ``number`` is the number of the latent term, ``features`` the feature of each copy.
    """

    problem: Problem
    number: int
    features: np.ndarray
    n_features: int

    @classmethod
    def make(cls, problem: Problem) -> Self | None:
        """None for kernel models, without a latent norm, with several of them, and beside bounds."""
        number = latent_term(problem)
        if number is None or problem.given.kernel is not None or _has_bounds(problem):
            return None
        indptr, copies, costs = problem.terms[number].atom.latent_groups()
        d = problem.model.n_weights
        spread = sp.csr_array((np.ones(len(copies)), (copies, np.arange(len(copies)))), shape=(d, len(copies)))
        terms = []
        for count, term in enumerate(problem.terms):
            if count == number:
                disjoint = Groups.from_csr(indptr, np.arange(len(copies)), len(copies), costs)
                terms.append(Term(GroupLasso(disjoint), term.scale, "weights"))
            elif term.target == "weights":
                terms.append(Term(compose(term.atom, spread), term.scale, "weights"))
            else:
                terms.append(term)
        design = problem.model.design[:, copies]
        model = Linear(design, problem.model.intercept)
        return cls(type(problem)(model, Objective(tuple(terms))), number, np.asarray(copies), d)

    def lift(self, point: Point) -> Point:
        """The sums of the copies of each feature."""
        return Point(self._summed(point.theta), point.b, self._without_own(point))

    def lower(self, point: Point) -> Point:
        """Equal parts for all copies of a feature."""
        counts = np.bincount(self.features, minlength=self.n_features)
        shares = point.theta / np.maximum(counts, 1)[:, None]
        return Point(shares[self.features], point.b, self._without_own(point))

    def _summed(self, copies: Array) -> Array:
        total = np.zeros((self.n_features, copies.shape[1]))
        np.add.at(total, self.features, copies)
        return total

    def _without_own(self, point: Point) -> dict[int, Array]:
        """The dual points of the other terms, which do not change."""
        return {number: u for number, u in point.dual.items() if number != self.number}


def latent_term(problem: Problem) -> int | None:
    """The number of the only latent group norm of a problem; None if there is none, or more than one."""
    found = [
        number
        for number, term in enumerate(problem.terms)
        if term.atom.can("latent_groups") and term.scale > 0 and len(term.atom.latent_groups()[1])
    ]
    return found[0] if len(found) == 1 else None


def _has_bounds(problem: Problem) -> bool:
    part = problem.normal_form.separable
    return part is not None and part.bounded
