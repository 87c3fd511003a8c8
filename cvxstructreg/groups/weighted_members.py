"""Groups given as mappings from features to member weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cvxstructreg.groups.members import member_arrays


def split_weights(lists: Any, member_weights: Any = None) -> tuple[Any, Any]:
    """Return the lists and the member weights; mappings from features to numbers become lists with weights.

    Groups that are plain lists beside such mappings have weights of 1.

    Examples
    --------
    >>> split_weights([{"moon": 1.0, "star": 0.5}, ["salt"]])
    ([['moon', 'star'], ['salt']], [[1.0, 0.5], [1.0]])
    """
    if isinstance(lists, str | Mapping) or not isinstance(lists, Iterable):
        return lists, member_weights
    lists = list(lists)
    if not any(isinstance(group, Mapping) for group in lists):
        return lists, member_weights
    if member_weights is not None:
        raise ValueError("groups that map features to weights have member weights already; leave out member_weights=")
    members = [array.tolist() for array in member_arrays(lists)]
    given = [
        list(group.values()) if isinstance(group, Mapping) else [1.0] * len(known)
        for group, known in zip(lists, members, strict=True)
    ]
    return members, given
