"""Which groups contain which, for groups that form a forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cvxstructreg.groups.groups import Groups


@dataclass(frozen=True, eq=False)
class Nesting:
    """The forest of nested groups.

    Attributes
    ----------
    parents : int64 array
        The smallest group that contains each group; -1 for roots. Of two equal groups, the later one is the parent.
    heights : int64 array
        0 for groups that contain no other, else one more than the largest height inside. Groups of one height are
        disjoint.
    """

    parents: NDArray[np.int64]
    heights: NDArray[np.int64]


def nesting_of(groups: Groups) -> Nesting | None:
    """Return the forest, or None if two groups overlap and neither contains the other.

    Examples
    --------
    >>> from cvxstructreg.groups import Groups
    >>> nesting_of(Groups([[0, 1, 2], [0], [1, 2]])).parents
    array([-1,  0,  0])
    >>> nesting_of(Groups([[0, 1], [1, 2]])) is None
    True
    """
    parents, heights = np.full(groups.n_groups, -1), np.zeros(groups.n_groups, dtype=np.int64)
    if groups.is_disjoint:
        return Nesting(parents, heights)
    largest = np.full(groups.n_features, -1)  # the largest group so far that holds each feature
    for group in np.argsort(groups.sizes, kind="stable"):
        members = groups[group]
        inside, counts = np.unique(largest[members], return_counts=True)
        inside, counts = (inside[1:], counts[1:]) if inside[0] < 0 else (inside, counts)
        if np.any(counts < groups.sizes[inside]):
            return None
        parents[inside] = group
        heights[group] = 1 + heights[inside].max() if inside.size else 0
        largest[members] = group
    return Nesting(parents, heights)
