"""A primal-dual interior point method for min 1/2 sum_i s_i (w_i - y_i)^2 + ||Kw||_1 with a banded K.

The dual problem is a box: w = y - K't / s with |t| <= 1 (Kim, Koh, Boyd and Gorinevsky 2009). With the slacks 1 - t and
1 + t and multipliers z1, z2 of them, the steps solve

    s (w - y) + K't = 0,     Kw = z1 - z2,     z1 (1 - t) = z2 (1 + t) = mu

for smaller and smaller mu, by the predictor and corrector of Mehrotra (1992). Each step takes time linear in n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.solvers.denoising.banded_systems import NormalEquations, SaddlePoint

#: The part of the way to the boundary that a step goes.
INSIDE = 0.99
#: The first multipliers exceed their least values by this part of the mean of |Ky|.
CENTRAL = 0.1
#: The normal equations are used while their round-off is at most this part of the tolerance, relative to the objective.
TRUSTED = 0.3
#: The part of the tolerance that the gap may take before round-off is counted.
MARGIN = 0.8
#: From this many rows on, steps by the normal equations are compiled.
COMPILE_FROM = 3_000
#: A step that leaves more than this part of the gap is poor; after so many in a row the method has stalled.
POOR, MOST_POOR = 0.9, 4


class InteriorPoint:
    """One column: the best weights and the best dual point so far, and the current point of the method."""

    def __init__(self, K: Any, s: Array, y: Array, tol: float) -> None:
        self.K, self.transposed, self.s, self.y, self.tol = K, K.T, s, y, tol
        m = K.shape[0]
        slope = K @ y
        central = CENTRAL * float(np.mean(np.abs(slope))) + np.finfo(float).tiny
        self.w, self.t, self.pull = y, np.zeros(m), np.zeros(len(y))
        self.slacks = np.ones((2, m))  # 1 - t and 1 + t, kept to full relative accuracy
        self.z = np.maximum([slope, -slope], 0.0) + central
        self.value, self.bound, self.poor = np.inf, -np.inf, 0
        self.best, self.dual = self.w, self.t
        self.known: tuple[float, float] | None = None  # both objectives, if compiled loops have them
        self._measure()
        self.system: NormalEquations | SaddlePoint = SaddlePoint(K, s) if self._is_delicate() else NormalEquations(K, s)

    @property
    def gap(self) -> float:
        """The difference of the objective of the best weights and the best dual objective."""
        return self.value - self.bound

    @property
    def done(self) -> bool:
        """Whether the gap is within the tolerance, with a margin for round-off."""
        return self.gap <= MARGIN * self.tol * abs(self.value)

    def _is_delicate(self) -> bool:
        """Whether round-off in K'K t matters: t of the normal equations is exact relative to |t| only."""
        sizes = np.abs(self.K.data)
        each = float(np.max(np.bincount(self.K.indices, sizes, len(self.s)) / self.s))
        least = 0.5 * float(np.sum(self.s * (self.y - self.y.mean()) ** 2))
        return UNIT * each * float(sizes.sum()) > TRUSTED * self.tol * min(least, self.value)

    def _objectives(self) -> tuple[float, float]:
        """Kw, the objective of the weights, and that of the dual point."""
        self.slope = self.K @ self.w
        value = 0.5 * float(np.sum(self.s * (self.w - self.y) ** 2)) + float(np.abs(self.slope).sum())
        return value, float(self.pull @ self.y) - 0.5 * float(self.pull @ (self.pull / self.s))

    def _measure(self) -> None:
        """Update the best weights and the best dual point."""
        before = self.gap if np.isfinite(self.value) else np.inf
        value, bound = self.known or self._objectives()
        if value < self.value:
            self.value, self.best = value, self.w
        if bound > self.bound:
            self.bound, self.dual = bound, self.t
        self.poor = 0 if self.gap < POOR * before else self.poor + 1

    def step(self) -> bool:
        """Predictor and corrector; False if the method makes no more progress."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            moved = self._move()
        if moved:
            self._measure()
        return (moved and self.poor < MOST_POOR) or self._with_pivots()

    def _with_pivots(self) -> bool:
        """Go on with the more accurate system; False if it is in use."""
        if isinstance(self.system, SaddlePoint):
            return False
        self.system, self.poor = SaddlePoint(self.K, self.s), 0
        return True

    def _move(self) -> bool:
        """Move to the next point; False if there is no factorisation, or if the point is not finite."""
        if isinstance(self.system, NormalEquations) and len(self.t) >= COMPILE_FROM:
            return self._move_compiled(self.system)
        if not self.system.factorise((self.z / self.slacks).sum(axis=0)):
            return False
        products = self.z * self.slacks
        mu = float(products.mean())
        self.ratios, self.inverse = self.z / self.slacks, 1.0 / self.slacks
        if isinstance(self.system, SaddlePoint):
            self.residual = self.s * (self.w - self.y) + self.pull
        _, steps, dz = self._direction(-products)
        length = self._length(steps, dz)
        ahead = float(((self.z + length * dz) * (self.slacks + length * steps)).mean())
        dw, steps, dz = self._direction((ahead / mu) ** 3 * mu - products - steps * dz)
        length = min(1.0, INSIDE * self._length(steps, dz))
        slacks, z = self.slacks + length * steps, self.z + length * dz
        if not (length > 0.0 and np.isfinite(z).all() and slacks.min() > 0.0):
            return False
        self.slacks, self.z = slacks, z
        self._arrive(None if dw is None else self.w + length * dw)
        return True

    def _move_compiled(self, system: NormalEquations) -> bool:
        """The same by the normal equations, compiled."""
        from cvxstructreg.solvers.denoising.compiled_box import arrive, move

        slacks, z = self.slacks.copy(), self.z.copy()
        if not move(system.by_rows, self.slope, z, slacks, INSIDE, system.workspace) or not slacks.min() > 0.0:
            return False
        self.slacks, self.z = slacks, z
        if system.rows is None:
            self._arrive(None)
            return True
        self.t, self.pull, self.w, self.slope = (np.empty_like(x) for x in (self.t, self.y, self.y, self.slope))
        self.known = arrive(system.rows, self.s, self.y, slacks, self.t, self.pull, self.w, self.slope)
        return True

    def _arrive(self, w: Array | None) -> None:
        """The dual point of the slacks, and the weights w, which the normal equations give as y - K't / s."""
        self.t = np.where(self.slacks[0] < self.slacks[1], 1.0 - self.slacks[0], self.slacks[1] - 1.0)
        self.pull = self.transposed @ self.t
        self.w = self.y - self.pull / self.s if w is None else w
        self.known = None

    def _direction(self, target: Array) -> tuple[Array | None, Array, Array]:
        """The Newton step for products of multipliers and slacks that change by ``target``: dw, and of both slacks."""
        wanted = target * self.inverse
        g = self.slope - self.z[0] + self.z[1] - wanted[0] + wanted[1]
        dw = None
        if isinstance(self.system, SaddlePoint):
            dw, dt = self.system.solve(self.residual, g)
        else:
            dt = self.system.solve(g)
        steps = np.stack([-dt, dt])
        return dw, steps, wanted - self.ratios * steps

    def _length(self, steps: Array, dz: Array) -> float:
        """The longest step, up to 1, that leaves slacks and multipliers nonnegative."""
        steepest = -min(float((steps * self.inverse).min()), float((dz / self.z).min()))
        return 1.0 / max(1.0, steepest) if np.isfinite(steepest) else 0.0
