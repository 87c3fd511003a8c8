"""The prox of an atom without a prox of its own: a CVXPY problem, compiled once for each shape and thread."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.lazy_cvxpy import cp

Array = NDArray[np.float64]
#: The tightest tolerances that work. With tighter ones, or with a warm start, Clarabel stalls more often.
ACCURACY = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
#: If Clarabel fails, the problem is solved in units of the largest entry to these powers, and if it is inaccurate, in
#: units of the largest entry. Units are rounded to powers of STEP, so that few problems are compiled.
POWERS, STEP = (0.25, 0.5, 0.75, 1.0), 32.0
#: The error of a default prox, relative to its argument, is estimated by the difference from a prox in units of
#: OTHER_UNIT times the largest entry, and by LEAST_ERROR if that is larger.
LEAST_ERROR, OTHER_UNIT = 1e-9, 8.0

_Shape = tuple[int, ...]
#: The idle problems of each atom, shape and unit. The key is the identity of the atom: atoms need not be hashable, and
#: they must not be pickled with their problems.
_IDLE: dict[int, tuple[Any, dict[tuple[_Shape, float], deque[_ProxProblem]]]] = {}


class NoProxError(ArithmeticError):
    """No prox was found, because the numbers are too large or too small for the cone solver."""


class _ProxProblem:
    """minimize over x   t f(x) + 1/2 ||x - v||^2, with parameters v and t, in units of ``size``.

    With x = size y this is t f(size y) / size^2 + 1/2 ||y - v / size||^2.
    """

    def __init__(self, atom: Any, shape: _Shape, size: float = 1.0) -> None:
        from cvxstructreg.runtime.quiet_problem import QuietProblem  # imports CVXPY

        self.size, self.accurate = size, False
        self.y, self.point, self.step = cp.Variable(shape), cp.Parameter(shape), cp.Parameter(nonneg=True)
        distance = 0.5 * cp.sum_squares(self.y - self.point)
        f = atom.expr(self.y) if size == 1.0 else atom.expr(size * self.y) / size**2
        self.problem = QuietProblem(cp.Minimize(self.step * f + distance))

    def minimiser(self, v: Array, t: float) -> Array:
        """The prox; sets ``accurate``, whether the solver claims its full accuracy."""
        self.point.value, self.step.value = v / self.size, t
        self.y.save_value(None)  # that of an earlier call
        limit = deadline.clarabel_limit()
        for accuracy in (ACCURACY, {}):
            with suppress(cp.SolverError):
                self.problem.solve(solver=cp.CLARABEL, warm_start=False, **accuracy, **limit)
            if self.problem.status == cp.USER_LIMIT:
                deadline.check()
            if self.y.value is not None:
                self.accurate = bool(accuracy) and self.problem.status == cp.OPTIMAL
                return self.size * np.array(self.y.value, dtype=float).reshape(v.shape)
        raise NoProxError(f"Clarabel ended with {self.problem.status!r}")


def default_prox(atom: Any, v: Array, t: float) -> Array:
    """argmin_x  t f(x) + 1/2 ||x - v||^2, from ``expr`` alone.

    If the solver fails or does not claim full accuracy, the problem is solved in other units, and the best point is
    taken.
    """
    found, accurate = _solved(atom, v, t)
    return found if accurate and found is not None else _best_of_units(atom, v, t, found)


def prox_with_error(atom: Any, v: Array, t: float) -> tuple[Array, float]:
    """The prox, and an estimate of its error relative to ||v||: round-off if the atom has a prox of its own.

    A default prox is computed once more in other units. The estimate is the distance of the two points: their errors
    are nearly independent, and with exponential cones and small numbers as large as 1e-3, whatever the solver claims.

    Examples
    --------
    >>> import cvxstructreg as csr
    >>> x, error = prox_with_error(csr.L1(), np.array([[3.0]]), 1.0)
    >>> x, error < 1e-14
    (array([[2.]]), True)
    """
    x = atom.prox(v, t)
    if atom.can("prox"):
        return x, UNIT
    again, _ = _solved(atom, v, t, OTHER_UNIT * _unit(v))
    if again is None:
        return x, np.inf
    return x, max(LEAST_ERROR, float(np.linalg.norm(x - again)) / (float(np.linalg.norm(v)) or 1.0))


def _solved(atom: Any, v: Array, t: float, size: float = 1.0) -> tuple[Array | None, bool]:
    """The prox computed in these units and whether it is accurate; None if the solver fails.

    A thread takes an idle problem from the pool, or makes a new one, and returns it when done. No two threads ever set
    the parameters of the same problem, and no thread waits for another.
    """
    idle = _idle_problems(atom, v.shape, size)
    try:
        problem = idle.pop()
    except IndexError:
        problem = _ProxProblem(atom, v.shape, size)
    try:
        found = problem.minimiser(v, t)
    except (NoProxError, cp.SolverError):
        return None, False
    idle.append(problem)  # not after an error, when its state is unknown
    return found, problem.accurate


def _best_of_units(atom: Any, v: Array, t: float, found: Array | None) -> Array:
    """The best of a point and the points found in other units, for entries of v that are far from 1."""

    def cost(x: Array) -> float:
        return float(t * atom.value(x) + 0.5 * np.sum((x - v) ** 2))

    best, lowest = found, np.inf if found is None else cost(found)
    for size in dict.fromkeys(_unit(v, power) for power in POWERS) if found is None else (_unit(v),):
        x, _ = _solved(atom, v, t, size) if size != 1.0 else (None, False)
        if x is not None and cost(x) < lowest:
            best, lowest = x, cost(x)
    if best is None:
        largest = float(np.abs(v).max(initial=0.0))
        raise NoProxError(f"Clarabel finds no prox of {atom!r} with t = {t:.3g} at entries up to {largest:.3g}")
    return best


def _unit(v: Array, power: float = 1.0) -> float:
    """The largest entry to a power, rounded to a power of STEP."""
    largest = float(np.abs(v).max(initial=0.0)) or 1.0
    return float(STEP ** round(power * np.log(largest) / np.log(STEP)))


def _idle_problems(atom: Any, shape: _Shape, size: float) -> deque[_ProxProblem]:
    key = id(atom)
    entry = _IDLE.get(key)
    if entry is None:
        # the entry is deleted together with the atom, before another object can have its id
        entry = _IDLE.setdefault(key, (ref(atom, lambda _: _IDLE.pop(key, None)), {}))
    return entry[1].setdefault((shape, size), deque())
