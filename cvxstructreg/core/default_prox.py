"""The prox of an atom without a prox of its own: a CVXPY problem, compiled once for each shape and thread."""

from __future__ import annotations

from collections import deque
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
        limit = deadline.clarabel_limit()
        try:
            self.problem.solve(solver=cp.CLARABEL, warm_start=False, **ACCURACY, **limit)
        except cp.SolverError:
            self.problem.solve(solver=cp.CLARABEL, warm_start=False, **limit)
        if self.problem.status == cp.USER_LIMIT:
            deadline.check()
        return np.array(self.x.value, dtype=float).reshape(v.shape)


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
    found = problem.minimiser(v, t)
    idle.append(problem)  # not after an error, when its state is unknown
    return found


def _idle_problems(atom: Any, shape: _Shape) -> deque[_ProxProblem]:
    key = id(atom)
    entry = _IDLE.get(key)
    if entry is None:
        # the entry is deleted together with the atom, before another object can have its id
        entry = _IDLE.setdefault(key, (ref(atom, lambda _: _IDLE.pop(key, None)), {}))
    return entry[1].setdefault(shape, deque())
