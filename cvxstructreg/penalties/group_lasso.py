"""The group lasso with overlapping groups: the direct norm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.row_selection import Selection, compiled_pays
from cvxstructreg.groups import Groups
from cvxstructreg.groups.conversion import OnGroups, as_groups, named
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.blocks import BlockNorms, fit_stack
from cvxstructreg.penalties.column_blocks import ColumnBlockNorms
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class GroupLasso(OnGroups, Atom):
    """sum_g c_g ||w_g||_2, the *direct* norm; groups may overlap.

    A group at zero sets all its features to zero, including those that are also in other groups. The nonzero weights
    are therefore the *complement* of a union of groups. With :class:`LatentGroupLasso` the nonzero weights are a
    *union* of groups. Without overlap the two penalties are the same (Yuan and Lin 2006; with overlap Jenatton,
    Audibert and Bach 2011; across outputs Obozinski, Taskar and Jordan 2010).

    Parameters
    ----------
    groups : Groups
        With their weights c_g.
    weights : number, array or function of the group sizes, optional
        Other weights c_g, such as ``np.sqrt``.
    across_outputs : bool
        Whether the weights of a group for all outputs form one norm, so that a group is selected for all outputs or
        for none (rows as groups, as in multi-task learning: ``Groups.singletons(d)``); else each output has norms of
        its own.

    Examples
    --------
    >>> from cvxstructreg import Groups, LatentGroupLasso
    >>> groups = Groups([[0, 1], [1, 2]], n_features=3)
    >>> round(GroupLasso(groups)([3.0, 4.0, 0.0]), 6)
    9.0
    >>> round(LatentGroupLasso(groups)([3.0, 4.0, 0.0]), 6)
    5.0
    >>> rows = GroupLasso(Groups.singletons(2))
    >>> rows([[3.0, 4.0], [0.0, -1.0]])
    6.0

    Members with weights, ||diag(m_g) w_g||: a word that a sentence has twice counts as two copies.

    >>> twice = Groups([[0, 1]], member_weights=[[np.sqrt(2.0), 1.0]])
    >>> round(GroupLasso(twice)([2.0, 1.0]), 6)
    3.0
    """

    groups: Any
    weights: Any = None
    across_outputs: bool = True

    formula: ClassVar[str] = "sum_g c_g ||w_g||_2"
    convention: ClassVar[str] = "direct overlap: a shared feature counts in the norm of each of its groups"

    def __post_init__(self) -> None:
        groups = checked_groups(self.groups, self.weights, type(self).__name__, member_weights=True)
        object.__setattr__(self, "groups", groups)
        if not isinstance(self.across_outputs, bool | np.bool_):
            raise TypeError(f"across_outputs must be True or False, got {self.across_outputs!r}")
        blocks = (BlockNorms if self.across_outputs else ColumnBlockNorms)(groups.indptr, groups.weights)
        object.__setattr__(self, "_parts", (blocks, _stacking(groups)))

    @property
    def size(self) -> int | None:
        """Number of features."""
        return int(self.groups.n_features)

    def split(self) -> tuple[BlockNorms, Any]:
        """The block norms of the stacked copies w_g."""
        parts: tuple[BlockNorms, Any] = self.__dict__["_parts"]
        return parts

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        blocks, E = self.split()
        return blocks.expr(E @ z)

    def value(self, z: Array) -> float:
        """The weighted sum of norms."""
        groups = self.groups
        if not self.across_outputs and z.shape[1] > 1:
            return sum(self.value(column) for column in z.T)
        if z.shape[1] > 1 or groups.member_weights is not None or not compiled_pays(groups.n_entries):
            return float(groups.weights @ groups.norms(z))
        from cvxstructreg.forms.compiled_groups import norm_sum

        indices = self.split()[1].indices
        return float(
            norm_sum(np.array(groups.indptr), indices, np.array(groups.weights), np.ascontiguousarray(z[:, 0]))
        )

    def selected(
        self, coef: Any, multipliers: Any = None, strength: float = 1.0, slack: float = 1e-3
    ) -> NDArray[np.int64]:
        """The numbers of the selected groups: those with a nonzero weight and a positive c_g.

        Without multipliers, tiny weights that a solver has left count as nonzero. Multipliers give a sharper answer:
        the copy v_g of the weights is zero if the multiplier of the group is inside its ball, ||q_g|| < strength * c_g.
        (On the sphere the copy may be zero too, because multipliers of overlapping groups are not unique.)

        Parameters
        ----------
        coef : array of shape (d,) or (d, k)
        multipliers : array, optional
            The q_g, stacked: ``solution.dual[number]`` with the number of this term in the objective.
        strength : float
            The strength of the term.
        slack : float
            A copy counts as zero if its multiplier is shorter than the radius by this fraction. Choose about the
            relative error of the multipliers, which is larger than that of the objective.

        Examples
        --------
        >>> from cvxstructreg import Groups
        >>> penalty = GroupLasso(Groups([[0, 1], [1, 2], [3]], n_features=4))
        >>> penalty.selected([0.0, 0.0, 1.5, 1e-9])
        array([1, 2])
        >>> penalty.selected([0.0, 0.0, 1.5, 1e-9], multipliers=[0.1, 0.2, 0.0, 1.0, 0.3])
        array([1])
        """
        kept = (self.groups.norms(coef) > 0) & (self.groups.weights > 0)
        if multipliers is not None:
            q = np.asarray(multipliers, dtype=float)
            q = q.reshape(len(q), -1)
            if len(q) != self.groups.n_entries:
                raise ValueError(
                    f"multipliers must have one row for each of the {self.groups.n_entries} entries of the groups, "
                    f"got {len(q)}; pass solution.dual[number] with the number of this term"
                )
            kept &= self.split()[0].norms(q) >= (1.0 - slack) * strength * self.groups.weights
        return np.flatnonzero(kept)

    @property
    def has_closed_prox(self) -> bool:
        """Whether any two groups are disjoint or nested, without member weights."""
        return self.groups.member_weights is None and self.groups.nesting is not None

    def prox(self, v: Array, t: float) -> Array:
        """v - E'q, where q minimises ||v - E'q|| over the balls ||q_g|| <= t c_g; for trees, one pass to the roots."""
        if not self.across_outputs and v.shape[1] > 1:
            return np.column_stack([self.prox(column, t) for column in v.T])
        if self.has_closed_prox:
            return self._prox_of_tree(v, t)
        blocks, E = self.split()
        return v - E.T @ fit_stack(E, v, lambda q, _: blocks.project(q, t))

    def _prox_of_tree(self, v: Array, t: float) -> Array:
        """The prox of each height after that of all lower ones (Jenatton et al. 2011, proposition 1)."""
        x = v.copy()
        for rows, blocks in self._heights:
            x[rows] = blocks.prox(x[rows], t)
        return x

    @cached_property
    def _heights(self) -> list[tuple[NDArray[np.int64], BlockNorms]]:
        """For each height of the tree, the features of its groups and their norms."""
        groups, found = self.groups, []
        for height in range(int(groups.nesting.heights.max(initial=-1)) + 1):
            chosen = groups.nesting.heights == height
            rows = groups.indices[np.repeat(chosen, groups.sizes)]
            found.append((rows, BlockNorms.of_sizes(groups.sizes[chosen], groups.weights[chosen])))
        return found

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The feature names of the groups."""
        names: tuple[str, ...] | None = self.groups.feature_names
        return names

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.groups!r}{'' if self.across_outputs else ', across_outputs=False'})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[GroupLasso, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(Groups([[0, 1], [2]], n_features=4)), (4, 1)),
            (cls(Groups([[0, 1, 2], [2, 3], [0, 3]], n_features=4), weights=np.sqrt), (4, 2)),
            (cls(Groups([[0, 1, 2, 3], [1, 2], [2], [3]]), weights=[1.0, 0.5, 2.0, 0.0]), (4, 1)),
            (cls(Groups([[0, 1, 2], [2, 3]], member_weights=[[1.0, 0.5, 2.0], [0.3, 1.5]])), (4, 2)),
            (cls(Groups([[0, 1], [1, 2]]), across_outputs=False), (3, 2)),
        ]


def checked_groups(groups: Any, weights: Any, name: str, member_weights: bool = False) -> Groups:
    """The groups, with the weights of the penalty if there are any."""
    groups = as_groups(groups, name)
    if groups.member_weights is not None and not member_weights:
        raise ValueError(f"{name} does not support member weights; use GroupLasso, or Groups without member_weights")
    if weights is None:
        return groups
    weighted = groups.with_weights(weights)
    return named(weighted) if getattr(groups, "by_name", False) else weighted


def _stacking(groups: Groups) -> Any:
    """The map to the stacked copies w_g, or diag(m_g) w_g."""
    E = Selection(groups.indices, groups.n_features)
    if groups.member_weights is None:
        return E
    matrix = E.tocsr()
    matrix.data[:] = groups.member_weights
    return matrix
