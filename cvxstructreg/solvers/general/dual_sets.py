"""Nonsmooth functions as largest linear functions over a convex set, with the projection onto that set.

    f(z) = max over p in B of <p, z - o>

:class:`Intervals` has one interval for each entry: absolute values, hinges, bounds. :class:`Balls` has one Euclidean
ball for each block of rows: group norms. Both have the projection onto B and its derivative, which is all that an
augmented Lagrangian needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.block_norms import block_norms, block_sums, row_squares
from cvxstructreg.runtime.lazy import cached_property


@dataclass(frozen=True, eq=False)
class Intervals:
    """``lower <= p <= upper`` entry by entry, with the offset o; all of shape (m, k)."""

    lower: Array
    upper: Array
    offset: Array

    @cached_property
    def finite(self) -> NDArray[np.bool_]:
        """Where both ends are finite."""
        return np.isfinite(self.lower) & np.isfinite(self.upper)

    @cached_property
    def is_bounded(self) -> bool:
        """Whether f is finite everywhere: bounds on z have unbounded multipliers."""
        return bool(self.finite.all())

    @property
    def size(self) -> float:
        """The typical length of a multiplier; 0 if all are unbounded."""
        ends = np.maximum(np.abs(self.lower), np.abs(self.upper))
        finite = ends[np.isfinite(ends)]
        return float(finite.mean()) if finite.size else 0.0

    def project(self, u: Array) -> Array:
        """The nearest point of B."""
        return np.minimum(np.maximum(u, self.lower), self.upper)

    def value(self, z: Array) -> float:
        """f(z), without the entries whose multipliers are unbounded."""
        z = z - self.offset
        ends = np.where(z > 0, self.upper, self.lower)
        if self.is_bounded:
            return float(np.vdot(ends, z))
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

    def sums(self, values: Array) -> Array:
        """The sum of each block."""
        return block_sums(values, self.indptr)

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
        dots = self.sums(np.einsum("ij,ij->i", units, dz))
        return diagonal * dz - units * dots[self.owner][:, None]

    def factor_inside(self, p: Array) -> float:
        """The largest s <= 1 with s p in B."""
        norms = self.norms(p)
        over = norms > self.radii
        return float(np.min(self.radii[over] / norms[over], initial=1.0))


DualSet = Intervals | Balls


def has_dual_set(piece: Piece, k: int) -> bool:
    """Whether the piece is a largest linear function over intervals or balls, for k outputs."""
    atom = piece.atom
    if without_offset(atom).can("centred_hinges"):
        return k > 1 and not atom.can("grad")
    absolute = atom.can("separable") and not atom.separable().bounded  # bounds after a map are not supported
    return absolute or atom.can("kinks") or atom.can("hinges") or atom.can("blocks")


def without_offset(atom: Atom) -> Atom:
    """A loss without its offset; other atoms as they are."""
    return atom.without_offset if isinstance(atom, Loss) else atom


def dual_set_of(piece: Piece, shape: tuple[int, int]) -> DualSet:
    """The set of a nonsmooth piece whose argument has the given shape."""
    atom, scale = piece.atom, piece.scale
    if atom.can("blocks"):
        indptr, weights = atom.blocks()
        return Balls(np.asarray(indptr), scale * np.asarray(weights), shape)
    if atom.can("kinks"):
        lower, upper, at = atom.kinks()
        return Intervals(scale * lower, scale * upper, at)
    if atom.can("hinges"):
        y, s = atom.hinges()
        y, ends = y[:, None], (-scale * y * s)[:, None]
        return Intervals(np.minimum(ends, 0.0), np.maximum(ends, 0.0), y)
    plain = without_offset(atom)
    if plain.can("centred_hinges"):
        hinges = plain.centred_hinges(shape[1])
        costs, at = scale * hinges.costs, np.full(shape, hinges.tau)
        if isinstance(atom, Loss) and atom.offset is not None:
            at = at - centred(np.asarray(atom.offset))
        return Intervals(np.zeros(costs.shape), costs, at)
    weights = scale * np.broadcast_to(atom.separable().weights, shape)
    return Intervals(-weights, weights, np.zeros(shape))


def sets_of_separable(parts: NormalForm) -> list[DualSet]:
    """Absolute values and bounds of the weights as intervals."""
    part, shape = parts.separable, parts.shape
    if part is None:
        return []
    sets: list[DualSet] = []
    zero = np.zeros(shape)
    weights = np.broadcast_to(part.weights, shape).astype(float)
    if weights.any():
        sets.append(Intervals(-weights, weights, zero))
    for bound, sign in ((part.lower, -1.0), (part.upper, 1.0)):
        bound = np.broadcast_to(bound, shape)
        held = np.isfinite(bound)
        if held.any():  # max over p >= 0 of p (w - upper), and over p <= 0 of p (w - lower)
            ends = np.where(held, sign * np.inf, 0.0)
            sets.append(Intervals(np.minimum(ends, 0.0), np.maximum(ends, 0.0), np.where(held, bound, 0.0)))
    return sets
