"""Checks of the events and strata of survival times."""

from __future__ import annotations

from typing import Any

import numpy as np


def checked_event(event: Any, n: int) -> np.ndarray:
    """The events of n rows as booleans; by default there was one in every row."""
    if event is None:
        return np.ones(n, dtype=bool)
    array = np.asarray(event)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise ValueError(f"event must have one entry for each of the {n} times, got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        remedy = 'compare words with that of the event, such as event = status == "dead", or use .astype(bool)'
        raise ValueError(f"event must be True or False (1 or 0) for each time, got dtype {array.dtype}; {remedy}")
    if not np.isin(array, (0, 1)).all():
        other = array[~np.isin(array, (0, 1))][0]
        remedy = "for several causes, pick one of them, such as event = cause == 2"
        raise ValueError(f"event must be True or False (1 or 0) for each time, got {other:g}; {remedy}")
    return array.astype(bool)


def checked_strata(strata: Any, n: int) -> Any:
    """The strata of n rows as numbers 0, 1, ...; None if there is only one."""
    if strata is None:
        return None
    array = np.asarray(strata)
    if array.shape != (n,):
        raise ValueError(f"strata must have one label for each of the {n} times, got shape {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("strata contains NaN or infinite values; give such rows a stratum of their own, or drop them")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)
