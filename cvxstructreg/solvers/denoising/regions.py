"""Regions of nearly equal weights, and the weights that are constant on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cvxstructreg.numerics.arrays import Array

if TYPE_CHECKING:
    from cvxstructreg.solvers.denoising.total_variation import Denoising

#: Neighbours belong together if they differ by at most this part of the deviation of the targets at first, and by
#: less later, if this gives a lower objective: SHRINK times.
FIRST, SHRINK = 0.01, 0.3


class Regions:
    """The means over regions of neighbours that differ by at most ``apart``."""

    def __init__(self, function: Denoising, y: Array) -> None:
        self.function, self.y = function, y
        self.apart = FIRST * float(np.std(y))

    def means(self, x: Array) -> tuple[Array, float]:
        """The better of two partitions into regions: the weights, and their objective."""
        found, value = self._means(x, self.apart)
        other, its_value = self._means(x, SHRINK * self.apart)
        if its_value < value:
            self.apart *= SHRINK
            return other, its_value
        return found, value

    def _means(self, x: Array, apart: float) -> tuple[Array, float]:
        from cvxstructreg.solvers.denoising.compiled_chain import average, join_equal

        root = np.arange(len(x))
        for paths in self.function.paths:
            join_equal(paths.offset, paths.edges, x, apart, root)
        means = np.empty_like(x)
        average(root, self.function.s, x, np.empty_like(x), np.empty_like(x), means)
        off = means - self.y
        return means, 0.5 * float(self.function.s @ (off * off)) + self.function.variation(means)
