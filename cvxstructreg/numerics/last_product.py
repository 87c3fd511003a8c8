"""A'u for a design matrix A, computed once if a solver and its certificate ask for the same product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT

#: If more than this part of the entries must be computed, all are.
FEW = 0.25
#: Squares of lengths below this may have lost digits.
TINY = 1e-280
#: Norms of columns may be this much too small.
NORM_ERROR = 1e-3


class LastProduct:
    """The last product A'u that a solver asked for. Certificates of its dual point u need the same one.

    The product is always computed here, so no solver can hand over a wrong one. Only a u with equal numbers gets it.
    Threads may share it: the pair is replaced as a whole.

    Examples
    --------
    >>> last, A = LastProduct(), np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> u = np.array([[1.0], [1.0]])
    >>> last.computed(A, u[:, 0])
    array([4., 6.])
    >>> last.at(A, u)[:, 0]
    array([4., 6.])
    >>> last.at(A, 2.0 * u)[:, 0]
    array([ 8., 12.])
    """

    def __init__(self) -> None:
        self._last: tuple[Array, Array] | None = None

    def computed(self, design: Any, u: Array) -> Array:
        """A'u for a vector u, which is kept; the caller gets a copy."""
        product = np.asarray(design.T @ u)
        self._last = u.copy(), product
        return product.copy()

    def at(self, design: Any, u: Array) -> Array:
        """A'u for an (n, k) array."""
        last = self._last
        if last is not None and u.shape[1] == 1 and np.array_equal(last[0], u[:, 0]):
            return last[1][:, None].copy()
        return np.asarray(design.T @ u)

    def within(self, design: Any, u: Array, norms: Array, limits: Array) -> tuple[Array, bool]:
        """A'u, exact where its absolute value may reach the limit and maybe older elsewhere; whether all is exact.

        If u has moved by t since the last product, the entry of a column A_j has changed by at most ||A_j|| t. So an
        older entry that is far enough below its limit proves that the new one is below the limit as well.
        """
        last = self._last
        if last is None or sp.issparse(design) or u.shape[1] != 1 or np.array_equal(last[0], u[:, 0]):
            return self.at(design, u), True
        before, product = last
        move = u[:, 0] - before
        square = float(move @ move)
        if not TINY < square < math.inf:
            return self.at(design, u), True
        moved = math.sqrt(square) + UNIT * math.sqrt(before @ before)
        unsafe = np.flatnonzero(~(np.abs(product) + ((1.0 + NORM_ERROR) * moved) * norms < limits))
        if unsafe.size > FEW * norms.size:
            return self.at(design, u), True
        product = product.copy()
        product[unsafe] = design[:, unsafe].T @ u[:, 0]
        return product[:, None], False

    def __getstate__(self) -> dict[str, Any]:
        return {"_last": None}
