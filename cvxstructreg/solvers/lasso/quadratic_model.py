"""The quadratic model of a prox-Newton step, minimised over some features and the intercept.

    g'Xd + 1/2 (Xd)'H(Xd) + 1/2 (w + d)'Q(w + d) + sum_j c_j |w_j + d_j|   subject to   lower <= w + d <= upper

Here g and H are the first and second derivatives of the loss with respect to the scores. The intercept is always at its
minimum. The passes over the coordinates and the conjugate gradients are in ``compiled_coordinate_descent`` and
``compiled_jump``; this file decides when to use which.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

Columns = tuple[Any, ...]

#: Passes over the nonzero features before a jump.
SETTLING = 2
#: For the choice between a direct solve and conjugate gradients: the estimated number of conjugate gradient steps per
#: digit, the largest number of steps, and how many times faster BLAS computes than these steps.
STEPS_A_DIGIT, MOST_STEPS, BLAS = 5.0, 25.0, 10.0
#: A curvature that is not computed yet.
UNKNOWN = -1.0
#: A pivot below this part of its diagonal entry is round-off.
LEAST_PIVOT = 1e-10


@cache
def compiled_modules() -> tuple[ModuleType, ModuleType]:
    """The modules of the compiled loops, imported when they are first used, because they import numba."""
    from cvxstructreg.solvers.lasso import compiled_coordinate_descent, compiled_jump

    return compiled_coordinate_descent, compiled_jump


class Coefficients:
    """The data shared by all models of one problem: columns of X and Q, strengths and bounds, and scratch space."""

    def __init__(self, compiled: ModuleType, X: Columns, Q: Columns, diagonal: Array, box: Array, intercept: bool):
        self.compiled, self.jumps, self.X, self.Q = compiled, compiled_modules()[1], X, Q
        self.diagonal, self.box, self.intercept = diagonal, box, intercept
        d = diagonal.size
        self.curvature, self.centre, self.scratch = np.empty(d), np.zeros(d), np.zeros(d)


class QuadraticModel:
    """The model at a point (w, Qw) over some features; ``w`` and ``Qw`` are its current minimiser."""

    def __init__(self, given: Coefficients, features: Any, h: Array, g: Array, w: Array, Qw: Array) -> None:
        self.given, self.features, self.h = given, features, h
        self.start, self.w, self.Qw, self.r = w, w.copy(), Qw.copy(), g.copy()
        mass = float(h.sum()) if given.intercept else 0.0
        self.inverse = 1.0 / mass if mass > 0.0 else 0.0
        self.total = float(g.sum()) if given.intercept else 0.0
        self.passes = 0
        self.known: tuple[Any, Array] | None = None  # features, and the matrix of the last direct solve
        given.curvature[features] = UNKNOWN

    def descend(self, features: Any, tol: float, passes: int, narrow: bool = False) -> tuple[float, float, Any]:
        """Passes over the features until no step exceeds ``tol``, with ``narrow`` only over those that move on.

        Returns the largest steps of the first and of the last pass, and the features of the last pass.
        """
        given = self.given
        first, last, self.total, done, moving = given.compiled.descend(
            given.X, given.Q, features, given.diagonal, given.curvature, given.centre, given.box, self.h, self.inverse,
            self.total, self.r, self.w, self.Qw, tol, passes, narrow,
        )  # fmt: skip
        self.passes += done
        return first, last, moving

    def minimise(self, tol: float, max_passes: int) -> None:
        """Coordinate descent until no step of a full pass exceeds ``tol`` in gradient units.

        A pass over all features finds the signs, and a few passes over the nonzero features settle them. Then a jump
        goes to the minimum for these signs, because coordinate descent is slow if features are correlated. This
        repeats.
        """
        while self.passes < max_passes:
            first, last, moving = self.descend(self.features, tol, 1 + SETTLING, narrow=True)
            if first <= tol or deadline.passed():
                return
            if last > tol:
                self.jump(moving, 0.5 * tol)

    def jump(self, features: Any, tol: float) -> None:
        """Move all features that are neither at zero nor at a bound towards the minimum of the model."""
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
        """The step to the minimum without regard to signs and bounds, and the change of the scores."""
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
        """The step by a Cholesky factorisation; None if that is more work, or features are nearly dependent."""
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
        """The lower triangle of the Hessian on these features; None if so many CG steps are less work."""
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
        """The matrix from an earlier jump, if that contains all these features."""
        if self.known is None:
            return None
        features, matrix = self.known
        places = np.searchsorted(features, free)
        if free[-1] > features[-1] or np.any(features[places] != free):
            return None
        return matrix if free.size == features.size else np.ascontiguousarray(matrix[np.ix_(places, places)])

    def residual(self) -> Array:
        """The derivative of the model's loss with respect to the scores at its current point: g + H (Xd + shift)."""
        return self.r - (self.inverse * self.total) * self.h

    def change(self) -> tuple[Array, float]:
        """The change of the scores and of the intercept from the point where the model was built."""
        shift = -self.inverse * self.total
        change = np.zeros(self.r.size)
        self.given.compiled.add_moves(self.given.X, self.features, self.start, self.w, change)
        if shift:
            change += shift
        return change, shift
