"""The weights along a path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxstructreg.paths import Path
from cvxstructreg.plots.canvas import axes_for


def coefficient_path(
    points: Path,
    chosen: float | None = None,
    names: Sequence[str] | None = None,
    n_named: int = 8,
    output: int = 0,
    ax: Any = None,
) -> Any:
    """Draw each weight against the strength, with the largest ones named and the chosen strength marked.

    Parameters
    ----------
    points : Path
        From :func:`cvxstructreg.paths.path`.
    chosen : float, optional
        The strength to mark, such as the one that cross-validation picked.
    names : list of str, optional
        Names of the features; by default those of the problem, or their numbers.
    n_named : int
        How many weights get a colour and a name: the largest at the end of the path.
    output : int
        Which column of the weights, where there are several outputs.
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
        raise ValueError(f"names must have one name for each of {weights.shape[1]} features, got {len(labels)}")
    if np.any(points.strengths <= 0):
        raise ValueError("the strengths are drawn on a logarithmic scale: leave out strength 0")
    ax = axes_for(ax)
    named = np.argsort(-np.abs(weights[-1]), kind="stable")[:n_named]
    others = np.setdiff1d(np.flatnonzero(np.abs(weights).max(axis=0)), named)
    if others.size:
        ax.plot(points.strengths, weights[:, others], color="0.8", linewidth=0.8, zorder=1)
    for j in named:
        if weights[:, j].any():
            ax.plot(points.strengths, weights[:, j], label=labels[j], zorder=2)
    ax.axhline(0.0, color="black", linewidth=0.5)
    if chosen is not None:
        ax.axvline(chosen, color="black", linestyle="--", linewidth=1.0, label=f"chosen: {chosen:.3g}")
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.set_xlabel("strength of the penalty (weaker to the right)")
    ax.set_ylabel("weight")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax
