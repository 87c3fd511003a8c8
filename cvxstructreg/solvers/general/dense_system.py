"""Dense Newton systems: H dx = right by Cholesky's method, regularised as little as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dtrsv, strsv
from scipy.linalg.lapack import dpotrf, spotrf

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.units import power_of_two

if TYPE_CHECKING:
    from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian

#: The Newton matrix is regularised by this part of its diagonal and of the curvature of all rows. Where some direction
#: has no curvature, steps would be longer than LONG times the typical score: then by larger parts, growing by 100.
#: In single precision, TINY_SINGLE instead of TINY.
TINY, LONG, SMALL, TINY_SINGLE = 1e-12, 1e3, 1e-6, 1e-6


class DenseSystem:
    """A positive semidefinite H in row order, of which only the triangle above the diagonal is read."""

    def __init__(self, function: AugmentedLagrangian, H: Array) -> None:
        self.function, self.H = function, H
        self.capacity = np.tile(function.capacity, function.k)
        self.is_single = H.dtype == np.float32
        diagonal = np.einsum("ii->i", H).astype(float)
        self.diagonal = (
            diagonal + (TINY_SINGLE if self.is_single else TINY) * (diagonal + self.capacity) + np.finfo(float).tiny
        )
        self.factor = H.T

    @property
    def whole(self) -> Array:
        """Both triangles of H."""
        return np.asarray(np.triu(self.H) + np.triu(self.H, 1).T)

    def direction(self, right: Array, typical: float) -> Array:
        """H^-1 right, so regularised that no column changes the scores by more than LONG times the typical score."""
        part, lengths = SMALL, self.function.lengths[:, None]
        while True:
            if self._factored():
                dx = self.solve(right)
                if float(np.max(np.abs(dx) * lengths)) <= LONG * typical:
                    return dx
            else:
                self.function.single = False  # from the next system on
            self.diagonal += part * self.capacity
            part *= 100.0
            if part > 1e6:
                raise scipy.linalg.LinAlgError("the Newton matrix has no Cholesky factor")

    def _factored(self) -> bool:
        """Whether there is a Cholesky factor."""
        memory = self.function.factor_memory[self.H.dtype.type]
        np.copyto(memory, self.H)
        np.einsum("ii->i", memory)[:] = self.diagonal
        # the transpose is in Fortran order
        self.factor, failed = (spotrf if self.is_single else dpotrf)(memory.T, lower=1, clean=0, overwrite_a=1)
        return not failed

    def solve(self, right: Array) -> Array:
        """H^-1 right by the last factor."""
        unit = power_of_two(float(np.abs(right).max(initial=0.0))) if self.is_single else 1.0
        by_triangle = strsv if self.is_single else dtrsv
        half = by_triangle(self.factor, right.T.reshape(-1) / unit, lower=1)
        solved = by_triangle(self.factor, half, lower=1, trans=1, overwrite_x=1)
        return unit * np.asarray(solved, dtype=float).reshape(self.function.k, -1).T
