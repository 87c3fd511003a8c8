"""Compiled products of the Newton solver; imported only where they are called, as numba takes long to load."""

from __future__ import annotations

import numba
import numpy as np

from cvxstructreg.core.atom import Array

# sums may be reordered (which vectorises them), but infinities and NaN keep their meaning
_FAST = {"reassoc", "contract", "nsz"}


@numba.njit(cache=True, fastmath=_FAST)  # type: ignore[untyped-decorator]
def add_gram_product(
    indptr: np.ndarray, indices: np.ndarray, data: Array, weights: Array, p: Array, shift: float, out: Array
) -> float:
    """out += A'u with u = weights * (A p + shift), for a CSR matrix A in one pass; returns the sum of u.

    The indices are unsigned: numba checks signed ones for negative values, which costs up to three times as much.
    """
    total = 0.0
    for i in range(indptr.size - 1):
        first, last = indptr[i], indptr[i + 1]
        u = shift
        for t in range(first, last):
            u += data[t] * p[indices[t]]
        u *= weights[i]
        total += u
        for t in range(first, last):
            out[indices[t]] += u * data[t]
    return total
