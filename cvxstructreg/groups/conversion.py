"""Groups from what a user has: lists, a mapping, or a matrix of memberships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from cvxstructreg.groups.groups import Groups


def as_groups(given: Any, owner: str) -> Groups:
    """Return Groups as they are, and make Groups of lists of features, of a mapping, or of a matrix of memberships.

    Parameters
    ----------
    given : Groups, sequence of sequences of indices, mapping from names to them, or matrix (groups x features)
        The nonzero entries of a matrix, sparse or boolean, are the members of the groups, and numbers other than 1 are
        member weights. In lists, the last feature is the largest index. Lists may also have names of features, for data
        with names. A mapping from features to numbers, in place of a list, has member weights.
    owner : str
        Who needs the groups, for the message.

    Examples
    --------
    >>> as_groups({"first": [0, 1], "rest": [2, 3, 4]}, "GroupLasso").names
    ('first', 'rest')
    >>> as_groups({"sky": {"moon": 1.0, "star": 0.5}}, "GroupLasso").member_weights.tolist()
    [1.0, 0.5]
    """
    if isinstance(given, Groups):
        return given
    if isinstance(given, Mapping):
        return _from_lists(list(given.values()), [str(name) for name in given])
    is_mask = isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype == bool
    if sparse.issparse(given) or is_mask:
        return Groups.from_memberships(sparse.csr_array(given, dtype=float, copy=True))
    if isinstance(given, list | tuple) and all(
        isinstance(group, list | tuple | set | range | np.ndarray | Mapping) for group in given
    ):
        return _from_lists([sorted(group) if isinstance(group, set) else group for group in given])
    if isinstance(given, np.ndarray) and given.ndim == 2:
        raise TypeError(
            f"{owner} needs Groups, got an array of {given.dtype} of shape {given.shape}; for memberships, groups x "
            "features, pass Groups.from_memberships(array)"
        )
    raise TypeError(f"{owner} needs Groups, got {type(given).__name__}; pass Groups(lists, n_features=d), or lists")


def _from_lists(lists: list[Any], names: list[str] | None = None) -> Groups:
    members = [member for group in lists for member in group]
    if not members or not all(isinstance(member, str) for member in members):
        return Groups(lists, names=names)
    groups = Groups(lists, names=names, feature_names=list(dict.fromkeys(map(str, members))))
    return named(groups)


def named(groups: Groups) -> Groups:
    """Mark groups whose order of features is only that in which they were met."""
    object.__setattr__(groups, "by_name", True)
    return groups


class OnGroups:
    """The part of a penalty with the field ``groups`` that finds the features of the data by their names."""

    groups: Any

    @property
    def needs_names(self) -> bool:
        """Whether the features are known by name only: those of lists of names."""
        return bool(getattr(self.groups, "by_name", False))

    def aligned(self, names: tuple[str, ...]) -> Self:
        """The same penalty on features of these names, in this order; other features are in no group."""
        given = self.groups
        place = {name: column for column, name in enumerate(names)}
        indices = np.array([place[given.feature_names[j]] for j in given.indices], dtype=np.int64)
        moved = Groups.from_csr(
            given.indptr, indices, len(names), given.weights, given.names, names, given.member_weights
        )
        return replace(self, groups=moved)  # type: ignore[type-var]
