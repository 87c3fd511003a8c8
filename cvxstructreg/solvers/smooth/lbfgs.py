"""L-BFGS with diagonal scaling: a simple second solver for smooth losses plus quadratic penalties.

The two-loop recursion of Nocedal (1980) in the coordinates v = diag(H)^(1/2) theta, where H is the Hessian at an early
point. The line search is a Newton method in one variable. ``scaled=False`` gives the plain method used in papers.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import SmoothWeights
from cvxstructreg.solvers.smooth.curvature import Curvature
from cvxstructreg.solvers.smooth.preconditioners import inverse_root
from cvxstructreg.solvers.smooth.smooth_objective import NEEDS, SmoothObjective, Span, State
from cvxstructreg.solvers.solver import Solver

#: Iterations at which the weights are rescaled: the curvature at the start is far from that at the optimum.
RESCALE_AT = (10, 40)
#: A floor of the curvature, relative to that at zero scores. The squared hinge has no curvature where margins are met.
LEAST_CURVATURE = 1e-6
#: Pairs of a smaller curvature, relative to the sizes of both, are round-off: their inverse would overflow.
LEAST_PAIR = 1e-15


def run(problem: Problem, start: Iterate, tol: float, memory: int = 10, scaled: bool = True) -> Iterator[Iterate]:
    """``memory`` is the number of correction pairs; ``scaled`` says whether weights are scaled by the curvature."""
    if memory < 1:
        raise ValueError(f"memory must be at least 1, got {memory}")
    objective = SmoothObjective(problem)
    at = objective.state(start.theta.copy(), start.b.copy())
    least = LEAST_CURVATURE * _diagonal(objective, objective.state(np.zeros_like(at.theta), np.zeros_like(at.b)))
    scaling = _scaling(objective, at, least) if scaled else None
    pairs: deque[tuple[Array, Array]] = deque(maxlen=memory)
    value, gradient = objective.value(at), _pulled(objective, at, scaling)
    for count in itertools.count(1):
        if scaled and count in RESCALE_AT:
            scaling = _scaling(objective, at, least)
            gradient = _pulled(objective, at, scaling)
            pairs.clear()
        direction = -_inverse_times(pairs, gradient)
        step = objective.state(*_unpacked(direction, scaling))
        span = Span(objective, at, value, [step])
        move = span.minimise(max_steps=4)
        if not span.best < value:
            if not pairs:
                yield Iterate(at.theta, at.b, exhausted=True)
                return
            pairs.clear()  # restart with the gradient
            continue
        at, value, before = objective.state(at.theta + move.theta, at.b + move.b), span.best, gradient
        gradient = _pulled(objective, at, scaling)
        change = gradient - before
        if np.vdot(direction, change) > LEAST_PAIR * np.linalg.norm(direction) * np.linalg.norm(change):
            pairs.append((span.shares[0] * direction, change))
        yield Iterate(at.theta, at.b)


def _scaling(objective: SmoothObjective, at: State, least: Array) -> Array:
    """diag(H)^(-1/2) at a point, with the intercepts as a last row."""
    diagonal = np.maximum(_diagonal(objective, at), least)
    return np.vstack([inverse_root(diagonal[:-1]), inverse_root(diagonal[-1:])])


def _diagonal(objective: SmoothObjective, at: State) -> Array:
    """diag(H) at a point, with the intercepts as a last row."""
    return np.vstack(Curvature(objective, at).diagonal())


def _pulled(objective: SmoothObjective, at: State, scaling: Array | None) -> Array:
    """The gradient in the scaled coordinates, with the intercepts as a last row."""
    gradient = np.vstack(objective.gradient(at))
    return gradient if scaling is None else scaling * gradient


def _unpacked(x: Array, scaling: Array | None) -> tuple[Array, Array]:
    """The weights and intercepts for a point in scaled coordinates."""
    x = x if scaling is None else scaling * x
    return x[:-1], x[-1]


def _inverse_times(pairs: deque[tuple[Array, Array]], g: Array) -> Array:
    """The two-loop recursion: the inverse Hessian, approximated by pairs (step, change of gradient), times g."""
    q = g.copy()
    shares = []
    for s, y in reversed(pairs):
        share = np.vdot(s, q) / np.vdot(s, y)
        q -= share * y
        shares.append(share)
    if pairs:
        s, y = pairs[-1]
        q *= np.vdot(s, y) / np.vdot(y, y)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        q += (share - np.vdot(y, q) / np.vdot(s, y)) * s
    return q


SOLVER = Solver("lbfgs", run, (NEEDS[0], SmoothWeights(("grad",))), baseline=True, by_passes=True)
