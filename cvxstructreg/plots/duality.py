"""Plot of primal and dual values that close in on the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxstructreg.certificates.null_point import null_point
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Record, Solution
from cvxstructreg.plots.canvas import MARKERS, axes_for, line_look
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers import InaccurateWarning

#: The picture ends this many times the first distance of the objective from the optimum below the optimum.
BELOW = 1.5


def duality(
    problem: Problem, history: Solution | Sequence[Record] | None = None, x: str = "iterations", ax: Any = None
) -> Any:
    """Plot the best objective and the best lower bound so far: the optimum lies in the shaded area between them.

    Parameters
    ----------
    problem : Problem
        The problem that was solved.
    history : Solution or sequence of Record, optional
        A solution, its ``history``, or the result of :func:`cvxstructreg.trace`. By default the problem is solved by
        the first-order solver that accepts it, because fast solvers need only a few iterations.
    x : str
        "iterations", or "seconds" without those of compilation.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> problem = csr.Problem(csr.Linear([[1.0], [2.0], [4.0]]), csr.Squared([1.0, 3.0, 4.0]) + csr.L1())
    >>> ax = duality(problem, problem.solve("fista"))
    >>> [line.get_label() for line in ax.get_lines()]
    ['objective', 'lower bound', 'zero weights']
    """
    if x not in ("seconds", "iterations"):
        raise ValueError(f"x must be 'seconds' or 'iterations', got {x!r}")
    records = list(_records(problem, history))
    records = [r for r in records if r.certificate.kind != "kkt" and np.isfinite(r.objective)]
    if not records:
        raise ValueError("the history has no certificate with a lower bound; only a duality gap can be drawn")
    places = [float(r.n_iter) if x == "iterations" else r.time - r.compiling for r in records]
    primal = np.minimum.accumulate([r.objective for r in records])
    dual = np.maximum.accumulate([r.certificate.lower_bound for r in records])
    ax = axes_for(ax, figsize=(6.0, 4.2))
    for number, (values, label) in enumerate(((primal, "objective"), (dual, "lower bound"))):
        look = {**line_look(number), "marker": MARKERS[number], "markersize": 3}
        ax.plot(places, np.where(np.isfinite(values), values, np.nan), label=label, **look)
    shown = np.where(np.isfinite(dual), dual, np.nan)
    ax.fill_between(places, shown, primal, color="0.6", alpha=0.25, linewidth=0.0)
    null = null_point(problem).objective
    ax.axhline(null, color="0.5", linestyle="dotted", linewidth=1.0, label="zero weights")
    top, best = max(float(primal[0]), null), float(primal[-1])
    height = (top - best) or abs(best) or 1.0
    ax.set_ylim(max(float(np.nanmin(shown)), best - BELOW * height) - 0.05 * height, top + 0.05 * height)
    ax.set_xlabel("iterations" if x == "iterations" else "seconds, without compilation")
    ax.set_ylabel("value")
    ax.set_title(_bounds(float(dual[-1]), float(primal[-1])), fontsize="medium")
    ax.legend(fontsize="small", frameon=False)
    return ax


def _bounds(low: float, high: float) -> str:
    """Both bounds with enough digits to tell them apart, 12 at most."""
    for digits in range(6, 13):
        texts = f"{low:.{digits}g}", f"{high:.{digits}g}"
        if texts[0] != texts[1]:
            return f"optimum between {texts[0]} and {texts[1]}"
    return f"optimum {high:.12g}"


def _records(problem: Problem, history: Solution | Sequence[Record] | None) -> Sequence[Record]:
    if isinstance(history, Solution):
        return history.history
    if history is not None:
        return history
    with muted(InaccurateWarning):
        return problem.solve(_slow_solver(problem), callback=lambda record: None).history


def _slow_solver(problem: Problem) -> str:
    """Return a solver with many iterations that accepts the problem."""
    from cvxstructreg.solvers import registry

    names = [solver.name for solver in registry.accepting(problem)]
    return next((name for name in ("fista", "admm") if name in names), "auto")
