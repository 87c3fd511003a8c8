"""Figures of the results: times relative to ours, and the growth of cost with problem size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from measure import Result

#: The pattern of each size in the name of a task.
SIZES = {
    "rows": r"(?:^|\s|n = )(?P<rows>[\d,]+)(?: x |, d = )[\d,]+",
    "columns": r"(?: x |d = )(?P<columns>[\d,]+)",
    "groups": r"(?P<groups>[\d,]+) groups",
}
COLOURS = {"Laplacian elastic net": "#0072B2", "feature network": "#E69F00", "group lasso": "#009E73"}


def draw(results: Sequence[Result], ratios: Sequence[float], path: str) -> None:
    """Draw bars of the times relative to ours and curves of the growth of cost, as far as measured."""
    import matplotlib.pyplot as plt

    growing = [r for r in results if "growth" in r.section or "growth" in r.work]
    others = [(r, ratio) for r, ratio in zip(results, ratios, strict=True) if r not in growing]
    heights = [max(3.0, 0.22 * len(others) + 1.0)] * bool(others) + [3.6] * bool(growing)
    figure = plt.figure(figsize=(10.0, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    if others:
        _bars(parts[0].subplots(), others)
    if growing:
        _growth(parts[-1], growing)
    figure.savefig(path, dpi=110)


def _bars(ax: Any, lines: Sequence[tuple[Result, float]]) -> None:
    labels = [f"{i}  {r.section}: {r.work} | {r.solver}" for i, (r, _) in enumerate(lines)]
    ax.barh(labels, [ratio for _, ratio in lines], color=["#0072B2" if ratio == 1 else "0.7" for _, ratio in lines])
    ax.set_xscale("log")
    ax.invert_yaxis()
    ax.tick_params(axis="y", labelsize="x-small")
    ax.set_xlabel("time relative to ours (blue)")


def _growth(figure: Any, results: Sequence[Result]) -> None:
    """Draw one panel for each size that grows, with the exponent of each curve and a dotted line of exponent 1."""
    panels = {what: curves for what in SIZES if (curves := _curves(what, results))}
    for ax, (what, curves) in zip(
        np.atleast_1d(figure.subplots(1, len(panels), sharey=True)), panels.items(), strict=True
    ):
        for method, (sizes, seconds) in curves.items():
            exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
            look = {"color": COLOURS.get(method), "marker": "o", "markersize": 4}
            ax.loglog(sizes, seconds, label=f"{method}\n(exponent {exponent:.2f})", **look)
        first = min(min(sizes) for sizes, _ in curves.values())
        last = max(max(sizes) for sizes, _ in curves.values())
        low = min(min(seconds) for _, seconds in curves.values())
        ax.loglog([first, last], [low, low * last / first], color="0.5", linestyle="dotted", label="exponent 1")
        ax.set_xlabel(f"number of {what}")
        ax.grid(color="0.9", linewidth=0.5)
        ax.legend(fontsize="x-small", frameon=False, loc="upper left")
    figure.axes[0].set_ylabel("seconds")


def _curves(what: str, results: Sequence[Result]) -> dict[str, tuple[list[float], list[float]]]:
    """Sizes and seconds of each method whose tasks name this size; the other size is fixed at its most common value."""
    other = {"rows": "columns", "columns": "rows"}.get(what)
    by_method: dict[str, list[tuple[float, float | None, float]]] = {}
    for r in results:
        size, said = _size(what, r.work), re.search("growth with (n|d)", r.work)
        if size is not None and (said is None or said[1] == {"rows": "n", "columns": "d"}.get(what)):
            method = next((name for name in COLOURS if r.section.startswith(name)), r.section)
            held = None if other is None else _size(other, r.work)
            by_method.setdefault(method, []).append((size, held, r.seconds))
    curves = {}
    for method, points in by_method.items():
        commonest = Counter(held for _, held, _ in points).most_common(1)[0][0]
        kept = sorted((size, seconds) for size, held, seconds in points if held == commonest)
        if len(kept) > 1:
            curves[method] = ([size for size, _ in kept], [seconds for _, seconds in kept])
    return curves


def _size(what: str, work: str) -> float | None:
    found = re.search(SIZES[what], work)
    return None if found is None else float(found[what].replace(",", ""))
