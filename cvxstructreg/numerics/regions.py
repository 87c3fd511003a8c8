"""Preconditioners of systems whose unknowns move together in regions: the system is solved exactly on their sums.

Stiff springs between neighbours leave a region free to move as a whole. A factorisation of the springs with a diagonal
knows little of what holds the region as a whole, and conjugate gradients need many steps to find out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array

#: Directions in which the curvature is below this part of that of the diagonal are left to the diagonal.
FLAT = 1e-6


class Regions:
    """Sets of unknowns, one after the other: ``labels`` of shape (D, k) has the set of each unknown, -1 for none.

    Examples
    --------
    >>> regions = Regions(np.array([[0], [0], [-1], [1]]))
    >>> regions.sums(np.array([[1.0], [2.0], [4.0], [8.0]]))
    array([3., 8.])
    """

    def __init__(self, labels: np.ndarray) -> None:
        self.shape, flat = labels.shape, labels.reshape(-1)
        self.where = np.flatnonzero(flat >= 0)
        self.labels = flat[self.where]
        self.count = int(self.labels.max(initial=-1)) + 1

    def sums(self, r: Array) -> Array:
        """The sum over each set."""
        return np.asarray(np.bincount(self.labels, r.reshape(-1)[self.where], minlength=self.count), dtype=float)

    def images(self, rows: Any) -> list[Any]:
        """For each column of unknowns, the matrix ``rows`` times the sets as vectors of ones."""
        D, k = self.shape
        at, column = np.divmod(self.where, k)
        here = [column == a for a in range(k)]
        shape = (D, self.count)
        return [rows @ sp.csr_array((np.ones(h.sum()), (at[h], self.labels[h])), shape=shape) for h in here]

    def curvature(self, held: Array, parts: Sequence[tuple[Any, Array]]) -> Array:
        """``diag(held)`` plus the sum of R'BR for given rows R with a k x k matrix B for each, on the sets."""
        total = np.diag(held)
        for rows, blocks in parts:
            images = self.images(rows)
            for a, left in enumerate(images):
                for b, right in enumerate(images[: a + 1]):
                    product = _product(left, blocks[:, a, b], right)
                    total += product if a == b else product + product.T
        return total


def _product(left: Any, weights: Array, right: Any) -> Array:
    """left' diag(weights) right."""
    first, second = np.unique(left.indices), np.unique(right.indices)
    out = np.zeros((left.shape[1], right.shape[1]))
    out[np.ix_(first, second)] = left[:, first].toarray().T @ (weights[:, None] * right[:, second].toarray())
    return out


class RegionSolver:
    """The inverse on the sets, to be added to a preconditioner with the curvature ``diagonal`` there."""

    def __init__(self, regions: Regions, curvature: Array, diagonal: Array) -> None:
        from scipy.linalg import eigh

        roots = 1.0 / np.sqrt(diagonal)
        values, vectors = eigh(roots[:, None] * curvature * roots)
        kept = values > FLAT
        self.regions, self.factor = regions, roots[:, None] * vectors[:, kept] / np.sqrt(values[kept])

    def add_to(self, z: Array, r: Array) -> None:
        """Add the solution on the sets for the right side r to z, a new array."""
        steps = self.factor @ (self.factor.T @ self.regions.sums(r))
        z.reshape(-1)[self.regions.where] += steps[self.regions.labels]
