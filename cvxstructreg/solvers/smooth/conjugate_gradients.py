"""Conjugate gradients for one Newton step, and an average of their iterates with a small residual.

Conjugate gradients decrease the quadratic model as fast as possible, but their residual, which determines the
certificate, is not monotone. *Residual smoothing* (Schoenauer 1987; Zhou and Walker 1994) averages the iterates so that
the residual never increases. Where convergence is slow, the smoothed residual is several times smaller, at the cost of
a few passes over vectors.
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

#: Conjugate gradients work in single precision, with half the memory traffic, if the residual need not fall below
#: LEAST_SINGLE times the gradient. The next Newton step corrects the round-off, since its gradient is in double
#: precision. Single precision is also used if the patience is above LEAST_PATIENCE: such runs end before round-off
#: matters.
LEAST_SINGLE, LEAST_PATIENCE = 1e-4, 0.05
#: Single precision requires a typical diagonal entry of the Hessian between 1 / SINGLE_RANGE and SINGLE_RANGE.
SINGLE_RANGE = 1e32
#: Multiplications in one call of compiled code. A keyboard interrupt has to wait until the call returns.
AT_ONCE = 50_000_000
#: At least LEAST_STEPS steps are taken where a Newton step costs several products besides its conjugate gradients:
#: outside compiled loops (several outputs, small or dense data), and in compiled loops of fewer than SMALL
#: multiplications per step.
LEAST_STEPS, SMALL = 4, 200_000
#: With one output, and up to this many steps, two successive steps must gain little before conjugate gradients stop.
FEW_STEPS = 20

#: A residual of at most this many units of round-off, relative to the first residual, is zero.
ROUND_OFF = 10.0
#: A curvature below this is round-off, as the diagonal of the Hessian is one; steps along such directions diverge.
FLAT = float(np.finfo(float).eps)

#: A generator that receives (accuracy, patience), and yields the step so far, the average and its residual.
Loop = Generator[tuple[Array, Array, Array], tuple[float, float], None]


class NewtonStep:
    """Solves H s = -g by conjugate gradients in coordinates v with s = G^-1 v.

    Conjugate gradients stop when the smoothed residual is small enough, or when a step gains less than ``patience``
    times the average decrease of the quadratic model per step (Nash and Sofer 1990). When the size of the smoothed
    residual r falls below ``accuracy``, ``excess(r)`` is called, which returns the factor by which r is still too
    large. ``single`` allows single precision.
    """

    def __init__(self, curvature: Curvature, max_steps: int, single: bool = True) -> None:
        self.space: Any = _plain(curvature) or coordinates(curvature)
        self.max_steps = max_steps
        self._by_weights = isinstance(self.space, Diagonal)
        self._single = False
        if single and curvature.in_single_precision and isinstance(self.space, Diagonal):
            self._single = 1.0 / SINGLE_RANGE <= self.space.unit**2 <= SINGLE_RANGE
        self._unit = self._residual_unit = 1.0  # the units of steps and of residuals, in single precision
        self.steps, self.decrease = 0, 0.0
        self.size = np.inf  # the size of the smoothed residual, or slightly less
        self.enough = False

    def solve(
        self, gradient: Array, accuracy: float, patience: float, excess: Callable[[Array], float] | None = None
    ) -> Array:
        """The step; sets ``decrease``, the decrease that the quadratic model predicts."""
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
        """The average of the iterates."""
        return np.asarray(self.space.to_weights(self._unit * self._average.astype(float)))

    def _measured_residual(self, q: Array) -> Array:
        """Convert the residual q of the average to the coordinates of the weights."""
        return self._residual_unit * q.astype(float) if self._by_weights else np.asarray(self.space.residual(q))

    def _loop(self, r: Array) -> Loop:
        """Conjugate gradients with residual smoothing: receives the stopping criteria, yields the results."""
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
                # the exact size takes a pass over the factor, so it is first estimated by the last known ratio
                total, self.size = self.size, ratio * self.size
                if self.size <= accuracy:
                    self.size = float(np.linalg.norm(self.space.residual(q)))
                    ratio = 0.9 * self.size / max(total, 1e-300)
            p *= energy / was
            p += r
            # after few steps, a single small gain is not conclusive
            recent = max(before, gain) if r.shape[1] == 1 and self.steps <= FEW_STEPS else gain
            impatient = self.steps >= LEAST_STEPS and self.steps * recent <= patience * self.decrease
            if self.size <= accuracy or impatient:
                accuracy, patience = yield s, average, q

    def _measured(self, r: Array) -> Array:
        """The residual in the coordinates of the weights if the conversion is cheap, else a copy of r."""
        return self.space.residual(r) if self._by_weights else r.copy()

    def _compiled_loop(self, r: Array) -> Loop:
        """The same loop in compiled code, for one output."""
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
    """Diagonal coordinates, if the quadratic part has no compiled product to build triangular ones from."""
    product = curvature.objective.quadratic.product
    triangular = product is not None and product.compiled and not curvature.objective.penalty.any
    return None if triangular else Diagonal(curvature)


def _smooth(s: Array, r: Array, average: Array, q: Array) -> None:
    """Move the average towards s, and its residual q towards r, by the share that minimises the norm of q."""
    r -= q
    size = float(np.vdot(r, r))
    share = min(max(-float(np.vdot(r, q)) / size, 0.0), 1.0) if size > 0 else 0.0
    if share > 0:
        r *= share
        q += r
        average *= 1.0 - share
        average += share * s
