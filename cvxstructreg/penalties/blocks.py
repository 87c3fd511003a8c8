"""Norms of consecutive blocks of rows: the outer function of both group penalties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxstructreg.core.atom import Atom, freeze
from cvxstructreg.core.checks import weight_array
from cvxstructreg.forms.row_selection import compiled_pays, picks_rows
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.block_norms import block_norms, row_squares
from cvxstructreg.numerics.momentum import Momentum
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class BlockNorms(Atom):
    """sum_g c_g ||z_g||_2 over consecutive blocks of rows (all columns of a block together).

    A building block for :func:`cvxstructreg.compose`, as in isotropic total variation. For groups of weights that are
    not consecutive or that overlap, use :class:`cvxstructreg.GroupLasso` (Yuan and Lin 2006).

    Parameters
    ----------
    indptr : array of integers
        Block g consists of the rows indptr[g] to indptr[g + 1] - 1; starts with 0.
    weights : array of nonnegative numbers, one for each block, optional
        The c_g, ones by default.

    Examples
    --------
    >>> BlockNorms([0, 2, 3], [1.0, 2.0])([3.0, 4.0, -1.0])
    7.0
    >>> BlockNorms.of_sizes([2, 1])([3.0, 4.0, -1.0])
    6.0
    """

    indptr: Any
    weights: Any = None

    formula: ClassVar[str] = "sum_g c_g ||w_g||_2"
    convention: ClassVar[str] = "blocks of consecutive weights, all outputs of a block together"

    def __post_init__(self) -> None:
        indptr = np.asarray(self.indptr)
        is_list = indptr.ndim == 1 and indptr.size and indptr.dtype.kind in "iu"
        if not is_list or indptr[0] or np.any(np.diff(indptr) < 0):
            raise ValueError(
                f"indptr must be integers that start with 0 and never fall, got {self.indptr!r}; for the sizes of the "
                "blocks use BlockNorms.of_sizes(sizes)"
            )
        weights = weight_array(self.weights, len(indptr) - 1, "block")
        if not np.isfinite(weights).all() or np.any(weights < 0):
            raise ValueError(f"block weights must be finite and at least 0, got {float(weights.min())}")
        freeze(self, indptr=indptr.astype(np.int64), weights=weights)

    @classmethod
    def of_sizes(cls, sizes: Any, weights: Any = None) -> BlockNorms:
        """Blocks of the given sizes, one after the other."""
        counts = np.asarray(sizes)
        if counts.ndim != 1 or counts.dtype.kind not in "iu" or np.any(counts < 0):
            raise ValueError(f"sizes must be a list of integers, one for each block, got {sizes!r}")
        return cls(np.concatenate([[0], np.cumsum(counts)]), weights)

    @property
    def size(self) -> int | None:
        """Number of rows of all blocks."""
        return int(self.indptr[-1])

    @property
    def _sizes(self) -> np.ndarray:
        return np.diff(self.indptr)

    def blocks(self) -> tuple[NDArray[np.int64], Array]:
        """The first row of each block, followed by the number of rows; and the c_g."""
        return self.indptr, self.weights

    def norms(self, z: Array) -> Array:
        """||z_g|| for each block."""
        return block_norms(row_squares(z), self.indptr)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition. Blocks of similar size are padded to one matrix, with one norm for each of its rows."""
        if len(self.weights) == 0:
            return cp.Constant(0.0)
        parts = []
        buckets = np.ceil(np.log2(self._sizes)).astype(int)  # so padding at most doubles a block
        for bucket in np.unique(buckets):
            blocks = np.flatnonzero(buckets == bucket)
            width = int(self._sizes[blocks].max())
            stacked = self._padding(blocks, width) @ z
            rows = cp.reshape(stacked, (len(blocks), width * z.shape[1]), order="C")
            parts.append(self.weights[blocks] @ cp.norm(rows, 2, axis=1))
        return cp.sum(parts) if len(parts) > 1 else parts[0]

    def _padding(self, blocks: np.ndarray, width: int) -> Any:
        sizes = self._sizes[blocks]
        inside = np.arange(width)[None, :] < sizes[:, None]
        targets = np.flatnonzero(inside)
        sources = (self.indptr[blocks][:, None] + np.arange(width)[None, :])[inside]
        shape = (len(blocks) * width, self.size)
        return sp.csr_array((np.ones(len(targets)), (targets, sources)), shape=shape)

    def value(self, z: Array) -> float:
        """The weighted sum of norms."""
        return float(self.weights @ self.norms(z))

    def _inside(self, z: Array, radius: float) -> Array:
        """For each block the factor that brings z_g into the ball of radius * c_g: at most 1."""
        norms = self.norms(z)
        return np.asarray(np.minimum(1.0, radius * self.weights / np.where(norms > 0, norms, 1.0)))

    def _scaled(self, z: Array, factors: Array) -> Array:
        return z * np.repeat(factors, self._sizes)[:, None]

    def prox(self, v: Array, t: float) -> Array:
        """Each block is shortened by t c_g: v minus its projection onto the balls of radius t c_g."""
        return self._scaled(v, 1.0 - self._inside(v, t))

    def project(self, u: Array, radius: float = 1.0) -> Array:
        """The nearest point with ||u_g|| <= radius c_g."""
        return self._scaled(u, self._inside(u, radius))

    def dual_norm(self, u: Array) -> float:
        """max_g ||u_g|| / c_g; infinite if u_g is not zero for some c_g = 0."""
        free = self.weights == 0
        if compiled_pays(u.size) and not free.any():
            from cvxstructreg.forms.compiled_groups import largest_ratio

            starts = np.array(self.indptr) * u.shape[1]
            return float(largest_ratio(starts, np.array(self.weights), np.ascontiguousarray(u).ravel()))
        norms = self.norms(u)
        if np.any(norms[free] > 1e-14 * norms.max(initial=0.0)):  # larger than round-off
            return np.inf
        return float(np.max(norms[~free] / self.weights[~free], initial=0.0))

    def repair(self, u: Array, K: Any, left: Array, bound: Array, scale: float, sweeps: int) -> Array:
        """A u with ||u_g|| <= scale c_g that reduces the part of ``left - K'u`` outside [-bound, bound].

        Gauss-Seidel sweeps over the blocks. K must pick rows, so that each block has the Hessian I; for any other K the
        result is a copy of u. The given u must satisfy ||u_g|| <= scale c_g.
        """
        if not picks_rows(K):
            return u.copy()
        from cvxstructreg.forms import compiled_groups  # imported here, since numba compiles on first use

        k = u.shape[1]
        columns = K.indices if k == 1 else (K.indices[:, None].astype(np.int64) * k + np.arange(k)).ravel()
        indices = columns.astype(np.uint32, copy=False)
        indices.flags.writeable = False  # as those of K: numba would compile again for a writable array
        moved, rest = u.copy().ravel(), (left - K.T @ u).ravel()
        limits, none = np.array(np.broadcast_to(bound, left.shape)).ravel(), np.zeros(left.size, dtype=np.uint8)
        groups = np.array(self.indptr) * k, indices, scale * self.weights
        compiled_groups.repair(*groups, moved, rest, limits, none, sweeps, 1.0)
        return moved.reshape(u.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.weights)} blocks of {self.size} rows)"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[BlockNorms, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(np.array([0, 2, 3]), np.array([1.0, 2.0])), (3, 1)),
            (cls(np.array([0, 1, 4]), np.array([0.5, 1.0])), (4, 2)),
        ]


def fit_stack(E: Any, v: Array, step_prox: Callable[[Array, float], Array]) -> Array:
    """argmin_q  1/2 ||E'q - v||^2 + h(q), where E stacks groups: the last point of :func:`stack_steps`."""
    q = np.zeros((E.shape[0], v.shape[1]))
    for q in stack_steps(E, v, step_prox):  # noqa: B007
        pass
    return q


def stack_steps(E: Any, v: Array, step_prox: Callable[[Array, float], Array]) -> Iterator[Array]:
    """Accelerated proximal gradient steps towards argmin_q  1/2 ||E'q - v||^2 + h(q).

    ``step_prox(q, t)`` is the prox of t h. Each row of E has one entry, a 1 unless members have weights. E'E is
    diagonal and counts the groups of each feature; its largest entry is the Lipschitz constant. Disjoint groups without
    member weights need a single step.
    """
    picked, d = E.indices, E.shape[1]
    entries = E.data[:, None] if sp.issparse(E) else np.ones((1, 1))
    squares = np.bincount(picked, np.broadcast_to(entries**2, (len(picked), 1))[:, 0], minlength=1)
    lipschitz = float(squares.max(initial=0.0)) or 1.0

    def unstacked(q: Array) -> Array:
        return np.column_stack([np.bincount(picked, weights=column, minlength=d) for column in (entries * q).T])

    point, size = np.zeros((E.shape[0], v.shape[1])), float(np.abs(v).max(initial=0.0))
    momentum = Momentum([point])
    for _ in range(20_000):
        deadline.check()
        moved = step_prox(point - entries * (unstacked(point) - v)[picked] / lipschitz, 1.0 / lipschitz)
        yield moved
        if np.abs(moved - point).max(initial=0.0) <= 1e-13 * max(size, float(np.abs(moved).max(initial=0.0))):
            return
        (point,) = momentum.ahead([point], [moved])
