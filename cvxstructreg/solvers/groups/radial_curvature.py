"""How much curvature along itself each group keeps in Newton's method: much while its direction still turns.

Outside its ball, the Huber function of a group has the Hessian h (I - u u') with the unit vector u of a = y + sigma w:
no curvature along u. A long step then goes through zero, where the model is wrong, and the line search cuts it short.
So q is a variable of its own here. It follows its linearised equation, as in the primal-dual method of Chan, Golub and
Mulet (1999) for total variation,

    q' = q + s (c (u + da) - q - q <u, da>),     da = sigma dw / ||a||,     s the length of the step,

and is moved into its ball. The Hessian is h (I - max(0, <q, u> / c)^2 u u'), which becomes the true one when q and c u
agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxstructreg.numerics.arrays import Array

if TYPE_CHECKING:
    from cvxstructreg.solvers.groups.group_subproblem import Ints


class RadialCurvature:
    """The dual variables q / c of the groups, with arguments as in :mod:`compiled_huber`."""

    def __init__(self, huber: tuple[Ints, Ints, Array, Array, Array]) -> None:
        from cvxstructreg.solvers.groups import compiled_huber as compiled

        self.huber, self.compiled = huber, compiled
        indptr, _, radii, _, y = huber
        self.q, self.a = y / np.repeat(radii, np.diff(indptr)), np.zeros_like(y)

    def agreement(self, w: Array, position: Ints) -> Array:
        """max(0, <q, u> / c)^2 of the groups in the list of ``huber_curvature`` for the same arguments."""
        out = np.empty(len(self.huber[2]))
        return out[: self.compiled.agreement(*self.huber, w, position, self.q, self.a, out)]

    def follow(self, step: Array, length: float) -> None:
        """Move q by this length of a step from the last point whose agreement was asked for."""
        self.compiled.follow(*self.huber[:4], self.a, step, min(length, 1.0), self.q)
