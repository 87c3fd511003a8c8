"""The group lasso with overlapping groups: the direct norm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.row_selection import Selection, compiled_pays
from cvxstructreg.groups import Groups
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.blocks import BlockNorms, fit_stack


@dataclass(frozen=True, eq=False, repr=False)
class GroupLasso(Atom):
    """sum_g c_g ||w_g||_2, the *direct* norm; groups may overlap.

    A group at zero sets all its features to zero, including those that are also in other groups. The nonzero weights
    are therefore the *complement* of a union of groups. With :class:`LatentGroupLasso` the nonzero weights are a
    *union* of groups. Without overlap the two penalties are the same.

    Parameters
    ----------
    groups : Groups
        With their weights c_g.
    weights : number, array or function of the group sizes, optional
        Other weights c_g, such as ``np.sqrt``.

    Examples
    --------
    >>> from cvxstructreg import Groups, LatentGroupLasso
    >>> groups = Groups([[0, 1], [1, 2]], n_features=3)
    >>> round(GroupLasso(groups)([3.0, 4.0, 0.0]), 6)
    9.0
    >>> round(LatentGroupLasso(groups)([3.0, 4.0, 0.0]), 6)
    5.0
    """

    groups: Any
    weights: Any = None

    formula: ClassVar[str] = "sum_g c_g ||w_g||_2"
    convention: ClassVar[str] = "direct overlap: a shared feature counts in the norm of each of its groups"

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", checked_groups(self.groups, self.weights, type(self).__name__))
        blocks = BlockNorms(self.groups.indptr, self.groups.weights)
        object.__setattr__(self, "_parts", (blocks, Selection(self.groups.indices, self.groups.n_features)))

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
        if z.shape[1] > 1 or not compiled_pays(groups.n_entries):
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

    def prox(self, v: Array, t: float) -> Array:
        """v - E'q, where q minimises ||v - E'q|| over the balls ||q_g|| <= t c_g."""
        blocks, E = self.split()
        return v - E.T @ fit_stack(E, v, lambda q, _: blocks.project(q, t))

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The feature names of the groups."""
        names: tuple[str, ...] | None = self.groups.feature_names
        return names

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.groups!r})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[GroupLasso, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [
            (cls(Groups([[0, 1], [2]], n_features=4)), (4, 1)),
            (cls(Groups([[0, 1, 2], [2, 3], [0, 3]], n_features=4), weights=np.sqrt), (4, 2)),
        ]


def checked_groups(groups: Any, weights: Any, name: str) -> Groups:
    """The groups, with the weights of the penalty if there are any."""
    if not isinstance(groups, Groups):
        raise TypeError(f"{name} needs Groups, got {type(groups).__name__}; pass Groups(lists, n_features=d)")
    return groups if weights is None else groups.with_weights(weights)
