"""Conjugate gradients for one Newton step, and an average of their steps with a small residual.

The objective falls fastest along the steps of conjugate gradients, but their residual, of which a certificate is made,
jumps up and down. *Residual smoothing* (Schoenauer 1987; Zhou and Walker 1994) averages the steps so that the residual
only falls: it is several times smaller where convergence is slow, for a few passes over vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.units import power_of_two
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.smooth.curvature import Curvature
from cvxstructreg.solvers.smooth.preconditioners import Diagonal, coordinates

#: Conjugate gradients that have to reduce the residual by less than this work in single precision, at half the memory
#: traffic; what round-off leaves is for the next Newton step, whose gradient is in double precision. So do those whose
#: patience is above LEAST_PATIENCE: they end before round-off matters.
LEAST_SINGLE, LEAST_PATIENCE = 1e-4, 0.05
#: The largest and the inverse of the smallest diagonal of the Hessian, typically, for which they may.
SINGLE_RANGE = 1e32
#: Multiplications in one call of compiled code, from which an interrupt has to wait for the return.
AT_ONCE = 50_000_000
#: Outside compiled loops (several outputs, small or dense data), and in those of fewer than SMALL multiplications for a
#: step, a Newton step costs several products beside its conjugate gradients, which take at least so many steps then.
LEAST_STEPS, SMALL = 4, 200_000
#: Up to so many steps for one output, two must gain little before they end.
FEW_STEPS = 20

#: A residual below this many units of round-off of the first one has no digits left, and a curvature below FLAT, where
#: the diagonal of the Hessian is one, is round-off: steps along such directions run off to infinity.
ROUND_OFF, FLAT = 10.0, float(np.finfo(float).eps)

#: Given (accuracy, patience), the step so far, the average and the residual of the average.
Loop = Generator[tuple[Array, Array, Array], tuple[float, float], None]


class NewtonStep:
    """H s = -g by conjugate gradients in coordinates v, s = G^-1 v.

    They stop when a smoothed residual is small enough, or (Nash and Sofer 1990) when the steps no longer gain
    ``patience`` times the average decrease of the quadratic model per step. ``accuracy`` is the size of the smoothed
    residual at which to look; ``excess(r)`` then says by how much it is still too large. ``single`` allows single
    precision.
    """

    def __init__(self, curvature: Curvature, max_steps: int, single: bool = True) -> None:
        self.space: Any = _plain(curvature) or coordinates(curvature)
        self.max_steps = max_steps
        self._by_weights = isinstance(self.space, Diagonal)
        self._single = False
        if single and curvature.in_single_precision and isinstance(self.space, Diagonal):
            self._single = 1.0 / SINGLE_RANGE <= self.space.unit**2 <= SINGLE_RANGE
        self._unit = self._residual_unit = 1.0  # of steps and of residuals, in single precision
        self.steps, self.decrease = 0, 0.0
        self.size = np.inf  # of the smoothed residual, or a little less than that
        self.enough = False

    def solve(
        self, gradient: Array, accuracy: float, patience: float, excess: Callable[[Array], float] | None = None
    ) -> Array:
        """The step; ``decrease`` is what the quadratic model promises of it."""
        r = self.space.pull(-gradient)
        loop = self._compiled_loop(r) if self.space.compiled is not None else None
        if loop is None:
            if self._single and (patience > LEAST_PATIENCE or accuracy >= LEAST_SINGLE * np.linalg.norm(gradient)):
                self._unit = power_of_two(float(np.abs(r).max()))
                self._residual_unit = self._unit / self.space.unit
                r = (r / self._unit).astype(np.float32)
            loop = self._loop(r)
        next(loop)
        while True:
            before = self.steps
            s, self._average, q = loop.send((accuracy, patience))
            if not 0.0 < self.size <= accuracy or self.steps == before:
                break
            factor = excess(self._measured_residual(q)) if excess is not None else 1.0
            self.enough = factor <= 1.0
            if self.enough or self.steps >= self.max_steps:
                break
            accuracy = min(0.9, 0.95 / factor) * self.size
        return np.asarray(self.space.to_weights(self._unit * s.astype(float)))

    def average(self) -> Array:
        """The average of the steps."""
        return np.asarray(self.space.to_weights(self._unit * self._average.astype(float)))

    def _measured_residual(self, q: Array) -> Array:
        """The residual of the weights, of an average with the residual q."""
        return self._residual_unit * q.astype(float) if self._by_weights else np.asarray(self.space.residual(q))

    def _loop(self, r: Array) -> Loop:
        """Conjugate gradients with smoothing: takes when to stop, and gives step, average and its residual."""
        s, p, average, q = np.zeros_like(r), r.copy(), np.zeros_like(r), self._measured(r)
        energy, ratio, gain = float(np.vdot(r, r)), 0.0, 0.0
        nothing = (ROUND_OFF * float(np.finfo(r.dtype).eps)) ** 2 * energy
        accuracy, patience = yield s, average, q
        while True:
            ended = self.steps >= self.max_steps or energy <= nothing or deadline.passed()
            hp = p if ended else self.space.times(p)
            curved = float(np.vdot(p, hp))
            if ended or curved <= FLAT * float(np.vdot(p, p)):
                accuracy, patience = yield s, average, q
                continue
            self.steps += 1
            length = energy / curved
            before, gain = gain, 0.5 * length * energy * self._unit**2
            self.decrease += gain
            s += length * p
            r -= length * hp
            was, energy = energy, float(np.vdot(r, r))
            _smooth(s, self._measured(r), average, q)
            self.size = self._residual_unit * math.sqrt(float(np.vdot(q, q)))
            if not self._by_weights:
                # measuring takes a pass over the factor: once it may be small enough, by the ratio found last
                total, self.size = self.size, ratio * self.size
                if self.size <= accuracy:
                    self.size = float(np.linalg.norm(self.space.residual(q)))
                    ratio = 0.9 * self.size / max(total, 1e-300)
            p *= energy / was
            p += r
            # of few steps, one that is short among longer ones says nothing
            recent = max(before, gain) if r.shape[1] == 1 and self.steps <= FEW_STEPS else gain
            impatient = self.steps >= LEAST_STEPS and self.steps * recent <= patience * self.decrease
            if self.size <= accuracy or impatient:
                accuracy, patience = yield s, average, q

    def _measured(self, r: Array) -> Array:
        """The residual in the norm of the certificate, where that costs no more than a pass over the vector."""
        return self.space.residual(r) if self._by_weights else r.copy()

    def _compiled_loop(self, r: Array) -> Loop:
        """The same in compiled code, for one output."""
        from cvxstructreg.solvers.smooth.compiled_newton import conjugate_gradients

        assert self.space.compiled is not None
        arguments, cost = self.space.compiled
        vectors = np.zeros((8, len(r)))
        vectors[0] = vectors[1] = r[:, 0]
        vectors[4] = self._measured(r)[:, 0]
        energy = float(np.vdot(r, r))
        numbers = np.array([0.0, 0.0, energy, np.inf, 0.0, 0.0, (ROUND_OFF * FLAT) ** 2 * energy])
        least = LEAST_STEPS if cost < SMALL else 1
        found = vectors[2][:, None], vectors[3][:, None], vectors[4][:, None]
        while True:
            accuracy, patience = yield found
            ended = numbers[2] <= numbers[6]
            while not ended and numbers[0] < self.max_steps and not deadline.passed():
                count = int(min(max(1, AT_ONCE // cost), self.max_steps - numbers[0]))
                ended = conjugate_gradients(*arguments, vectors, numbers, (accuracy, patience, count, least))
            self.steps, self.decrease, self.size = int(numbers[0]), float(numbers[1]), float(numbers[3])


def _plain(curvature: Curvature) -> Diagonal | None:
    """Diagonal coordinates where there are no compiled ones to choose."""
    product = curvature.objective.quadratic.product
    return None if product is not None and product.compiled else Diagonal(curvature)


def _smooth(s: Array, r: Array, average: Array, q: Array) -> None:
    """Moves the average towards s, and its residual q towards r, as far as that makes q smaller."""
    r -= q
    size = float(np.vdot(r, r))
    share = min(max(-float(np.vdot(r, q)) / size, 0.0), 1.0) if size > 0 else 0.0
    if share > 0:
        r *= share
        q += r
        average *= 1.0 - share
        average += share * s
