"""A lower bound of a whole cone program from the multipliers of an inexact solver.

    min over v of   c'v + 1/2 v'Pv + constant    subject to   b - A v in K

Every y in the dual cone and every z with ``A'y + P z + c = 0`` prove that the minimum is at least
``constant - b'y - 1/2 z'Pz``. The multipliers of a solver satisfy the equations only up to a residual. Least squares
move them onto the equations, which may leave the cone. Then the program is solved with the costs ``c + t A'e`` for a
small t and a point e inside the dual cone: if y belongs to these costs, ``y + t e`` belongs to c, and is farther inside
the cone than the residual. What is left in the equations is round-off, and is charged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from cvxstructreg.expressions.cone_program import ConeProgram
from cvxstructreg.expressions.cone_solver import ConeSolver
from cvxstructreg.expressions.dual_bound import LeastSquares, charged
from cvxstructreg.numerics.arrays import Array

#: The distances t from the border of the dual cone that are tried, relative to the largest multiplier.
DISTANCES = (1e-9, 1e-8, 1e-7, 1e-6)


@dataclass(frozen=True, eq=False)
class ConeMultipliers:
    """Multipliers of the cone program of a whole problem, which prove a lower bound of its optimum.

    Attributes
    ----------
    value : float
        The bound ``constant - b'y - 1/2 z'Pz``, less a charge for round-off.
    y, z : arrays
        A point of the dual cones and one with ``A'y + P z + c = 0``.
    program : ConeProgram
        With the attributes ``P``, ``c``, ``A``, ``b``, ``constant`` and ``cones``.
    """

    value: float
    y: Array
    z: Array
    program: ConeProgram


def proved_minimum(program: ConeProgram, v: Array, y: Array) -> ConeMultipliers | None:
    """Multipliers that prove a lower bound, from the point v and the multipliers y of a solver; None if none do."""
    equations = LeastSquares(sp.csc_array(sp.vstack([program.A, program.P], format="csc")))
    found = _proof(program, equations, y, v)
    if found is not None:
        return found
    solver, inside = ConeSolver(program, False), program.cones.dual_interior()
    size = float(np.abs(y).max(initial=0.0)) or 1.0
    for t in (distance * size for distance in DISTANCES):
        answer = solver.solve(program.c + t * (program.A.T @ inside))
        found = _proof(program, equations, answer.y + t * inside, answer.v) if answer.solved else None
        if found is not None:
            return found
    return None


def _proof(program: ConeProgram, equations: LeastSquares, y: Array, v: Array) -> ConeMultipliers | None:
    """The pair nearest to (y, v) that satisfies the equations, if it is in the cone."""
    pair = equations.nearest(np.concatenate([y, v]), -program.c)
    y, z = pair[: y.size], pair[y.size :]
    if not np.isfinite(pair).all() or not program.cones.dual_contains(y):
        return None
    bound = -charged(program, y, z, program.c, v)
    return None if bound == -np.inf else ConeMultipliers(bound, y, z, program)
