"""Plot of the weights along a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxstructreg.paths import Path
from cvxstructreg.plots.canvas import axes_for, line_look, spread

#: Height of a name, as a fraction of the height of the Axes.
NAME_HEIGHT = 0.055


def coefficient_path(
    points: Path,
    chosen: float | None = None,
    names: Sequence[str] | None = None,
    n_named: int = 8,
    output: int = 0,
    ax: Any = None,
) -> Any:
    """Plot each weight against the strength; name the largest ones and mark the chosen strength.

    Parameters
    ----------
    points : Path
        From :func:`cvxstructreg.paths.path`.
    chosen : float, optional
        The strength to mark, such as the one chosen by cross-validation.
    names : list of str, optional
        Names of the features; by default those of the problem, or their indices.
    n_named : int
        Number of weights with a colour and a name: the largest at the chosen strength, then at the end of the path.
    output : int
        Which column of the weights to plot if there are several outputs.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> X, y = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 2.0, 3.0]
    >>> points = csr.path(csr.Problem(csr.Linear(X), csr.Squared(y) + csr.L1()), n_points=5)
    >>> ax = coefficient_path(points, chosen=points.strengths[2])
    >>> ax.get_xscale()
    'log'
    """
    coefs = points.coefs.reshape(len(points), points[0].coef.shape[0], -1)
    if not 0 <= output < coefs.shape[2]:
        raise ValueError(f"output must be a column from 0 to {coefs.shape[2] - 1} of the weights, got {output!r}")
    weights = coefs[:, :, output]
    labels = list(names if names is not None else points[0].problem.feature_names or map(str, range(weights.shape[1])))
    if len(labels) != weights.shape[1]:
        raise ValueError(f"names must contain one name for each of {weights.shape[1]} features, got {len(labels)}")
    if np.any(points.strengths <= 0):
        raise ValueError("strengths are plotted on a logarithmic scale; leave out strength 0")
    ax = axes_for(ax, figsize=(7.0, 4.6))
    named = _named(weights, _nearest(points.strengths, chosen), n_named)
    others = np.setdiff1d(np.flatnonzero(np.abs(weights).max(axis=0)), named)
    if others.size:
        ax.plot(points.strengths, weights[:, others], color="0.85", linewidth=0.7, zorder=1)
    for number, j in enumerate(named):
        ax.plot(points.strengths, weights[:, j], label=labels[j], zorder=2, **line_look(number))
    ax.axhline(0.0, color="black", linewidth=0.5)
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.margins(x=0.02)
    ax.set_xlabel("strength of the penalty (weaker to the right)")
    ax.set_ylabel("weight")
    if chosen is not None:
        _mark(ax, chosen, points, weights)
    _write_names(ax, [labels[j] for j in named], weights[-1, named])
    return ax


def _nearest(strengths: Any, chosen: float | None) -> int:
    """Return the index of the chosen strength; the last one if none is chosen."""
    return len(strengths) - 1 if chosen is None else int(np.argmin(np.abs(np.log(strengths / chosen))))


def _named(weights: Any, point: int, n_named: int) -> Any:
    """Return the features with the largest weights at the point, then at the end of the path, from top to bottom."""
    order = np.lexsort((-np.abs(weights[-1]), -np.abs(weights[point])))[:n_named]
    largest = order[np.abs(weights[:, order]).max(axis=0) > 0]
    return largest[np.argsort(-weights[-1, largest], kind="stable")]


def _mark(ax: Any, chosen: float, points: Path, weights: Any) -> None:
    count = np.count_nonzero(weights[_nearest(points.strengths, chosen)])
    label = f"chosen: {chosen:.3g}"
    ax.axvline(chosen, color="black", linestyle="--", linewidth=1.0, label=label, zorder=1.5)
    ax.set_title(f"{label}, {count} of {weights.shape[1]} weights nonzero", fontsize="medium")


def _write_names(ax: Any, names: Sequence[str], ends: Any) -> None:
    """Write each name at the end of its line, moved apart if names would overlap."""
    low, high = ax.get_ylim()
    places = spread((ends - low) / (high - low), NAME_HEIGHT)
    for number, (name, place) in enumerate(zip(names, places, strict=True)):
        ax.annotate(
            name,
            xy=(1.0, (ends[number] - low) / (high - low)),
            xytext=(1.04, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize="small",
            color=line_look(number)["color"],
            arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.6, "shrinkA": 1.0, "shrinkB": 1.0},
        )
    ax.set_ylim(low, high)
