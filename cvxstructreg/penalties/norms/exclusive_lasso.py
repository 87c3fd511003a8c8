"""Squared L1 norms of groups (Zhou, Jin and Hoi 2010; Campbell and Allen 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom, freeze
from cvxstructreg.core.checks import show
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.groups import Groups
from cvxstructreg.groups.conversion import OnGroups
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.group_lasso import checked_groups
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class BlockSquaredL1(Atom):
    """sum_g c_g ||z_g||_1^2 over consecutive blocks of rows (all columns of a block together).

    Examples
    --------
    >>> BlockSquaredL1([0, 2, 3], [1.0, 2.0])([3.0, -4.0, 1.0])
    51.0
    """

    indptr: Any
    weights: Any

    formula: ClassVar[str] = "sum_g c_g ||z_g||_1^2"
    convention: ClassVar[str] = "blocks of consecutive rows, all outputs of a block together; no factor 1/2"

    def __post_init__(self) -> None:
        indptr = np.asarray(self.indptr, dtype=np.int64)
        freeze(self, indptr=indptr, weights=np.asarray(self.weights, dtype=float))
        freeze(self, _owner=np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)))

    @property
    def size(self) -> int | None:
        """Number of rows of all blocks."""
        return int(self.indptr[-1])

    def _each(self, reduce: np.ufunc, z: Array) -> Array:
        """The sum or the maximum of the absolute values of each block."""
        out = np.zeros(len(self.weights))
        reduce.at(out, self.__dict__["_owner"], reduce.reduce(np.abs(z), axis=1))
        return out

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        if not len(self.weights):
            return cp.Constant(0.0)
        owner = self.__dict__["_owner"]
        blocks = sp.csr_array(
            (np.ones(len(owner)), (owner, np.arange(len(owner)))), shape=(len(self.weights), len(owner))
        )
        return cp.sum_squares(cp.multiply(np.sqrt(self.weights), blocks @ cp.sum(cp.abs(z), axis=1)))

    def value(self, z: Array) -> float:
        """The weighted sum of squares."""
        return float(self.weights @ self._each(np.add, z) ** 2)

    def prox(self, v: Array, t: float) -> Array:
        """Soft thresholding of each block by s_g = 2 t c_g ||x_g||_1, found from its sorted absolute values.

        If the m largest entries of a block, with the sum S, stay nonzero, then s = a S / (1 + a m) with a = 2 t c. The
        right m is the one with the largest s.
        """
        k = v.shape[1]
        owner, sizes = np.repeat(self.__dict__["_owner"], k), np.abs(v).ravel()
        order = np.lexsort((-sizes, owner))
        starts = self.indptr[:-1] * k
        total = np.cumsum(sizes[order])
        before = np.concatenate([[0.0], total])[starts]
        count = np.arange(1, sizes.size + 1) - starts[owner]
        a = 2.0 * t * self.weights[owner]
        limits = np.zeros(len(self.weights))
        np.maximum.at(limits, owner, a * (total - before[owner]) / (1.0 + a * count))
        return np.sign(v) * np.maximum(np.abs(v) - limits[self.__dict__["_owner"]][:, None], 0.0)

    def conj(self, u: Array) -> float:
        """sum_g max |u_g|^2 / (4 c_g); infinite if u_g is not zero for some c_g = 0."""
        largest, used = self._each(np.maximum, u), self.weights > 0
        if np.any(largest[~used] > 1e-14 * largest.max(initial=0.0)):  # larger than round-off
            return np.inf
        return float(np.sum(largest[used] ** 2 / (4.0 * self.weights[used])))

    def into_domain(self, u: Array) -> Array:
        """Zero in the blocks with c_g = 0."""
        return np.where((self.weights > 0)[self.__dict__["_owner"]][:, None], u, 0.0)

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[BlockSquaredL1, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [(cls([0, 2, 5], [1.0, 0.5]), (5, 1)), (cls([0, 1, 3], [2.0, 0.0]), (3, 2))]


@dataclass(frozen=True, eq=False, repr=False)
class ExclusiveLasso(OnGroups, Atom):
    """sum_g c_g ||w_g||_1^2: features of one group compete, and each group keeps at least one.

    The opposite of the group lasso: sparse within groups, not between them. With singleton groups and several outputs,
    the outputs compete for each feature (Zhou, Jin and Hoi 2010).

    Parameters
    ----------
    groups : Groups
        Disjoint, with their weights c_g. For overlapping groups, add one term for each family of disjoint groups.
    weights : number, array or function of the group sizes, optional
        Other weights c_g, such as ``np.sqrt``.

    Examples
    --------
    >>> from cvxstructreg import Groups
    >>> ExclusiveLasso(Groups([[0, 1], [2]]))([3.0, -4.0, 1.0])
    50.0
    >>> ExclusiveLasso(Groups([[0, 1], [2]])).prox([3.0, -1.0, 1.0], 0.5).round(3).tolist()
    [1.5, -0.0, 0.5]
    """

    groups: Any
    weights: Any = None

    formula: ClassVar[str] = "sum_g c_g ||w_g||_1^2"
    convention: ClassVar[str] = "no factor 1/2; all outputs of a group together; features in no group have no penalty"

    def __post_init__(self) -> None:
        groups = checked_groups(self.groups, self.weights, "ExclusiveLasso")
        if not groups.is_disjoint:
            feature = show(groups.feature_names, int(np.argmax(groups.counts > 1)))
            raise ValueError(
                f"ExclusiveLasso needs disjoint groups, but feature {feature} is in several; add one term for each "
                "family of disjoint groups: ExclusiveLasso(first) + ExclusiveLasso(second)"
            )
        object.__setattr__(self, "groups", groups)
        outer = BlockSquaredL1(groups.indptr, groups.weights)
        object.__setattr__(self, "_parts", (outer, Selection(groups.indices, groups.n_features)))

    @property
    def size(self) -> int | None:
        """Number of features."""
        return int(self.groups.n_features)

    def split(self) -> tuple[BlockSquaredL1, Any]:
        """The squared L1 norms of the stacked groups."""
        parts: tuple[BlockSquaredL1, Any] = self.__dict__["_parts"]
        return parts

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        outer, E = self.split()
        return outer.expr(E @ z)

    def value(self, z: Array) -> float:
        """The weighted sum of squares."""
        outer, E = self.split()
        return outer.value(E @ z)

    def prox(self, v: Array, t: float) -> Array:
        """Soft thresholding of each group; see :meth:`BlockSquaredL1.prox`."""
        outer, E = self.split()
        out = v.copy()
        out[E.indices] = outer.prox(E @ v, t)
        return out

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The feature names of the groups."""
        names: tuple[str, ...] | None = self.groups.feature_names
        return names

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.groups!r})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[ExclusiveLasso, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(Groups([[0, 2], [1, 3]], n_features=4)), (4, 1)),
            (cls(Groups([[0], [1, 2]], n_features=4), weights=np.sqrt), (4, 2)),
        ]
