"""The memory layout of disjoint groups in :mod:`group_descent`: weights in slots, one group after the other.

    R(w) = sum_p lam_p |w_p| + sum_g c_g ||w_g||

Slot p holds the k weights of one feature. A feature without a group, or in a group of strength zero, is a group of one
feature with c = 0. With one output, the norm of a single weight is its absolute value, and is added to lam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.block_norms import block_norms, block_sums, row_squares
from cvxstructreg.runtime.lazy import cached_property

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The slots of some groups. Flat arrays have k numbers for each slot."""

    column: Ints  # the feature of each slot
    starts: Ints  # the first slot of each group, then the total number of slots
    radii: Array  # c_g
    lam: Array  # flat
    k: int

    @cached_property
    def group(self) -> Ints:
        """The group of each entry of a flat array."""
        return np.repeat(np.arange(self.radii.size), np.diff(self.starts) * self.k)

    def sums(self, x: Array) -> Array:
        """The sum of a flat array over each group."""
        return block_sums(x, self.starts * self.k)

    def norms(self, x: Array) -> Array:
        """||x_g||."""
        return block_norms(row_squares(x), self.starts * self.k)

    def least(self, x: Array) -> Array:
        """The smallest entry of a flat array in each group."""
        return np.asarray(np.minimum.reduceat(x, self.starts[:-1] * self.k)) if self.radii.size else np.zeros(0)

    def value(self, w: Array) -> float:
        """R(w)."""
        return float(self.lam @ np.abs(w) + self.radii @ self.norms(w))

    def slots_of(self, chosen: Ints) -> Ints:
        """The slots of some groups."""
        sizes = np.diff(self.starts)[chosen]
        shifts = self.starts[chosen] - np.r_[0, np.cumsum(sizes)[:-1]] if chosen.size else np.zeros(0, dtype=np.int64)
        return np.repeat(shifts, sizes) + np.arange(sizes.sum())

    def part(self, chosen: Ints) -> tuple[Blocks, Ints]:
        """Some of the groups, and the positions of their entries in flat arrays of all groups."""
        slots = self.slots_of(chosen)
        flat = (slots[:, None] * self.k + np.arange(self.k)).ravel()
        starts = np.r_[0, np.cumsum(np.diff(self.starts)[chosen])]
        return Blocks(self.column[slots], starts, self.radii[chosen], self.lam[flat], self.k), flat

    def beyond(self, x: Array) -> Array:
        """The part of x that exceeds +-lam: soft thresholding."""
        return x - np.clip(x, -self.lam, self.lam)

    def subgradient(self, w: Array, slope: Array) -> Array:
        """The smallest subgradient of slope'w + R at w, without the norms of groups at zero."""
        smooth = slope + ratio(self.radii, self.norms(w))[self.group] * w
        return np.where(w != 0.0, smooth + self.lam * np.sign(w), self.beyond(smooth))

    def violations(self, w: Array, slope: Array) -> Array:
        """The violation of optimality of each group; negative for a group at zero that satisfies it strictly."""
        sizes, at_zero = self.norms(self.subgradient(w, slope)), self.sums((w != 0.0).astype(float)) == 0.0
        return np.where(at_zero, sizes - self.radii, sizes)


def ratio(above: Array, below: Array) -> Array:
    """above / below, and 0 where ``below`` is zero."""
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0.0)


def blocks_of(parts: NormalForm) -> Blocks:
    """The groups of all terms, which must be disjoint."""
    d, k = parts.shape
    label, radii, offset = np.arange(d), [np.zeros(d)], d
    for piece in parts.weight_pieces:
        indptr, weights = piece.atom.blocks()
        columns = np.arange(d) if piece.K is None else piece.K.indices.astype(np.int64)
        strengths = piece.scale * weights
        numbers = np.repeat(np.arange(weights.size), np.diff(indptr))
        kept = strengths[numbers] > 0.0
        label[columns[kept]] = offset + numbers[kept]
        radii.append(strengths)
        offset += weights.size
    given = 0.0 if parts.separable is None else parts.separable.weights
    lam = np.array(np.broadcast_to(given, parts.shape), dtype=float)
    order = np.argsort(label, kind="stable")
    names, first = np.unique(label[order], return_index=True)
    starts = np.r_[first, d].astype(np.int64)
    own = np.concatenate(radii)[names]
    lam = lam[order]
    if k == 1:
        single = np.diff(starts) == 1
        lam[starts[:-1][single], 0] += own[single]
        own = np.where(single, 0.0, own)
    return Blocks(order.astype(np.int64), starts, own, lam.ravel(), k)


def quadratic_rows(parts: NormalForm, column: Ints) -> Any:
    """The sparse matrix Q = 2M of the quadratic terms, in the order of the slots."""
    d = parts.model.n_weights
    scaled = [(2.0 * part.scale) * sp.csr_array(part.form.matrix) for part in parts.weight_forms]
    matrix = sp.csr_array(sum(scaled[1:], scaled[0])) if scaled else sp.csr_array((d, d))
    return sp.csr_array(matrix[column][:, column]) if scaled else matrix
