"""Anderson acceleration of a fixed-point iteration."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from cvxstructreg.numerics.arrays import Array

#: The multiples of the trace and of ||g||^2 that are added to the diagonal of the least-squares system. Without the
#: second, a constant residual (a step along a straight line) would leave only round-off to extrapolate from.
REGULARISATION, ROUND_OFF = 1e-10, 1e-9
#: Extrapolation restarts if the residual is WORSE times the smallest one, or if the smallest is STALE points old.
WORSE, STALE = 2.0, 30
#: Plain steps after a restart: PAUSE at first, doubled each time while extrapolation does not help, up to
#: LONGEST_PAUSE.
PAUSE, LONGEST_PAUSE = 5, 160


class Anderson:
    """x + g - sum_i gamma_i (moves_i + changes_i): the next point of x <- x + g(x), from the last few points.

    gamma minimises ``||g - sum_i gamma_i changes_i||``, the residual predicted by linear extrapolation (type II). If
    the prediction fails, the memory is cleared, and plain steps follow from the point with the smallest residual.
    """

    def __init__(self, size: int, memory: int) -> None:
        self.changes, self.moves = np.empty((memory, size)), np.empty((memory, size))
        self.gram = np.zeros((memory, memory))
        self.pause, self.plain = PAUSE, 0
        self.reset()

    def reset(self) -> None:
        """Forget all points."""
        self.count = 0
        self.last: tuple[Array, Array] | None = None
        self.smallest, self.age, self.successor = np.inf, 0, np.zeros(0)

    def next(self, x: Array, g: Array) -> Array:
        """The next point, from the flat point x with its residual g."""
        memory, size = len(self.gram), float(np.linalg.norm(g))
        if memory and (size > WORSE * self.smallest or self.age >= STALE):
            following = self.successor
            self.plain, self.pause = self.pause, min(2 * self.pause, LONGEST_PAUSE)
            self.reset()
            return following
        if self.plain:
            self.plain -= 1
            return x + g
        self.age += 1
        if size <= self.smallest:
            if size <= 0.5 * self.smallest < np.inf:
                self.pause = PAUSE
            self.smallest, self.age, self.successor = size, 0, x + g
        if memory and self.last is not None:
            slot = self.count % memory
            np.subtract(g, self.last[1], out=self.changes[slot])
            np.subtract(x, self.last[0], out=self.moves[slot])
            self.moves[slot] += self.changes[slot]
            self.count += 1
            used = min(self.count, memory)
            products = self.changes[:used] @ self.changes[slot]
            self.gram[slot, :used] = self.gram[:used, slot] = products
        self.last = x, g
        used = min(self.count, memory)
        following = x + g
        if used:
            system = self.gram[:used, :used].copy()
            trace = float(np.trace(system))
            if trace > 0.0:
                system.flat[:: used + 1] += REGULARISATION * trace + ROUND_OFF * size**2
                gamma = scipy.linalg.lapack.dgesv(system, self.changes[:used] @ g, overwrite_a=True)[2]
                following -= gamma @ self.moves[:used]
        return following
