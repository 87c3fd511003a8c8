"""Plot of the sentences of a document, coloured by their values."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxstructreg.plots.canvas import axes_for, signed_colours


def coloured_sentences(
    sentences: Sequence[str], values: Any, width: int = 80, label: str = "value", ax: Any = None
) -> Any:
    """Write the sentences of a document on coloured backgrounds: blue if positive, red if negative, grey text if zero.

    Parameters
    ----------
    sentences : list of str
        The sentences in order.
    values : array
        One number for each sentence, such as the decrease in log-odds when it is removed.
    width : int
        Characters per line.
    label : str
        What the numbers mean; the numbers are written before the sentences.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> ax = coloured_sentences(["A fine film.", "It rained."], [1.5, 0.0])
    >>> [text.get_text() for text in ax.texts]
    ['A fine film.', 'It rained.']
    """
    numbers = np.asarray(values, dtype=float)
    if not len(sentences) or numbers.shape != (len(sentences),):
        raise ValueError(
            f"values must have one number for each of {len(sentences)} sentences, got shape {numbers.shape}"
        )
    if not np.isfinite(numbers).all():
        raise ValueError("values contains NaN or infinite numbers; all values must be finite")
    blocks = [textwrap.fill(sentence, width) or " " for sentence in sentences]
    longest = max(len(line) for block in blocks for line in block.split("\n"))
    heights = np.array([block.count("\n") + 1.6 for block in blocks])
    ax = axes_for(ax, figsize=(0.078 * longest + 1.3, 0.2 * heights.sum() + 0.3))
    colours, _ = signed_colours(numbers, room=1.8)
    tops = heights.sum() - np.concatenate([[0.0], np.cumsum(heights)[:-1]])
    for block, value, colour, top, height in zip(blocks, numbers, colours, tops, heights, strict=True):
        ax.axhspan(top - height + 0.15, top - 0.15, color=(*colour[:3], 1.0 if value else 0.0), linewidth=0)
        ax.text(
            0.01,
            top - height / 2,
            block,
            va="center",
            family="monospace",
            fontsize=9,
            color="black" if value else "0.45",
            transform=ax.get_yaxis_transform(),
        )
    ax.set_ylim(0.0, float(heights.sum()))
    ax.set_yticks(tops - heights / 2, [f"{value:+.2g}" if value else "0" for value in numbers])
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel(label)
    ax.set_xticks([])
    for side in ax.spines.values():
        side.set_visible(False)
    return ax
