"""Plot of the certified gap against time or iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxstructreg.core.solution import Solution
from cvxstructreg.plots.canvas import MARKERS, axes_for, line_look
from cvxstructreg.verification.report import Report

#: Gaps of zero are plotted at this value.
FLOOR = 1e-16
#: Times below so many seconds are plotted there.
SOONEST = 1e-6


def convergence(solutions: Any, tol: float | None = None, ax: Any = None, x: str = "seconds") -> Any:
    """Plot the smallest certified relative gap so far against time, one line for each solution.

    Parameters
    ----------
    solutions : Solution, Report, list or dict of label to Solution
        Solutions of one problem by several solvers; the labels of a list are the names of the solvers. A report of
        :func:`cvxstructreg.verify` has one solution for each solver, and :func:`cvxstructreg.trace` makes one from any
        sequence of weights. Fast solvers are rarely certified before they stop; pass a ``callback`` or ``verbose=True``
        to ``solve`` for more points.
    tol : float, optional
        A tolerance to mark.
    ax : matplotlib Axes, optional
    x : str
        "seconds", without those of compilation, or "iterations".

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> X, y = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], [1.0, 2.0, 3.0]
    >>> problem = csr.Problem(csr.Linear(X), csr.Squared(y) + csr.L1())
    >>> ax = convergence([problem.solve("fista"), problem.solve("admm")], tol=1e-6)
    >>> [line.get_label() for line in ax.get_lines()]
    ['fista', 'admm', 'tolerance 1e-06']
    """
    if x not in ("seconds", "iterations"):
        raise ValueError(f"x must be 'seconds' or 'iterations', got {x!r}")
    items = _labelled(solutions)
    ax = axes_for(ax, figsize=(6.4, 4.2))
    for number, (label, solution) in enumerate(items):
        places = _places(solution, x)
        gaps = [record.certificate.error for record in solution.history] + [solution.certificate.error]
        # the smallest gap so far; infinite gaps are not plotted
        best = np.fmin.accumulate(np.where(np.isfinite(gaps), gaps, np.nan))
        look = {**line_look(number), "marker": MARKERS[number % len(MARKERS)], "markersize": 4}
        ax.plot(places, np.maximum(best, FLOOR), label=label, **look)
    if tol is not None:
        ax.axhline(tol, color="0.3", linestyle="--", linewidth=1.0, label=f"tolerance {tol:.0e}")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("iterations" if x == "iterations" else "seconds, without compilation")
    ax.set_ylabel("certified relative gap")
    ax.grid(color="0.9", linewidth=0.5)
    ax.set_axisbelow(True)
    ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return ax


def _labelled(solutions: Any) -> list[tuple[str, Solution]]:
    """Return pairs of a label and a solution; rows of a report without time are left out."""
    if isinstance(solutions, Solution):
        solutions = [solutions]
    if isinstance(solutions, Report):
        solutions = {name: found for name, found in solutions.solutions.items() if not np.isnan(found.time)}
    pairs = solutions.items() if isinstance(solutions, Mapping) else ((found.solver, found) for found in solutions)
    items = list(pairs)
    if not items:
        raise ValueError("solutions is empty; give at least one Solution")
    return items


def _places(solution: Solution, x: str) -> list[float]:
    """Return the iterations or seconds of all records and of the solution."""
    if x == "iterations":
        return [float(max(record.n_iter, 1)) for record in solution.history] + [float(max(solution.n_iter, 1))]
    times = [record.time - record.compiling for record in solution.history] + [solution.time - solution.compiling]
    return [max(time, SOONEST) for time in times]
