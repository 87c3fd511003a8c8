"""Plots of single functions: the proximal operator, and the function with its conjugate."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Term
from cvxstructreg.plots.canvas import axes_for, line_look
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.runtime.quiet_problem import QuietProblem

#: Number of points of a curve, and of a conjugate that CVXPY computes.
POINTS, FEWER_POINTS = 241, 49


def prox(
    atom: Atom | Term,
    t: float | Sequence[float] = (0.5, 1.0, 2.0),
    direction: Any = None,
    point: Any = None,
    reach: float = 4.0,
    ax: Any = None,
) -> Any:
    """Plot the proximal operator along a line: one coordinate of prox(v, t) against that of v, for several t.

    The dotted line is the identity. The prox of L1 is flat at zero (weights become exactly zero), that of a ridge is a
    flatter line (weights shrink).

    Parameters
    ----------
    atom : Atom or Term
        The function, such as ``L1()`` or ``2.0 * GroupLasso(groups)``.
    t : float or sequence of floats
        The step sizes.
    direction, point : arrays, optional
        The line v = point + s * direction; by default through zero along the first coordinate. Coordinates are
        measured along the direction.
    reach : float
        The largest s.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> ax = prox(csr.L1(), t=1.0)
    >>> line = ax.get_lines()[0]
    >>> float(line.get_ydata()[-1]), line.get_label()
    (3.0, 't = 1')
    """
    line = _Line(atom, direction, point, reach)
    ax = axes_for(ax, figsize=(4.8, 4.2))
    for number, step in enumerate(np.atleast_1d(np.asarray(t, dtype=float))):
        if not step > 0:
            raise ValueError(f"t must be positive, got {step:g}")
        values = [line.coordinate(atom.prox(line.at(s), float(step))) for s in line.steps]
        ax.plot(line.places, values, label=f"t = {step:g}", **line_look(number))
    ax.plot(line.places, line.places, color="0.5", linestyle="dotted", linewidth=1.0, label="v")
    _finish(ax, f"prox of {_short(atom)}", "v", "prox(v, t)")
    return ax


def conjugate(
    atom: Atom | Term, direction: Any = None, reach: float = 4.0, n_points: int = POINTS, ax: Any = None
) -> Any:
    """Plot a function f and its conjugate f*(u) = max_z <u, z> - f(z) along a line through zero.

    Dashed vertical lines are the ends of the domain of the conjugate, beyond which it is infinite. A bound on the
    optimum needs dual points inside.

    Parameters
    ----------
    atom : Atom or Term
        The function. If it defines neither ``conj`` nor ``dual_norm``, CVXPY computes its conjugate, at fewer points.
    direction : array, optional
        The line; by default along the first coordinate.
    reach : float
        The curves are drawn from minus to plus this number.
    n_points : int
        Number of points of each curve.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> ax = conjugate(csr.L1())
    >>> [line.get_label() for line in ax.get_lines()][:2]
    ['f(z)', 'f*(u)']
    """
    term = atom if isinstance(atom, Term) else Term(atom, 1.0, atom.target)
    known = term.atom.can("conj") or term.atom.can("dual_norm")
    line = _Line(atom, direction, None, reach, n_points if known else min(n_points, FEWER_POINTS))
    values = np.array([term.value(line.at(s)) for s in line.steps])
    conj = np.array([term.conj(line.at(s)) for s in line.steps] if known else _by_cvxpy(term, line))
    ax = axes_for(ax, figsize=(4.8, 4.2))
    for number, (numbers, label) in enumerate(((values, "f(z)"), (conj, "f*(u)"))):
        ax.plot(line.places, np.where(np.isfinite(numbers), numbers, np.nan), label=label, **line_look(number))
    inside = np.flatnonzero(np.isfinite(conj))
    for end, beyond in ((inside[:1], 0), (inside[-1:], len(conj) - 1)):
        if end.size and end[0] != beyond:
            ax.axvline(line.places[end[0]], color=line_look(1)["color"], linestyle="dashed", linewidth=1.0)
    _finish(ax, f"{_short(atom)} and its conjugate", "z, u", "value")
    return ax


def _by_cvxpy(term: Term, line: _Line) -> list[float]:
    """Return the values max_z <u, z> - f(z) at the points of a line; infinite where CVXPY finds no maximum."""
    z, u = cp.Variable(line.unit.shape), cp.Parameter(line.unit.shape)
    problem = QuietProblem(cp.Maximize(cp.sum(cp.multiply(u, z)) - term.expr(z)))
    found = []
    for s in line.steps:
        u.value = line.at(s)
        with contextlib.suppress(cp.SolverError):
            problem.solve(solver=cp.CLARABEL)
        solved = problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
        found.append(float(problem.value) if solved else np.inf)
    return found


class _Line:
    """Points along a line in the space of an atom, and coordinates along it."""

    def __init__(self, atom: Any, direction: Any, point: Any, reach: float, n_points: int = POINTS) -> None:
        if not isinstance(atom, Atom | Term):
            raise TypeError(f"expected an atom such as L1(), got {type(atom).__name__}")
        if not 0 < reach < np.inf:
            raise ValueError(f"reach must be positive, got {reach!r}")
        shape = _shape(atom.atom if isinstance(atom, Term) else atom, direction)
        along = np.zeros(shape)
        along.flat[0] = 1.0
        if direction is not None:
            along = np.asarray(direction, dtype=float).reshape(shape)
        if not along.any():
            raise ValueError("direction must not be zero")
        self.origin = np.zeros(shape) if point is None else np.asarray(point, dtype=float).reshape(shape)
        self.unit = along / np.linalg.norm(along)
        self.steps = np.linspace(-reach, reach, n_points)
        self.places = self.steps + self.coordinate(self.origin)

    def at(self, s: float) -> Any:
        """Return the point at s."""
        return self.origin + s * self.unit

    def coordinate(self, x: Any) -> float:
        """Return the coordinate of a point along the line."""
        return float(np.vdot(self.unit, x))


def _shape(atom: Atom, direction: Any) -> tuple[int, int]:
    if isinstance(atom, Loss):
        return len(atom.y), atom.n_outputs
    if direction is not None:
        given = np.asarray(direction, dtype=float)
        return (given.size, 1) if given.ndim <= 1 else (given.shape[0], given.shape[1])
    return (1 if atom.size is None else atom.size), 1


def _short(atom: Any) -> str:
    text = repr(atom)
    return text if len(text) <= 40 else type(atom.atom if isinstance(atom, Term) else atom).__name__


def _finish(ax: Any, title: str, x: str, y: str) -> None:
    ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    ax.axvline(0.0, color="0.8", linewidth=0.8, zorder=0)
    ax.set_title(title)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.legend(fontsize="small", frameon=False)
