"""X'g for changing g, recomputed only for the features whose product may have become large enough to matter."""

from __future__ import annotations

import math
from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.last_product import LastProduct

#: If more than this part of the products must be recomputed, all are.
MOST = 0.5


class LazyPull:
    """The products x_j'g of the columns of a matrix with a vector g, cached from earlier g.

    If g has moved by a total length t since x_j'g was computed, the product has changed by at most ||x_j|| t. If the
    old product is below its threshold by more than that, the new one is below the threshold too, and most features need
    no more than this fact. The cache lives as long as the matrix: along a regularization path, g moves little.
    """

    def __init__(self, X: tuple[Any, ...], norms: Array, design: Any, last: LastProduct | None = None) -> None:
        self.X, self.norms, self.design = X, norms, design
        self.last = last  # for the certificate, if the design is that of the model
        self.all = np.arange(norms.size)
        self.middle = float(np.median(norms)) if norms.size else 0.0
        self.pull = np.zeros(norms.size)  # exact for g = 0
        self.g = np.zeros(design.shape[0])
        self.length = 0.0  # the total length that g has moved
        self.seen = np.zeros(norms.size)  # the value of length when each product was last computed
        self.newest = 0.0  # the largest of these values
        self.lock = Lock()  # several threads may solve problems that share a model

    def at(self, compiled: ModuleType, g: Array, shift: Array, threshold: Array, always: Any) -> Array:
        """x_j'g + shift_j: exact if its absolute value may exceed the threshold, and on the features ``always``.

        Other features get an old value, which does not exceed the threshold either. If another thread holds the lock,
        all products are computed directly, without waiting. This also covers a process forked at such a moment, in
        which the lock stays locked.
        """
        if not self.lock.acquire(blocking=False):
            return np.asarray(self.design.T @ g + shift)
        try:
            move = g - self.g
            self.length += math.sqrt(move @ move)
            self.g = g
            asked = None if self._is_far(threshold) else self._asked(shift, threshold, always)
            if asked is None or asked.size > MOST * self.all.size:
                self.pull = self.design.T @ g if self.last is None else self.last.computed(self.design, g)
                self.seen[:] = self.length
            else:
                compiled.gradient_on(self.X, asked, g, self.pull)
                self.seen[asked] = self.length
            self.newest = self.length
            return np.asarray(self.pull + shift)
        finally:
            self.lock.release()

    def _is_far(self, threshold: Array) -> bool:
        """Whether g has moved so far that half of the products, or more, may have become large enough."""
        return (self.length - self.newest) * self.middle >= threshold.max(initial=0.0)

    def _asked(self, shift: Array, threshold: Array, always: Any) -> Any:
        """The features whose product may have become large enough, and those of ``always``."""
        reach = np.abs(self.pull + shift)
        room = (1.0 + 1e-9) * self.length - self.seen
        room *= self.norms
        reach += room
        asked = reach >= threshold
        asked[always] = True
        return asked.nonzero()[0]
