"""X'g for changing g, computed anew only for the features where it may have become large enough to matter."""

from __future__ import annotations

from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array

#: If more than this part of the features is to be computed anew, all are.
MOST = 0.5


class LazyPull:
    """The products x_j'g of the columns of a matrix, remembered from earlier g.

    If g has moved by a total length t since x_j'g was computed, it has changed by ||x_j|| t at most. Where the old
    value is so far below its threshold, the new one is below it too, and that is all that is asked of most features.
    It serves as long as the matrix does, whatever g is: along a path, g moves little from point to point.
    """

    def __init__(self, X: tuple[Any, ...], norms: Array, design: Any) -> None:
        self.X, self.norms, self.design = X, norms, design
        self.all = np.arange(norms.size)
        self.pull = np.zeros(norms.size)  # exact for g = 0
        self.g = np.zeros(design.shape[0])
        self.length = 0.0  # of the way that g has gone
        self.seen = np.zeros(norms.size)  # that length when a product was computed last
        self.lock = Lock()  # problems that share a model may be solved in several threads

    def at(self, compiled: ModuleType, g: Array, shift: Array, threshold: Array, always: Any) -> Array:
        """x_j'g + shift_j: exact where it may exceed the threshold in size, and on the features ``always``.

        Elsewhere an old value, which does not exceed the threshold either. A thread that finds another one at work does
        not wait but computes all products itself; so does a process forked at such a moment, where the lock stays
        locked.
        """
        if not self.lock.acquire(blocking=False):
            return np.asarray(self.design.T @ g + shift)
        try:
            self.length += float(np.linalg.norm(g - self.g))
            self.g = g
            reach = np.abs(self.pull + shift)
            room = (1.0 + 1e-9) * self.length - self.seen
            room *= self.norms
            reach += room
            asked = reach >= threshold
            asked[always] = True
            features = np.flatnonzero(asked)
            if features.size > MOST * self.all.size:
                self.pull = self.design.T @ g
                self.seen[:] = self.length
            else:
                compiled.gradient_on(self.X, features, g, self.pull)
                self.seen[features] = self.length
            return np.asarray(self.pull + shift)
        finally:
            self.lock.release()
