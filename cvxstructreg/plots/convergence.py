"""Plot of the certified gap against time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cvxstructreg.core.solution import Solution
from cvxstructreg.plots.canvas import MARKERS, axes_for, line_look

#: Gaps of zero are plotted at this value.
FLOOR = 1e-16


def convergence(
    solutions: Solution | Sequence[Solution] | Mapping[str, Solution], tol: float | None = None, ax: Any = None
) -> Any:
    """Plot the smallest certified relative gap so far against time, one line for each solution.

    Parameters
    ----------
    solutions : Solution, list or dict of label to Solution
        Solutions of one problem by several solvers; the labels of a list are the names of the solvers. Fast solvers
        are rarely certified before they stop; pass a ``callback`` or ``verbose=True`` to ``solve`` for more points.
    tol : float, optional
        A tolerance to mark.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> X, y = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 2.0, 3.0]
    >>> problem = csr.Problem(csr.Linear(X), csr.Squared(y) + csr.L1())
    >>> ax = convergence([problem.solve("fista"), problem.solve("admm")], tol=1e-6)
    >>> [line.get_label() for line in ax.get_lines()]
    ['fista', 'admm', 'tolerance 1e-06']
    """
    if isinstance(solutions, Solution):
        solutions = [solutions]
    items = list(
        solutions.items() if isinstance(solutions, Mapping) else ((solution.solver, solution) for solution in solutions)
    )
    if not items:
        raise ValueError("solutions is empty; give at least one Solution")
    ax = axes_for(ax, figsize=(6.4, 4.2))
    for number, (label, solution) in enumerate(items):
        times = [record.time for record in solution.history] + [solution.time]
        gaps = [record.certificate.error for record in solution.history] + [solution.certificate.error]
        # the smallest gap so far; infinite gaps are not plotted
        best = np.fmin.accumulate(np.where(np.isfinite(gaps), gaps, np.nan))
        look = {**line_look(number), "marker": MARKERS[number % len(MARKERS)], "markersize": 4}
        ax.plot(times, np.maximum(best, FLOOR), label=label, **look)
    if tol is not None:
        ax.axhline(tol, color="0.3", linestyle="--", linewidth=1.0, label=f"tolerance {tol:.0e}")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("seconds")
    ax.set_ylabel("certified relative gap")
    ax.grid(color="0.9", linewidth=0.5)
    ax.set_axisbelow(True)
    ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax
