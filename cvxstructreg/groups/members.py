"""The members of groups and their weights: input as lists or as flat arrays, and its checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.checks import plural, real_array, show

if TYPE_CHECKING:
    from cvxstructreg.groups.groups import Groups


def member_arrays(lists: Iterable[Iterable[Any]]) -> list[NDArray[Any]]:
    """Return the features of each group as an array, after checking the type of each list."""
    if isinstance(lists, Mapping):
        raise TypeError("lists is a mapping; use Groups(list(lists.values()), names=list(lists))")
    members = []
    for number, group in enumerate(lists):
        if isinstance(group, str) or not isinstance(group, Iterable):
            raise TypeError(
                f"group {number} is {group!r}, not a list of features; for one label per feature "
                "use Groups.from_labels(labels)"
            )
        array = np.asarray(group if hasattr(group, "__array__") else list(group))
        if array.ndim != 1:
            raise ValueError(f"group {number} must be a one-dimensional list of features, not of shape {array.shape}")
        if array.dtype == bool:
            raise TypeError(f"group {number} is a boolean mask; use its indices, np.flatnonzero(mask)")
        members.append(array)
    return members


def flat_member_weights(given: Iterable[Iterable[float]], members: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Return one array of the member weights of all groups, given as one list per group."""
    if isinstance(given, str) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0:
        remedy = "for one number per group use weights=; for equal members leave member_weights out"
        raise TypeError(f"member_weights must be one list of numbers per group, got {given!r}; {remedy}")
    lists = [
        real_array(
            list(group) if isinstance(group, Iterable) and not hasattr(group, "__array__") else group, "member weights"
        )
        for group in given
    ]
    if len(lists) != len(members):
        count = plural(len(members), "group")
        raise ValueError(f"member_weights has {plural(len(lists), 'list')} for {count}; give one list per group")
    for number, (weights, group) in enumerate(zip(lists, members, strict=True)):
        if weights.shape != group.shape:
            raise ValueError(
                f"group {number} has {plural(group.size, 'member')}, but its member weights have shape "
                f"{weights.shape}; give one number per member, in the same order"
            )
    return np.concatenate(lists) if lists else np.zeros(0)


def checked_member_weights(given: Any, groups: Groups, indices: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the member weights of the entries ``indices``, which must be positive and finite."""
    values = real_array(given, "member weights")
    if values.shape != indices.shape:
        raise ValueError(
            f"member_weights have shape {values.shape} for {indices.size} entries of the groups; give one number "
            "for each entry of indices"
        )
    good = np.isfinite(values) & (values > 0)
    if not good.all():
        bad = int(np.argmin(good))
        group = show(groups.names, int(groups.owner[bad]))
        feature, value = show(groups.feature_names, int(indices[bad])), values[bad]
        remedy = "leave the feature out of the group" if value == 0 else "pass its size, a positive number"
        raise ValueError(
            f"the member weight of feature {feature} in group {group} is {value:g}; it must be finite and positive: "
            f"{remedy}"
        )
    return values


def first_identical(groups: Groups) -> NDArray[np.int64]:
    """Return, for each group, the first one with the same members and weights: found by hash, compared exactly."""
    if groups.n_groups == 0:
        return np.zeros(0, dtype=np.int64)
    words = np.random.default_rng(0).integers(2**64, size=groups.n_features, dtype=np.uint64)
    hashes = np.add.reduceat(words[groups.indices], groups.indptr[:-1])
    _, position, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    itself = np.arange(groups.n_groups)
    first = np.where(groups.sizes == groups.sizes[position[inverse]], position[inverse], itself)
    counterpart = np.arange(groups.n_entries) + np.repeat(groups.indptr[first] - groups.indptr[:-1], groups.sizes)
    other = groups.indices != groups.indices[counterpart]
    if groups.member_weights is not None:
        other |= groups.member_weights != groups.member_weights[counterpart]
    differs = np.logical_or.reduceat(other, groups.indptr[:-1])
    return np.where(differs, itself, first)
