"""Momentum for accelerated gradient steps on several blocks of variables, restarted when it points uphill."""

from __future__ import annotations

import numpy as np

from cvxstructreg.numerics.arrays import Array


class Momentum:
    """Nesterov's extrapolation, with the restart of O'Donoghue and Candes (2015).

    The caller takes a gradient step from ``trial`` to ``moved``; :meth:`ahead` then returns the next trial point.

    Examples
    --------
    >>> momentum = Momentum([np.array([1.0])])
    >>> trial = momentum.ahead([np.array([1.0])], [np.array([0.5])])
    >>> trial[0].tolist(), momentum.points[0].tolist()
    ([0.5], [0.5])
    """

    def __init__(self, points: list[Array]) -> None:
        self.points = points  # where the last step ended
        self._size = 1.0

    def ahead(self, trial: list[Array], moved: list[Array]) -> list[Array]:
        """Return the starting point of the next step, after a step from ``trial`` to ``moved``."""
        steps = zip(trial, moved, self.points, strict=True)
        if sum(float(np.vdot(t - m, m - q)) for t, m, q in steps) > 0.0:
            self._size = 1.0
        following = 0.5 * (1.0 + float(np.sqrt(1.0 + 4.0 * self._size**2)))
        factor = (self._size - 1.0) / following
        trial = [m + factor * (m - q) for m, q in zip(moved, self.points, strict=True)]
        self.points, self._size = moved, following
        return trial
