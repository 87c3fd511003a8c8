"""Nonsmooth functions as largest linear functions over a convex set, with the projection onto that set.

    f(z) = max over p in B of <p, z - o>

:class:`Intervals` has one interval for each entry: absolute values, hinges, bounds. :class:`Balls` has one Euclidean
ball for each block of rows: group norms. Both have the projection onto B and its derivative, which is all that an
augmented Lagrangian needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.block_norms import block_norms, row_squares
from cvxstructreg.runtime.lazy import cached_property


@dataclass(frozen=True, eq=False)
class Intervals:
    """``lower <= p <= upper`` entry by entry, with the offset o; all of shape (m, k)."""

    lower: Array
    upper: Array
    offset: Array

    @property
    def is_bounded(self) -> bool:
        """Whether f is finite everywhere: bounds on z have unbounded multipliers."""
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

    @property
    def size(self) -> float:
        """The typical length of a multiplier; 0 if all are unbounded."""
        ends = np.maximum(np.abs(self.lower), np.abs(self.upper))
        finite = ends[np.isfinite(ends)]
        return float(finite.mean()) if finite.size else 0.0

    def project(self, u: Array) -> Array:
        """The nearest point of B."""
        return np.clip(u, self.lower, self.upper)

    def value(self, z: Array) -> float:
        """f(z), without the entries whose multipliers are unbounded."""
        z = z - self.offset
        ends = np.where(z > 0, self.upper, self.lower)
        return float(np.sum(np.where(np.isfinite(ends), ends, 0.0) * z))

    def slopes(self, u: Array) -> tuple[Array, Array | None]:
        """The derivative of the projection at u: a diagonal, and nothing else."""
        return ((u > self.lower) & (u < self.upper)).astype(float), None

    def moved(self, u: Array, dz: Array) -> Array:
        """The derivative of the projection at u, times dz."""
        return np.where((u > self.lower) & (u < self.upper), dz, 0.0)

    def factor_inside(self, p: Array) -> float:
        """The largest s <= 1 with s p in B."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            room = np.where(p > self.upper, self.upper / p, np.where(p < self.lower, self.lower / p, 1.0))
        return max(0.0, float(np.min(room, initial=1.0)))


@dataclass(frozen=True, eq=False)
class Balls:
    """``||p_g|| <= radius_g`` for blocks of rows ``indptr[g]`` to ``indptr[g + 1] - 1``; there is no offset."""

    indptr: np.ndarray
    radii: Array
    shape: tuple[int, int]

    @property
    def offset(self) -> Array:
        """Zero."""
        return np.zeros((1, 1))

    @property
    def is_bounded(self) -> bool:
        """Always."""
        return True

    @property
    def size(self) -> float:
        """The typical length of an entry of a multiplier."""
        counts = np.maximum(np.diff(self.indptr) * self.shape[1], 1)
        return float(np.mean(self.radii / np.sqrt(counts))) if len(self.radii) else 0.0

    @cached_property
    def owner(self) -> np.ndarray:
        """The block of each row."""
        return np.repeat(np.arange(len(self.radii)), np.diff(self.indptr))

    def norms(self, u: Array) -> Array:
        """||u_g||."""
        return block_norms(row_squares(u), self.indptr)

    def _shrinkage(self, u: Array) -> tuple[Array, Array]:
        norms = self.norms(u)
        return np.divide(self.radii, norms, out=np.ones_like(norms), where=norms > self.radii), norms

    def project(self, u: Array) -> Array:
        """The nearest point of B."""
        return u * self._shrinkage(u)[0][self.owner][:, None]

    def value(self, z: Array) -> float:
        """f(z)."""
        return float(self.radii @ self.norms(z))

    def slopes(self, u: Array) -> tuple[Array, Array | None]:
        """The derivative of the projection at u: diag(D) - v v' for each block outside its ball, with v of unit norm.

        D and the v, of shape (m, k), scaled by the root of D.
        """
        shrink, norms = self._shrinkage(u)
        diagonal = np.broadcast_to(shrink[self.owner][:, None], u.shape)
        outside = norms > self.radii
        roots = np.divide(np.sqrt(shrink), norms, out=np.zeros_like(norms), where=outside)
        return diagonal, u * roots[self.owner][:, None]

    def moved(self, u: Array, dz: Array) -> Array:
        """The derivative of the projection at u, times dz."""
        diagonal, units = self.slopes(u)
        assert units is not None
        dots = np.zeros(len(self.radii))
        np.add.at(dots, self.owner, np.einsum("ij,ij->i", units, dz))
        return diagonal * dz - units * dots[self.owner][:, None]

    def factor_inside(self, p: Array) -> float:
        """The largest s <= 1 with s p in B."""
        norms = self.norms(p)
        over = norms > self.radii
        return float(np.min(self.radii[over] / norms[over], initial=1.0))


DualSet = Intervals | Balls
