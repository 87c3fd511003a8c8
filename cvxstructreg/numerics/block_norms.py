"""Sums and norms of consecutive blocks of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array


def block_sums(values: Array, indptr: Any) -> Array:
    """Return the sum of each block; block g has the entries indptr[g]:indptr[g + 1], at least one.

    Examples
    --------
    >>> block_sums(np.array([9.0, 16.0, 4.0]), [0, 2, 3]).tolist()
    [25.0, 4.0]
    """
    return np.asarray(np.add.reduceat(values, indptr[:-1])) if len(indptr) > 1 else np.zeros(0)


def block_norms(squares: Array, indptr: Any) -> Array:
    """Return the square root of the sum of each block: norms, given the squares of the entries.

    Examples
    --------
    >>> block_norms(np.array([9.0, 16.0, 4.0]), [0, 2, 3]).tolist()
    [5.0, 2.0]
    """
    return np.sqrt(block_sums(squares, indptr))


def row_squares(z: Array) -> Array:
    """Return the sum of squares of each row of an (m, k) array, or the square of each entry of a vector."""
    if z.ndim == 1:
        return z * z
    return z[:, 0] ** 2 if z.shape[1] == 1 else np.asarray(np.sum(z * z, axis=1))
