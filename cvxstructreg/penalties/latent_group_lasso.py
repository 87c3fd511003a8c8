"""The group lasso with overlapping groups: the latent norm (Obozinski, Jacob and Vert 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.groups import Groups
from cvxstructreg.groups.conversion import OnGroups
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.blocks import BlockNorms, stack_steps
from cvxstructreg.penalties.group_lasso import checked_groups
from cvxstructreg.penalties.latent_shares import LatentShares
from cvxstructreg.runtime.lazy_cvxpy import cp

#: Numbers of proximal gradient steps after which Newton steps on the shares of the groups are tried.
TRIES = (10, 20, 40, 80, 160, 320, 640, 1280, 2560)


@dataclass(frozen=True, eq=False, repr=False)
class LatentGroupLasso(OnGroups, Atom):
    """min sum_g c_g ||v_g||_2 over all w = sum_g v_g with v_g supported on group g.

    The nonzero weights are a *union* of groups. With :class:`GroupLasso`, the direct norm, they are the complement of a
    union of groups. A feature that is in no group must be zero.

    Parameters
    ----------
    groups : Groups
        With their weights c_g.
    weights : number, array or function of the group sizes, optional
        Other weights c_g, such as ``np.sqrt``.

    Examples
    --------
    Shrink (3, 4, 1) with the groups {0, 1} and {1, 2}. The latent norm drops group {1, 2} and keeps all of {0, 1}. With
    the direct norm feature 2 stays: feature 1 keeps the norm of group {1, 2} from being zero.

    >>> import numpy as np
    >>> from cvxstructreg import GroupLasso, Groups
    >>> groups = Groups([[0, 1], [1, 2]], n_features=3)
    >>> v = np.array([[3.0], [4.0], [1.0]])
    >>> LatentGroupLasso(groups).prox(v, 3.0).ravel().round(3).tolist()
    [1.2, 1.6, 0.0]
    >>> GroupLasso(groups).prox(v, 1.0).ravel().round(3).tolist()
    [2.298, 2.331, 0.709]
    """

    groups: Any
    weights: Any = None

    formula: ClassVar[str] = "min_{w = sum_g v_g} sum_g c_g ||v_g||_2"
    convention: ClassVar[str] = "latent overlap: the nonzero weights are a union of groups"

    def __post_init__(self) -> None:
        groups = checked_groups(self.groups, self.weights, "LatentGroupLasso")
        object.__setattr__(self, "groups", groups)
        object.__setattr__(
            self, "_parts", (BlockNorms(groups.indptr, groups.weights), Selection(groups.indices, groups.n_features))
        )

    @property
    def _shares(self) -> LatentShares:
        if "_latent_shares" not in self.__dict__:
            groups = self.groups
            shares = LatentShares(groups.indptr, groups.indices, groups.weights, groups.n_features)
            object.__setattr__(self, "_latent_shares", shares)
        found: LatentShares = self.__dict__["_latent_shares"]
        return found

    @property
    def size(self) -> int | None:
        """Number of features."""
        return int(self.groups.n_features)

    @property
    def _blocks(self) -> tuple[BlockNorms, Any]:
        parts: tuple[BlockNorms, Any] = self.__dict__["_parts"]
        return parts

    def _decomposition(self, z: cp.Expression) -> cp.Expression:
        """Copies that add up to z. All copies of a feature but one are variables; the last one is z minus these."""
        E = self._blocks[1].tocsr()
        _, first = np.unique(self.groups.indices, return_index=True)
        others = np.setdiff1d(np.arange(E.shape[0]), first)
        keep_first = sp.diags_array(np.isin(np.arange(E.shape[0]), first).astype(float)) @ E
        copies = keep_first @ z
        if not others.size:
            return copies
        latent = cp.Variable((others.size, z.shape[1]))
        spread = sp.eye_array(E.shape[0], format="csc")[:, others] - keep_first @ E[others].T
        return copies + spread @ latent

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition: the norms of the best copies; features in no group must be zero."""
        norm = self._blocks[0].expr(self._decomposition(z))
        uncovered = np.flatnonzero(~self.groups.covered)
        return norm + cp.transforms.indicator([z[uncovered, :] == 0]) if uncovered.size else norm

    def value(self, z: Array) -> float:
        """The cost of the best decomposition found. It is never too low, so duality gaps stay valid."""
        if np.any(z[~self.groups.covered]):
            return np.inf
        if not self.groups.is_disjoint and np.any(self.groups.weights == 0):  # their features cost nothing
            free = np.repeat(self.groups.weights == 0, np.diff(self.groups.indptr))
            z = z.copy()
            z[self.groups.indices[free]] = 0.0
        if self.groups.is_disjoint or not np.any(z):
            return float(self.groups.weights @ self.groups.norms(z))
        return self._shares.norm(z)

    def prox(self, v: Array, t: float) -> Array:
        """E'q, where the copies q minimise 1/2 ||E'q - v||^2 + t sum_g c_g ||q_g||."""
        blocks, E = self._blocks
        q = np.zeros((E.shape[0], v.shape[1]))
        for count, q in enumerate(stack_steps(E, v, lambda q, step: blocks.prox(q, t * step)), start=1):
            if count in TRIES:
                found = self._shares.prox_from(v, t, blocks.norms(q))
                if found is not None:
                    return found
        return np.asarray(E.T @ q)

    def dual_norm(self, u: Array) -> float:
        """max_g ||u_g|| / c_g."""
        blocks, E = self._blocks
        return blocks.dual_norm(E @ u)

    def latent_groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """The groups and their weights."""
        return self.groups.indptr, self.groups.indices, self.groups.weights

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The feature names of the groups."""
        names: tuple[str, ...] | None = self.groups.feature_names
        return names

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.groups!r})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[LatentGroupLasso, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(Groups([[0, 1], [2, 3]], n_features=4)), (4, 1)),
            (cls(Groups([[0, 1, 2], [2, 3], [0, 3]], n_features=4), weights=np.sqrt), (4, 2)),
        ]
