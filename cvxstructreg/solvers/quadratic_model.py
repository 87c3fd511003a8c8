"""The quadratic model of a prox-Newton step, minimised over some features and the intercept.

    g'Xd + 1/2 (Xd)'H(Xd) + 1/2 (w + d)'Q(w + d) + sum_j c_j |w_j + d_j|   subject to   lower <= w + d <= upper

with g and H the derivatives of the loss by the scores. The intercept is at its minimum throughout. The passes over the
coordinates and the conjugate gradients are compiled (``kernels_cd``); here is when to use which.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from cvxstructreg.core.atom import Array

Columns = tuple[Any, ...]

#: Passes over the features that are not at zero before a jump.
SETTLING = 2


class Coefficients:
    """What stays the same for all models of one problem: design and quadratic columns, bounds, room to compute in."""

    def __init__(self, kernels: ModuleType, X: Columns, Q: Columns, diagonal: Array, box: Array, intercept: bool):
        self.kernels, self.X, self.Q = kernels, X, Q
        self.diagonal, self.box, self.intercept = diagonal, box, intercept
        self.bounded = bool(np.isfinite(box[1:]).any())
        d = diagonal.size
        self.curvature, self.centre, self.slope, self.scratch = np.empty(d), np.zeros(d), np.empty(d), np.zeros(d)


class QuadraticModel:
    """The model at a point (w, Qw) over some features, and the point ``w``, ``Qw`` that it is moved to."""

    def __init__(self, given: Coefficients, features: Any, h: Array, g: Array, w: Array, Qw: Array) -> None:
        self.given, self.features, self.h = given, features, h
        self.start = w[features]
        self.w, self.Qw, self.r = w.copy(), Qw.copy(), g.copy()
        mass = float(h.sum()) if given.intercept else 0.0
        self.inverse = 1.0 / mass if mass > 0.0 else 0.0
        self.total = float(g.sum()) if given.intercept else 0.0
        self.passes = 0
        given.kernels.curvatures(given.X, features, h, self.inverse, given.diagonal, given.curvature, given.centre)

    def descend(self, features: Any, tol: float, passes: int) -> float:
        """Passes over the features until no step is larger than ``tol``; returns the largest of the last pass."""
        given = self.given
        worst, self.total, done = given.kernels.descend(
            given.X, given.Q, features, given.curvature, given.centre, given.box, self.h, self.inverse, self.total,
            self.r, self.w, self.Qw, tol, passes,
        )  # fmt: skip
        self.passes += done
        return float(worst)

    def minimise(self, tol: float, max_passes: int) -> None:
        """Coordinate descent until no step of a full pass is larger than ``tol`` in gradient units.

        A pass over all features finds the signs, a few passes over those that are not at zero settle them, a jump by
        conjugate gradients goes to the minimum for these signs (coordinate descent is slow there when features are
        correlated), and so on.
        """
        while self.passes < max_passes and self.descend(self.features, tol, 1) > tol:
            moving = self.features[self._moving(self.features)]
            if self.descend(moving, tol, SETTLING) > tol:
                self.jump(moving, 0.5 * tol)

    def _moving(self, features: Any) -> Any:
        return (self.w[features] != 0.0) | (self.given.box[0][features] == 0.0)

    def jump(self, features: Any, tol: float) -> None:
        """A step of all features that can move freely towards the minimum of the model."""
        given = self.given
        free, v, lower, upper = self._free(features)
        if free.size == 0:
            return
        given.kernels.gradient_on(given.X, free, self.r, given.slope)
        c = given.box[0][free]
        slope = given.slope[free] - given.centre[free] * (self.inverse * self.total) + self.Qw[free] + c * np.sign(v)
        if np.abs(slope).max() <= tol:
            return
        step, scores = given.kernels.conjugate_gradients(
            given.X, given.Q, free, given.curvature, given.centre, self.h, self.inverse, slope, given.scratch, tol
        )
        room = np.where(step > 0.0, upper, lower) - v
        moving = step != 0.0
        t = min(1.0, float((room[moving] / step[moving]).min(initial=1.0)))
        new = np.clip(v + t * step, lower, upper)
        # the one that has stopped the step is at zero up to round-off
        new[(c > 0.0) & (np.abs(new) <= 1e-14 * np.abs(v))] = 0.0
        self.w[free] = new
        given.kernels.add_columns(given.Q, free, new - v, self.Qw)
        self.r += t * self.h * scores
        self.total += float(given.centre[free] @ (new - v)) if given.intercept else 0.0

    def _free(self, features: Any) -> tuple[Any, Array, Array, Array]:
        """The features that are neither held at zero nor at a bound, their weights, and how far they may go.

        With an absolute value that is to zero at most: signs stay.
        """
        given, v = self.given, self.w[features]
        kept = (given.curvature[features] > 0.0) & self._moving(features)
        if given.bounded:
            kept &= (v > given.box[1][features]) & (v < given.box[2][features])
        free, v = features[kept], v[kept]
        kinked = given.box[0][free] > 0.0
        lower, upper = np.where(kinked & (v > 0.0), 0.0, -np.inf), np.where(kinked & (v < 0.0), 0.0, np.inf)
        if given.bounded:
            lower, upper = np.maximum(lower, given.box[1][free]), np.minimum(upper, given.box[2][free])
        return free, v, lower, upper

    def change(self) -> tuple[Array, float]:
        """By how much the scores and the intercept change from where the model was made."""
        shift = -self.inverse * self.total
        change = np.full(self.r.size, shift)
        self.given.kernels.add_columns(self.given.X, self.features, self.w[self.features] - self.start, change)
        return change, shift
