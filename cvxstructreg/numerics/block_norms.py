"""Norms of consecutive blocks of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array


def block_norms(squares: Array, indptr: Any) -> Array:
    """Return the square root of the sum of each block; block g has the entries indptr[g]:indptr[g + 1], at least one.

    Examples
    --------
    >>> block_norms(np.array([9.0, 16.0, 4.0]), [0, 2, 3]).tolist()
    [5.0, 2.0]
    """
    if len(indptr) < 2:
        return np.zeros(0)
    return np.asarray(np.sqrt(np.add.reduceat(squares, indptr[:-1])))


def row_squares(z: Array) -> Array:
    """Return the sum of squares of each row of an (m, k) array, or the square of each entry of a vector."""
    if z.ndim == 1:
        return z * z
    return z[:, 0] ** 2 if z.shape[1] == 1 else np.asarray(np.sum(z * z, axis=1))
