"""The prox of an atom without a prox of its own: a CVXPY problem, compiled once for each shape and thread."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any
from weakref import ref

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.quiet import QuietProblem

Array = NDArray[np.float64]
#: The tightest tolerances that work. With tighter ones, or with a warm start, Clarabel stalls more often.
ACCURACY = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
#: If Clarabel fails, the problem is solved in units of the largest entry to these powers.
POWERS = (0.25, 0.5, 0.75, 1.0)

_Shape = tuple[int, ...]
#: The idle problems of each atom and shape. The key is the identity of the atom: atoms need not be hashable, and they
#: must not be pickled with their problems.
_IDLE: dict[int, tuple[Any, dict[_Shape, deque[_ProxProblem]]]] = {}


class _ProxProblem:
    """minimize over x   t f(x) + 1/2 ||x - v||^2, with parameters v and t."""

    def __init__(self, atom: Any, shape: _Shape) -> None:
        self.x, self.point, self.step = cp.Variable(shape), cp.Parameter(shape), cp.Parameter(nonneg=True)
        distance = 0.5 * cp.sum_squares(self.x - self.point)
        self.problem = QuietProblem(cp.Minimize(self.step * atom.expr(self.x) + distance))

    def minimiser(self, v: Array, t: float) -> Array:
        self.point.value, self.step.value = v, t
        self.x.save_value(None)  # that of an earlier call
        limit = deadline.clarabel_limit()
        for accuracy in (ACCURACY, {}):
            with suppress(cp.SolverError):
                self.problem.solve(solver=cp.CLARABEL, warm_start=False, **accuracy, **limit)
            if self.problem.status == cp.USER_LIMIT:
                deadline.check()
            if self.x.value is not None:
                return np.array(self.x.value, dtype=float).reshape(v.shape)
        raise cp.SolverError(f"Clarabel ended with {self.problem.status!r}")


class _Rescaled:
    """f(size y) / size^2 as a function of y: its prox at v / size is that of f at v, divided by size."""

    def __init__(self, atom: Any, size: float) -> None:
        self.atom, self.size = atom, size

    def expr(self, y: cp.Expression) -> cp.Expression:
        return self.atom.expr(self.size * y) / self.size**2


def default_prox(atom: Any, v: Array, t: float) -> Array:
    """argmin_x  t f(x) + 1/2 ||x - v||^2, from ``expr`` alone.

    A thread takes an idle problem from the pool, or makes a new one, and returns it when done. No two threads ever set
    the parameters of the same problem, and no thread waits for another.
    """
    idle = _idle_problems(atom, v.shape)
    try:
        problem = idle.pop()
    except IndexError:
        problem = _ProxProblem(atom, v.shape)
    try:
        found = problem.minimiser(v, t)
    except cp.SolverError:
        return _in_other_units(atom, v, t)
    idle.append(problem)  # not after an error, when its state is unknown
    return found


def _in_other_units(atom: Any, v: Array, t: float) -> Array:
    """The best of the points found in other units, for entries of v that are far from 1.

    Points that the solver calls inaccurate do for an atom with a conjugate, since its bounds do not rely on the prox.
    """
    largest, best, lowest = float(np.abs(v).max(initial=0.0)) or 1.0, None, np.inf
    rough = atom.can("conj") or atom.can("dual_norm")
    for size in (largest**power for power in POWERS):
        with suppress(cp.SolverError):
            scaled = _ProxProblem(_Rescaled(atom, size), v.shape)
            x = size * scaled.minimiser(v / size, t)
            cost = t * atom.value(x) + 0.5 * float(np.sum((x - v) ** 2))
            if cost < lowest and (rough or scaled.problem.status == cp.OPTIMAL):
                best, lowest = x, cost
    if best is None:
        raise cp.SolverError(f"Clarabel finds no prox of {atom!r} with t = {t:.3g} at entries up to {largest:.3g}")
    return best


def _idle_problems(atom: Any, shape: _Shape) -> deque[_ProxProblem]:
    key = id(atom)
    entry = _IDLE.get(key)
    if entry is None:
        # the entry is deleted together with the atom, before another object can have its id
        entry = _IDLE.setdefault(key, (ref(atom, lambda _: _IDLE.pop(key, None)), {}))
    return entry[1].setdefault(shape, deque())
