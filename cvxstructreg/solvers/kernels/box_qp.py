"""The dual of the hinge loss on the labelled rows: a box-constrained quadratic program, by an interior point method.

    minimize over 0 <= a <= C    1/2 a'Qa - 1'a    with  g'a = s b  for the intercept b

With s = 0 this is the equality constraint g'a = 0; without an intercept there is no such condition. Every iteration
takes one Cholesky factorisation, and about a dozen iterations are enough for any conditioning. For many rows see
:mod:`cvxstructreg.solvers.kernels.compiled_smo`.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from cvxstructreg.forms.shortfall import shortfall
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.semidefinite import PSD_ROUND_OFF, not_psd
from cvxstructreg.runtime import deadline

#: Kernel matrices are often singular. These shifts, relative to the largest diagonal entry, count as round-off.
SHIFTS = (0.0, 1e-13, 1e-11, 1e-9)
#: The part of the step to the boundary that the interior point method takes, and the smallest useful step.
TO_BOUNDARY, SHORTEST = 0.995, 1e-10


class BoxProgram:
    """The program with the kernel K between the labelled rows (Q_ij = y_i y_j K_ij), labels y, bounds C, and g and s.

    ``g`` is None without an intercept. ``is_psd`` states that K is positive semidefinite up to round-off of any size.
    Otherwise an indefinite K is an error.
    """

    def __init__(self, K: Array, y: Array, C: Array, g: Array | None, s: float, is_psd: bool = False) -> None:
        self.K, self.y, self.C, self.g, self.s, self.is_psd = K, y, C, g, s, is_psd
        # a correction of Q a if K is only an approximation of the kernel, measured at a nearby point
        self.offset: Array | float = 0.0

    def require_psd(self, Q: Array) -> None:
        """Raise if Q, a part of the kernel without a Cholesky factor, is indefinite beyond round-off."""
        if not self.is_psd:
            values = scipy.linalg.eigvalsh(Q)
            if values[0] < -PSD_ROUND_OFF * max(float(values[-1]), 0.0):
                raise not_psd(float(values[0]), float(values[-1]))

    def times(self, a: Array) -> Array:
        """Q a."""
        fortran = self.K if self.K.flags.f_contiguous else self.K.T
        return np.asarray(self.y * scipy.linalg.blas.dsymv(1.0, fortran, self.y * a))

    def part(self, rows: np.ndarray) -> Array:
        """Q between some rows."""
        return np.asarray(self.K[np.ix_(rows, rows)] * np.outer(self.y[rows], self.y[rows]))

    def gap(self, a: Array, b: float, image: Array | None = None) -> float:
        """The duality gap of a in its box with g'a = s b: sum C (1 - m)_+ + a'Qa - 1'a + s b^2 with the margins m."""
        margins = self.times(a) + self.offset if image is None else image
        quadratic = float(a @ margins)
        if self.g is not None:
            margins = margins + b * self.g
            quadratic += self.s * b * b
        return float(np.sum(self.C * shortfall(margins))) + quadratic - float(a.sum())

    def interior_point(self, tol: float, max_iter: int = 100) -> tuple[Array, float]:
        """Mehrotra's predictor-corrector method from the middle of the box, to a complementarity of ``tol``: (a, b)."""
        C, g, s = self.C, self.g, self.s
        Q = self.part(np.arange(len(C)))
        a, b = 0.5 * C, 0.0
        slope = Q @ a - 1.0
        z = np.maximum(1.0, slope)  # multipliers of a >= 0 and of a <= C
        v = np.maximum(1.0, -slope)
        goal = tol * float(C.sum())
        for _ in range(max_iter):
            room = C - a
            if not (room.min() > 0 and a.min() > 0) or deadline.passed():  # the distance to a bound is round-off
                break
            residual = Q @ a - 1.0 - z + v + (0.0 if g is None else b * g)
            balance = 0.0 if g is None else float(g @ a) - s * b
            mu = float(a @ z + room @ v) / (2 * len(a))
            if 2 * len(a) * mu <= goal and float(np.abs(residual) @ a) + abs(balance * b) <= goal:
                break
            step = _Step(Q, self, a, room, z, v, residual, balance)
            if step.factor is None:
                break  # the limit of double precision; the certificate measures the accuracy
            da, db, dz, dv = step.direction(-a * z, -room * v)
            length = _longest(((a, da), (room, -da), (z, dz), (v, dv)))
            reached = float((a + length * da) @ (z + length * dz) + (room - length * da) @ (v + length * dv))
            centre = mu * (reached / (2 * len(a) * mu)) ** 3
            da, db, dz, dv = step.direction(centre - a * z - da * dz, centre - room * v + da * dv)
            length = TO_BOUNDARY * _longest(((a, da), (room, -da), (z, dz), (v, dv)))
            if not np.isfinite(length) or length < SHORTEST:
                break
            a, b, z, v = a + length * da, b + length * db, z + length * dz, v + length * dv
        return np.clip(a, 0.0, C), b

    def polish(self, a: Array, b: float, goal: float, rounds: int = 10) -> tuple[Array, float]:
        """An active-set method: solve exactly for fixed rows at the bounds, and update these rows.

        It ends when the gap is below ``goal``, and returns the best point found.
        """
        image = self.times(a) + self.offset
        best, gap = (a, b), self.gap(a, b, image)
        curvature = np.maximum(self.K.diagonal(), np.finfo(float).tiny)
        for _ in range(rounds):
            # a row is free if a Newton step in this row alone, a + slope / curvature, stays inside the box
            slope = 1.0 - image - (0.0 if self.g is None else b * self.g)
            at_top = slope >= (self.C - a) * curvature
            free = (slope > -a * curvature) & ~at_top
            held = np.where(at_top, self.C, 0.0)
            held_image = self._moved(image, held - a)
            solved = None if deadline.passed() else self._with_free(np.flatnonzero(free), held, held_image, b)
            if solved is None:
                break
            a, b = solved
            image = self._moved(held_image, a - held)
            inside = np.clip(a, 0.0, self.C)
            exact = np.array_equal(inside, a)
            reached = self.gap(inside, b, image if exact else self._moved(image, inside - a))
            if reached < gap and (self.g is None or self.s == 0 or exact):
                best, gap = (inside, b), reached
            if gap <= goal:
                break
        return best

    def _moved(self, image: Array, change: Array) -> Array:
        """Q a after a change of a, which often has few nonzero rows."""
        rows = np.flatnonzero(change)
        if 4 * rows.size > change.size:
            return image + self.times(change)
        return np.asarray(image + self.y * ((self.y[rows] * change[rows]) @ self.K[rows]))

    def _with_free(self, rows: np.ndarray, held: Array, image: Array, b: float) -> tuple[Array, float] | None:
        """Exact values of the free rows and of b, with the other rows fixed at ``held``; ``image`` is Q held."""
        a, right = held.copy(), 1.0 - image[rows]
        part = self.part(rows)
        factor = _factor(part)
        if factor is None:
            self.require_psd(part)
            return None

        def solved(v: Array) -> Array:
            return np.asarray(scipy.linalg.lapack.dpotrs(factor, v, lower=1)[0]).ravel() if rows.size else v

        if self.g is not None:
            border = solved(self.g[rows])
            schur = float(self.g[rows] @ border) + self.s
            if schur <= 0:
                return None
            b = (float(border @ right) + float(self.g @ a)) / schur
            right = right - b * self.g[rows]
        a[rows] = solved(right)
        return (a, b) if np.isfinite(a).all() else None


class _Step:
    """One factorisation of the Newton system, for predictor and corrector; ``factor`` is None if it failed."""

    def __init__(
        self, Q: Array, program: BoxProgram, a: Array, room: Array, z: Array, v: Array, residual: Array, balance: float
    ) -> None:
        self.program, self.a, self.room, self.z, self.v = program, a, room, z, v
        self.residual, self.balance = residual, balance
        system = Q.copy()
        diagonal = np.einsum("ii->i", system)
        shift = z / a + v / room
        diagonal += shift
        self.factor = _factor(system)
        if self.factor is None:
            program.require_psd(Q)
        self.border = None if program.g is None or self.factor is None else self._solve(program.g)

    def _solve(self, right: Array) -> Array:
        return np.asarray(scipy.linalg.lapack.dpotrs(self.factor, right, lower=1)[0]).ravel()

    def direction(self, at_zero: Array, at_top: Array) -> tuple[Array, float, Array, Array]:
        """The Newton direction for given changes of the products a z and (C - a) v."""
        right = -self.residual + at_zero / self.a - at_top / self.room
        da, db, g = self._solve(right), 0.0, self.program.g
        if g is not None and self.border is not None:
            db = (float(g @ da) + self.balance) / (float(g @ self.border) + self.program.s)
            da = da - db * self.border
        dz = (at_zero - self.z * da) / self.a
        dv = (at_top + self.v * da) / self.room
        return da, db, dz, dv


def _factor(Q: Array) -> Array | None:
    """The Cholesky factor of Q, or of Q with the smallest shift that makes it positive definite; None if none does."""
    if not Q.size:
        return Q
    for shift in SHIFTS:
        shifted = Q if shift == 0 else Q + shift * float(Q.diagonal().max()) * np.eye(len(Q))
        factor, failed = scipy.linalg.lapack.dpotrf(shifted, lower=1, clean=0)
        if not failed:
            return np.asarray(factor)
    return None


def _longest(pairs: tuple[tuple[Array, Array], ...]) -> float:
    """The largest step size of at most 1 that keeps all variables nonnegative."""
    length = 1.0
    for x, dx in pairs:
        falling = dx < 0
        if falling.any():
            length = min(length, float(np.min(-x[falling] / dx[falling])))
    return length
