"""Groups given by the names of their features, such as pathways or word lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cvxstructreg.building.vocabulary import ColumnFinder, vocabulary_names
from cvxstructreg.groups.groups import Groups, Weights


def named_groups(
    members: Mapping[str, Iterable[str]],
    vocabulary: Any,
    weights: Weights = None,
    missing: str = "ignore",
    min_size: int = 1,
) -> Groups:
    """Return one named group for each entry: the columns of its members.

    Parameters
    ----------
    members : mapping from the name of a group to the names of its features
        Such as pathways: ``named_groups(read_gmt("sets.gmt"), genes)``. A mapping from features to numbers, in place of
        a list, has member weights.
    vocabulary : fitted vectorizer, sequence of str or dict from name to column
        Names of the columns of X.
    weights : float, one per group that remains, or function of the sizes such as np.sqrt; optional
    missing : {"ignore", "error"}
        What to do with members that are not in the vocabulary.
    min_size : int
        Drop groups with fewer members in the vocabulary.

    Examples
    --------
    >>> groups = named_groups({"sky": ["moon", "star", "comet"], "sea": ["fish"]}, ["star", "salt", "moon"])
    >>> groups.names, groups[0].tolist()
    (('sky',), [0, 2])
    """
    if not isinstance(members, Mapping):
        kind = type(members).__name__
        raise TypeError(f"members must be a mapping from name to features, not {kind}; for lists use Groups(lists)")
    names = vocabulary_names(vocabulary)
    finder = ColumnFinder(names, len(names), missing)
    found: dict[str, dict[int, float]] = {}
    for title, features in members.items():
        if isinstance(features, str):
            raise TypeError(f"the members of {title!r} must be a list, not the single string {features!r}")
        sizes = dict(features) if isinstance(features, Mapping) else dict.fromkeys(features, 1.0)
        columns, unknown = finder.find(sizes, f"member of {title!r}")
        known = [size for name, size in sizes.items() if name not in unknown]
        if len(columns) >= max(1, min_size):
            found[str(title)] = dict(zip(columns.tolist(), known, strict=True))
    if not found:
        raise ValueError("no group has a member in the vocabulary; do both use the same kind of names?")
    return Groups(list(found.values()), len(names), weights, list(found), names)
