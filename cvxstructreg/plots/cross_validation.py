"""Plot of the scores of a cross-validation against the strength."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.plots.canvas import axes_for, line_look


def cv_curve(model: Any, ax: Any = None, folds: bool = True) -> Any:
    """Plot the mean score of each strength with its standard error, and mark the chosen strength.

    The numbers at the top are the mean numbers of selected features.

    Parameters
    ----------
    model : fitted estimator
        One of the estimators whose name ends in CV.
    ax : matplotlib Axes, optional
    folds : bool
        Whether to draw the score of each fold as a thin line.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> y = X[:, 0] + 2.0 * rng.normal(size=40)
    >>> model = csr.LaplacianElasticNetRegressorCV(n_strengths=9, cv=3).fit(X, y)
    >>> ax = cv_curve(model)
    >>> ax.get_xlabel(), bool(ax.xaxis_inverted())
    ('strength', True)
    """
    missing = [name for name in ("strengths_", "scores_", "mean_score_", "std_error_") if not hasattr(model, name)]
    if missing:
        raise TypeError(
            f"cv_curve draws a fitted cross-validated estimator, such as GroupLassoClassifierCV; "
            f"{type(model).__name__} has no {missing[0]}"
        )
    ax = axes_for(ax, figsize=(6.0, 4.2))
    strengths, mean, error = model.strengths_, model.mean_score_, model.std_error_
    if folds:
        for scores in model.scores_:
            ax.plot(strengths, scores, color="0.8", linewidth=0.7, zorder=1)
    look = line_look(0)
    ax.fill_between(strengths, mean - error, mean + error, color=look["color"], alpha=0.2, linewidth=0.0, zorder=2)
    ax.plot(strengths, mean, label="mean score, with its standard error", marker="o", markersize=3, zorder=3, **look)
    chosen = f"chosen: {model.best_strength_:.3g}"
    ax.axvline(model.best_strength_, color="0.3", linestyle="dashed", linewidth=1.0, label=chosen)
    if np.all(strengths > 0):
        ax.set_xscale("log")
    if not ax.xaxis_inverted():
        ax.invert_xaxis()
    _write_counts(ax, strengths, model.n_selected_.mean(axis=0))
    ax.set_xlabel("strength")
    ax.set_ylabel("score")
    ax.legend(fontsize="small", frameon=False, loc="best")
    return ax


def _write_counts(ax: Any, strengths: Any, counts: Any) -> None:
    """Write the mean numbers of selected features above a few of the points."""
    top = ax.secondary_xaxis("top")
    chosen = np.unique(np.linspace(0, len(strengths) - 1, min(len(strengths), 6)).round().astype(int))
    top.set_xticks(strengths[chosen], [f"{count:.0f}" for count in counts[chosen]])
    top.minorticks_off()
    top.set_xlabel("features selected")
