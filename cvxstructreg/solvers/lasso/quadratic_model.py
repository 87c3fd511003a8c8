"""The quadratic model of a prox-Newton step, minimised over some features and the intercept.

    g'Xd + 1/2 (Xd)'H(Xd) + 1/2 (w + d)'Q(w + d) + sum_j c_j |w_j + d_j|   subject to   lower <= w + d <= upper

with g and H the derivatives of the loss by the scores. The intercept is at its minimum throughout. The passes over the
coordinates and the conjugate gradients are compiled (``compiled_coordinate_descent``); here is when to use which.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

Columns = tuple[Any, ...]

#: Passes over the features that are not at zero before a jump.
SETTLING = 2
#: Steps of conjugate gradients for each digit, and in all: whether a direct solve is less work depends on them. BLAS
#: computes so many times as fast as these steps do.
STEPS_A_DIGIT, MOST_STEPS, BLAS = 5.0, 25.0, 10.0
#: A pivot below this part of its diagonal entry is round-off.
LEAST_PIVOT = 1e-10


class Coefficients:
    """What stays the same for all models of one problem: design and quadratic columns, bounds, room to compute in."""

    def __init__(self, compiled: ModuleType, X: Columns, Q: Columns, diagonal: Array, box: Array, intercept: bool):
        from cvxstructreg.solvers.lasso import compiled_jump

        self.compiled, self.jumps, self.X, self.Q = compiled, compiled_jump, X, Q
        self.diagonal, self.box, self.intercept = diagonal, box, intercept
        d = diagonal.size
        self.curvature, self.centre, self.scratch = np.empty(d), np.zeros(d), np.zeros(d)


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
        self.known: tuple[Any, Array] | None = None  # features, and the matrix of the last direct solve
        given.compiled.curvatures(given.X, features, h, self.inverse, given.diagonal, given.curvature, given.centre)

    def descend(self, features: Any, tol: float, passes: int) -> float:
        """Passes over the features until no step is larger than ``tol``; returns the largest of the last pass."""
        given = self.given
        worst, self.total, done = given.compiled.descend(
            given.X, given.Q, features, given.curvature, given.centre, given.box, self.h, self.inverse, self.total,
            self.r, self.w, self.Qw, tol, passes,
        )  # fmt: skip
        self.passes += done
        return float(worst)

    def minimise(self, tol: float, max_passes: int) -> None:
        """Coordinate descent until no step of a full pass is larger than ``tol`` in gradient units.

        A pass over all features finds the signs, a few passes over those that are not at zero settle them, a jump
        goes to the minimum for these signs (coordinate descent is slow there when features are correlated), and so on.
        """
        while self.passes < max_passes and self.descend(self.features, tol, 1) > tol and not deadline.passed():
            moving = self.features[self._moving(self.features)]
            if self.descend(moving, tol, SETTLING) > tol:
                self.jump(moving, 0.5 * tol)

    def _moving(self, features: Any) -> Any:
        return (self.w[features] != 0.0) | (self.given.box[0][features] == 0.0)

    def jump(self, features: Any, tol: float) -> None:
        """A step of all features that can move freely towards the minimum of the model."""
        given = self.given
        free, slope = given.jumps.free_slopes(
            given.X, features, given.curvature, given.centre, given.box, self.inverse * self.total,
            self.r, self.w, self.Qw,
        )  # fmt: skip
        if np.abs(slope).max(initial=0.0) <= tol:
            return
        step, scores = self._solved(free, slope, tol)
        self.total += given.jumps.land(
            given.X, given.Q, free, slope, step, scores, given.centre, given.box, self.h, self.inverse,
            self.r, self.w, self.Qw, given.scratch,
        )  # fmt: skip

    def _solved(self, free: Any, slope: Array, tol: float) -> tuple[Array, Array]:
        """The step to the minimum if nothing stops it, and what it does to the scores."""
        step, given = self._solved_directly(free, slope, tol), self.given
        if step is not None:
            scores = np.zeros(self.h.size)
            given.compiled.add_columns(given.X, free, step, scores)
            return step, scores
        found: tuple[Array, Array] = given.jumps.conjugate_gradients(
            given.X, given.Q, free, given.curvature, given.centre, self.h, self.inverse, slope, given.scratch, tol
        )
        return found

    def _solved_directly(self, free: Any, slope: Array, tol: float) -> Array | None:
        """The step by a Cholesky factor, where that is less work and features are not nearly dependent."""
        matrix = self._known_matrix(free)
        if matrix is None:
            steps = min(MOST_STEPS, STEPS_A_DIGIT * np.log10(np.abs(slope).max() / tol))
            matrix = self._matrix(free, steps)
        if matrix is None:
            return None
        factor, failed = dpotrf(matrix.T)  # the upper triangle in the order of columns
        if failed or np.any(np.diagonal(factor) ** 2 <= LEAST_PIVOT * np.diagonal(matrix)):
            return None
        return np.asarray(dpotrs(factor, -slope)[0])

    def _matrix(self, free: Any, steps: float) -> Array | None:
        """The second derivatives by these features, as a lower triangle; None if CG takes less by so many steps."""
        given, m = self.given, free.size
        if len(given.X) == 1:
            if BLAS * 2.0 * steps < m:
                return None
            block = given.X[0][free]
            block *= np.sqrt(self.h)
            matrix = np.asarray(dsyrk(1.0, block.T, trans=1)).T
        else:
            most = 2.0 * steps * float((given.X[2][free + 1] - given.X[2][free]).sum()) - m**3 / BLAS
            if most <= 0.0:
                return None
            matrix = np.zeros((m, m))
            if not given.jumps.add_gram(given.X, free, self.h, most, matrix):
                return None
        given.jumps.add_rest(given.Q, free, given.centre, self.inverse, given.scratch, matrix)
        self.known = free, matrix
        return matrix

    def _known_matrix(self, free: Any) -> Array | None:
        """The same from an earlier jump, if it had all these features."""
        if self.known is None:
            return None
        features, matrix = self.known
        places = np.searchsorted(features, free)
        if free[-1] > features[-1] or np.any(features[places] != free):
            return None
        return matrix if free.size == features.size else np.ascontiguousarray(matrix[np.ix_(places, places)])

    def residual(self) -> Array:
        """The derivative of the model's loss by the scores where it has been moved to: g + H (Xd + shift)."""
        return self.r - (self.inverse * self.total) * self.h

    def change(self) -> tuple[Array, float]:
        """By how much the scores and the intercept change from where the model was made."""
        shift = -self.inverse * self.total
        change = np.full(self.r.size, shift)
        self.given.compiled.add_columns(self.given.X, self.features, self.w[self.features] - self.start, change)
        return change, shift
