"""A'u for a design matrix A, computed once if a solver and its certificate ask for the same product."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array


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

    def __getstate__(self) -> dict[str, Any]:
        return {"_last": None}
