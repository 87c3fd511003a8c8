"""Losses of constant curvature h, such as squares: X'diag(h) X is made once, and a product with it reads fewer numbers.

Conjugate gradients then need no products with X. As in :mod:`~cvxstructreg.solvers.groups.single_precision`, the matrix
is in single precision, and only rough directions use it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.groups.single_precision import SingleMatrix

#: The matrix is made for at most so many features, and after products with X whose weights, in all, are this part of
#: its entries.
MOST_FEATURES, LATE = 2000, 0.04


@dataclass(frozen=True, eq=False)
class RestrictedGram:
    """X'diag(h) X for some features, with X'h and the sum of h for the intercept."""

    matrix: SingleMatrix
    pull: Array
    total: float

    def product(self, w: Array, b: Array) -> tuple[Array, Array]:
        """X'diag(h)(Xw + b), flat, and the sums of h (Xw + b) over the rows."""
        out = self.matrix @ w + self.pull[:, None] * b
        return out.ravel(), self.pull @ w + self.total * b


class WeightedGram:
    """X'diag(h) X for as long as h is the same for all outputs and in all steps."""

    def __init__(self, transposed: Array) -> None:
        self.transposed, self.spent = transposed, 0  # the weights in all products so far
        self.weights: Array | None = None
        d, n = transposed.shape
        self.useful = d <= min(n, MOST_FEATURES)
        self.whole: RestrictedGram | None = None
        self.last: tuple[NDArray[np.int64], RestrictedGram] | None = None

    def of(self, curvature: Array, features: NDArray[np.int64]) -> RestrictedGram | None:
        """The matrix for these features; None if the curvature changes, or if products were few so far."""
        if not self.useful:
            return None
        if self.weights is None:
            self.weights = curvature[:, :1].copy()
        self.useful = bool(np.all(curvature == self.weights))
        if not self.useful or self.spent < LATE * len(self.transposed) ** 2:
            return None
        if self.last is None or self.last[0] is not features:
            found = self._restricted(features)
            if found is None:
                return None
            self.last = features, found
        return self.last[1]

    def _restricted(self, features: NDArray[np.int64]) -> RestrictedGram | None:
        if self.whole is None:
            assert self.weights is not None
            roots = self.transposed * np.sqrt(self.weights[:, 0])
            matrix = SingleMatrix.of(roots @ roots.T)
            if matrix is None:
                self.useful = False
                return None
            self.whole = RestrictedGram(matrix, self.transposed @ self.weights[:, 0], float(self.weights.sum()))
        if len(features) == len(self.transposed):
            return self.whole
        values = self.whole.matrix.values[np.ix_(features, features)]
        return RestrictedGram(SingleMatrix(values, self.whole.matrix.unit), self.whole.pull[features], self.whole.total)
