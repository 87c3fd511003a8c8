"""Axes to draw on, colours that are safe for colour-blind readers, and labels that do not overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.runtime.optional import optional_import

#: Seven colours of Okabe and Ito (without yellow, which is too faint for lines). After them the line style changes.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
LINE_STYLES = ("solid", "dashed", "dotted", "dashdot")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Colours of similarity and dissimilarity edges; dissimilarity edges are also dashed.
SIMILAR, DISSIMILAR = "0.7", "#AA3377"


def axes_for(ax: Any, **figure: Any) -> Any:
    """Return the given Axes, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = optional_import("matplotlib.pyplot", "plots", "a picture")
    return pyplot.subplots(layout="constrained", **figure)[1]


def line_look(number: int) -> dict[str, str]:
    """Return colour and style of a line: seven colours in the first style, then seven in the next, and so on."""
    style, colour = divmod(number, len(PALETTE))
    return {"color": PALETTE[colour], "linestyle": LINE_STYLES[style % len(LINE_STYLES)]}


def signed_colours(values: Any, room: float = 1.0) -> tuple[Any, Any]:
    """Return a colour for each number, red below and blue above zero, and the mapping for a colour bar.

    ``room`` above 1 leaves out the darkest colours, on which black text would be hard to read.
    """
    matplotlib = optional_import("matplotlib", "plots", "a picture")
    colors = optional_import("matplotlib.colors", "plots", "a picture")
    cm = optional_import("matplotlib.cm", "plots", "a picture")
    array = np.asarray(values, dtype=float)
    reach = room * (float(np.abs(array).max(initial=0.0)) or 1.0)
    mapping = cm.ScalarMappable(colors.Normalize(-reach, reach), matplotlib.colormaps["RdBu"])
    return mapping.to_rgba(array), mapping


def spread(heights: Any, distance: float) -> NDArray[np.float64]:
    """Return heights of labels near the given ones, in the same order, at least ``distance`` apart.

    Labels that would overlap are stacked, centred at the mean of their given heights.

    Examples
    --------
    >>> spread([0.0, 0.1, 3.0], 1.0).tolist()
    [-0.45, 0.55, 3.0]
    """
    wanted = np.asarray(heights, dtype=float)
    order = np.argsort(wanted, kind="stable")
    blocks: list[tuple[float, int]] = []  # height of the lowest label of each stack, and number of labels
    for height in wanted[order]:
        low, count = float(height), 1
        while blocks and blocks[-1][0] + distance * blocks[-1][1] > low:
            below, size = blocks.pop()
            # the merged stack starts at the weighted mean of the two heights for its lowest label
            low = (below * size + (low - distance * size) * count) / (size + count)
            count += size
        blocks.append((low, count))
    placed = np.empty(len(wanted))
    placed[order] = np.concatenate([low + distance * np.arange(count) for low, count in blocks] or [np.zeros(0)])
    return placed
