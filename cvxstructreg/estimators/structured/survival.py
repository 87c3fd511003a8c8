"""Targets of survival models: times with events, in the forms that people have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMS = (
    "a structured array with a boolean field (event) and a numeric one (time), as scikit-survival has, an array of two "
    "columns (time, event), or a data frame with the columns time and event"
)


def time_and_event(y: Any) -> NDArray[np.float64]:
    """Return the times and events (1 or 0) as an array of two columns.

    Parameters
    ----------
    y : structured array, array of shape (n, 2), or data frame
        A structured array or a data frame has one boolean column, the event, and one of numbers, the time, or columns
        called event and time. An array has the columns time and event.

    Examples
    --------
    >>> time_and_event(np.array([(True, 5.0), (False, 8.0)], dtype=[("event", bool), ("time", float)]))
    array([[5., 1.],
           [8., 0.]])
    """
    columns = _named_columns(y)
    if columns is None:
        array = np.asarray(y)
        if array.ndim != 2 or array.shape[1] != 2:
            raise ValueError(f"the target of loss='cox' must be {FORMS}; got an array of shape {array.shape}")
        columns = {"time": array[:, 0], "event": array[:, 1]}
    time, event = _sorted_out(columns)
    if time.dtype.kind not in "biuf" or event.dtype.kind not in "biuf":
        remedy = "for example time.astype(float), and event = status == 'dead' for words"
        raise TypeError(f"times and events must be numbers, got {time.dtype} and {event.dtype}; pass {remedy}")
    result = np.column_stack([time.astype(float), event.astype(float)])
    if not np.isfinite(result).all():
        raise ValueError("the target contains NaN or infinite values; drop the rows whose time or event is unknown")
    if not np.isin(result[:, 1], (0.0, 1.0)).all():
        swapped = np.isin(result[:, 0], (0.0, 1.0)).all()
        remedy = "the columns are (time, event): exchange them" if swapped else "1 is an event, 0 is censored"
        raise ValueError(f"events must be 0 or 1, got {result[~np.isin(result[:, 1], (0.0, 1.0)), 1][0]:g}; {remedy}")
    return result


def _named_columns(y: Any) -> dict[str, NDArray[Any]] | None:
    """Return the columns of a structured array or a data frame; None for anything else."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is None and hasattr(y, "columns"):
        names = list(y.columns)
    return None if names is None else {str(name): np.asarray(y[name]) for name in names}


def _sorted_out(columns: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    lower = {name.lower(): values for name, values in columns.items()}
    if {"time", "event"} <= set(lower):
        return lower["time"], lower["event"]
    flags = [values for values in columns.values() if values.dtype == bool]
    if len(columns) == 2 and len(flags) == 1:
        times = next(values for values in columns.values() if values.dtype != bool)
        return times, flags[0]
    raise ValueError(f"the target of loss='cox' must be {FORMS}; got the columns {list(columns)}")
