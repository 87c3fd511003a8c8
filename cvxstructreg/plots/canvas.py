"""Axes to draw on, and colours around zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.optional import optional_import


def axes_for(ax: Any, **figure: Any) -> Any:
    """The Axes given, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = optional_import("matplotlib.pyplot", "plots", "a picture")
    return pyplot.subplots(layout="constrained", **figure)[1]


def signed_colours(values: Any) -> tuple[Any, Any]:
    """A colour for each number, red below and blue above zero, and the mapping for a colour bar."""
    matplotlib = optional_import("matplotlib", "plots", "a picture")
    colors = optional_import("matplotlib.colors", "plots", "a picture")
    cm = optional_import("matplotlib.cm", "plots", "a picture")
    array = np.asarray(values, dtype=float)
    reach = float(np.abs(array).max(initial=0.0)) or 1.0
    mapping = cm.ScalarMappable(colors.Normalize(-reach, reach), matplotlib.colormaps["RdBu"])
    return mapping.to_rgba(array), mapping
