"""The features and groups that a fitted model selects, as rows; ``pandas.DataFrame(rows)`` makes a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.groups import Groups


class SelectedFeature(NamedTuple):
    """A feature with a nonzero weight: its column, name and weight (one weight per class if there are several)."""

    number: int
    name: str
    weight: Any


class SelectedGroup(NamedTuple):
    """A group of the model: its index among the given groups, name, norm of its weights, and names of its features."""

    number: int
    name: str
    norm: float
    features: tuple[str, ...]


def selected_features(coef: NDArray[np.float64], names: Sequence[str]) -> list[SelectedFeature]:
    """Return the nonzero columns of coef (k x d), largest first."""
    sizes = np.abs(coef).max(axis=0)
    order = [int(j) for j in np.argsort(-sizes, kind="stable") if sizes[j] > 0]
    single = coef.shape[0] == 1
    return [SelectedFeature(j, names[j], float(coef[0, j]) if single else coef[:, j].copy()) for j in order]


def selected_groups(
    groups: Groups, kept: NDArray[np.bool_], norms: NDArray[np.float64], numbers: Any, names: Sequence[str]
) -> list[SelectedGroup]:
    """Return the chosen groups, largest norm first."""
    rows = []
    for g in np.argsort(-norms, kind="stable"):
        if kept[g]:
            number = int(numbers[g])
            name = f"group {number}" if groups.names is None else groups.names[g]
            rows.append(SelectedGroup(number, name, float(norms[g]), tuple(names[j] for j in groups[int(g)])))
    return rows
