"""Factorisations of positive definite sparse matrices; those of chains take linear time."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array


class Tridiagonal:
    """The solution of systems with a positive definite tridiagonal matrix."""

    def __init__(self, diagonal: Array, beside: Array) -> None:
        self.diagonal, self.beside = diagonal, beside

    def solve(self, r: Array) -> Array:
        """The solution for the right side r."""
        from scipy.linalg.lapack import dpttrs

        return np.asarray(dpttrs(self.diagonal, self.beside, r)[0])


def factorised(matrix: sp.csr_array) -> Any:
    """A factorisation of a positive definite sparse matrix, with a method ``solve``.

    Examples
    --------
    >>> factorised(sp.csr_array([[2.0, -1.0], [-1.0, 2.0]])).solve(np.array([1.0, 1.0])).round(12)
    array([1., 1.])
    """
    from scipy.linalg.lapack import dpttrf
    from scipy.sparse.linalg import splu

    entries = matrix.tocoo()
    if np.max(np.abs(entries.row - entries.col), initial=0) == 1:
        diagonal, beside, failed = dpttrf(matrix.diagonal(), matrix.diagonal(1))
        if not failed:
            return Tridiagonal(diagonal, beside)
    return splu(
        sp.csc_array(matrix),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        relax=1,  # joined columns only pay off where factors are dense: grids take 1.6 times as long
        panel_size=1,
        options={"SymmetricMode": True},
    )
