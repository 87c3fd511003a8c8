"""Upper bounds of the conjugate of a function that is given by a cone program, valid despite an inexact solver.

    f(x) = min over a of  c'v + 1/2 v'Pv + constant  subject to  b - A v in K,      v = (x, a)

By weak duality, every y in the dual cone and every z with ``A'y + P z + c = u`` (u on the entries of x, zero on those
of a) prove ``f*(u) <= b'y + 1/2 z'Pz - constant``. A cone solver returns such a pair only up to residuals, which are
removed here. First y is moved onto the linear equations by least squares, and then, because that may leave the cone,
towards a fixed interior point y0 that belongs to u0. The pair (y1, z1) is computed for a point slightly beyond u, such
that (y1 + share y0) / (1 + share) belongs to u exactly. What is left in the equations is round-off, and is charged.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from cvxstructreg.expressions.cone_program import ConeProgram
from cvxstructreg.expressions.cone_solver import ConeSolver
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.runtime.lazy import cached_property

#: The shares of the interior point that are tried.
SHARES = (1e-9, 1e-8, 1e-7, 1e-6)
#: Steps of iterative refinement of the least squares, and their regularisation.
REFINE, SMALL = 4, 1e-12
#: A residual of the equations above this part of their summands is more than round-off.
EXACT = 1e-12
#: The lengths of random points, relative to the costs, whose multipliers are averaged for the interior point.
LENGTHS = (0.1, 0.1, 0.3, 0.3, 1.0, 1.0, 3.0)
#: Variables at the optimum are assumed to be at most this many times those of the solver, for charging round-off.
REACH = 100.0
#: The accuracies at which central multipliers are computed.
LOOSE = (1e-1, 1e-2, 1e-3)
#: A multiplier that is never above this part of the largest one is zero.
IDLE = 1e-7


class DualBound:
    """Bounds of f* and, for homogeneous f, of its dual gauge."""

    def __init__(self, program: ConeProgram) -> None:
        self.program = program
        self.solver, self.with_square = ConeSolver(program, False), ConeSolver(program, True)

    def __getstate__(self) -> dict[str, Any]:
        return {"program": self.program, "solver": self.solver, "with_square": self.with_square}

    def conj(self, u: Array) -> float:
        """A number that f*(u) does not exceed; infinite if none was found."""
        q = self.program.c - self._spread(u)
        for (y0, z0, u0), share in itertools.product(self.centres, SHARES):
            target = self.program.c - self._spread(u + share * (u - u0))
            found = self.solver.solve(target)
            if not found.solved:
                continue
            y, z = self._corrected(found.y, found.v, target, on_x=True)
            y, z = (y + share * y0) / (1.0 + share), (z + share * z0) / (1.0 + share)
            if self.program.cones.dual_contains(y):
                return self._charged(y, z, q, found.v)
        return np.inf

    def dual_gauge(self, u: Array) -> float:
        """The smallest number t with u / t in the domain of f*, or a slightly larger one; infinite if none was found.

        For a homogeneous f this is max <u, x> over f(x) <= 1, the dual norm. Otherwise it is that of the recession
        function of f, which is infinite where squares grow.
        """
        size = float(np.linalg.norm(u))
        if size == 0.0:
            return 0.0
        if self.interior is None:
            return np.inf
        y0, z0, u0 = self.interior
        squares = self.program.P.nnz
        place, start = self._level_row, self.program.n_variables if squares else 0
        for share in SHARES:  # A'y + level c = u, with y = y1 + share y0 and level = level1 + share
            target = -self._spread(u / size - share * u0)
            found = self._gauge_solver.solve(target)
            if not found.solved:
                break
            z, y = found.y[:start], np.delete(found.y, place)[start:]
            z, level = (z if start else np.zeros(self.program.n_variables)), max(float(found.y[place]), 0.0)
            y, z = self._corrected(y, z, level * self.program.c + target, on_x=True)
            y, z = y + share * y0, z + share * z0
            if self.program.cones.dual_contains(y):
                q = (level + share) * self.program.c - self._spread(u / size)
                left = np.abs(self.program.A.T @ y + self.program.P @ z + q)
                if np.any(left > EXACT * self._summands(y, z, q)):
                    return np.inf
                off = REACH * float(left @ np.abs(found.v))
                found_size = size * ((level + share) * (1.0 + UNIT) + off)
                return found_size if np.isfinite(found_size) else np.inf
        return np.inf

    @property
    def centre(self) -> Array:
        """A point inside the domain of f*."""
        return self.centres[0][2] if self.centres else np.zeros(self.program.size)

    def _charged(self, y: Array, z: Array, q: Array, v: Array) -> float:
        return charged(self.program, y, z, q, v)

    def _summands(self, y: Array, z: Array, q: Array) -> Array:
        return _summands(self.program, y, z, q)

    def _spread(self, u: Array) -> Array:
        """E u: zero on the auxiliary variables."""
        spread = np.zeros(self.program.n_variables)
        spread[self.program.at] = u
        return spread

    @cached_property
    def _equations(self) -> tuple[object, object]:
        """Solvers for M'M with M = [A; P] without the idle rows, for all columns and for the auxiliary ones."""
        used = sp.diags_array((~self.idle).astype(float), format="csr")
        M = sp.vstack([used @ self.program.A, self.program.P], format="csc")
        return LeastSquares(M), LeastSquares(sp.csc_array(M[:, self.program.others]))

    def _corrected(self, y: Array, z: Array, q: Array, on_x: bool) -> tuple[Array, Array]:
        """The pair nearest to (y, z) with A'y + P z + q = 0, on all entries or on the auxiliary ones only."""
        squares = self._equations[0 if on_x else 1]
        assert isinstance(squares, LeastSquares)
        wanted, y = -q if on_x else -q[self.program.others], np.where(self.idle, 0.0, y)
        m, pair = len(y), squares.nearest(np.concatenate([y, z]), wanted)
        return pair[:m], pair[m:]

    @cached_property
    def interior(self) -> tuple[Array, Array, Array] | None:
        """(y0, z0, u0) inside the dual cone, as far as possible: an average of multipliers; None if there are none.

        With the right-hand side 0, all pieces of f meet at x = 0, and an interior-point solver returns a central
        multiplier there. Multipliers at other points extend it to the u on one side of zero.
        """
        program, usable = self.program, self._multipliers
        if not usable:
            return None
        y, z = (np.mean([pair[i] for pair in usable], axis=0) for i in (0, 1))
        y, z = self._corrected(y, z, program.c, on_x=False)
        return self._with_point(y, z) if program.cones.dual_contains(y) else None

    @cached_property
    def centres(self) -> list[tuple[Array, Array, Array]]:
        """Interior points as in :attr:`interior`, those with a low cost b'y first.

        Solved to a low accuracy, the program itself has central multipliers, which weigh the cost against the distance
        from the border. Of several accuracies, the points inside the cone are averaged.
        """
        program, found = self.program, []
        for accuracy in LOOSE:
            solver = ConeSolver(program, True, accuracy)
            answers = [solver.solve(program.c - self._spread(v), weight=1.0) for v in self._points(LENGTHS[::3])]
            y, z = (np.mean([getattr(answer, name) for answer in answers], axis=0) for name in ("y", "v"))
            y, z = self._corrected(y, z, program.c, on_x=False)
            if np.isfinite(y).all() and program.cones.dual_contains(y):
                found.append((y, z))
        near = [self._with_point(*(np.mean([pair[i] for pair in found], axis=0) for i in (0, 1)))] if found else []
        return near + ([] if self.interior is None else [self.interior])

    def _with_point(self, y: Array, z: Array) -> tuple[Array, Array, Array]:
        """(y, z) and the u that they belong to."""
        program = self.program
        return y, z, np.asarray((program.A.T @ y + program.P @ z + program.c)[program.at])

    @cached_property
    def idle(self) -> Any:
        """Inequalities whose multiplier is zero at all these points: a bound may always leave rows out."""
        rows = np.zeros(self.program.b.size, dtype=bool)
        start, end = self.program.cones.zero, self.program.cones.zero + self.program.cones.nonneg
        if self._multipliers and end > start:
            largest = np.max([y[start:end] for y, _ in self._multipliers], axis=0)
            rows[start:end] = largest <= IDLE * max(float(largest.max()), 1e-300)
        return rows

    @cached_property
    def _multipliers(self) -> list[tuple[Array, Array]]:
        """(y, v) at several points of the program with right-hand side 0."""
        none = np.zeros(self.program.b.size)
        costs = [self.program.c - self._spread(v) for v in self._points(LENGTHS)]
        found = [self.with_square.solve(q, weight=1.0, b=none) for q in costs]
        return [(answer.y, answer.v) for answer in found if answer.status == "Solved"]

    def _points(self, lengths: tuple[float, ...]) -> list[Array]:
        """Zero, and random pairs of opposite points."""
        rng, size = np.random.default_rng(0), float(np.abs(self.program.c).max(initial=0.0)) or 1.0
        points = [length * size * rng.normal(size=self.program.size) for length in lengths]
        return [np.zeros(self.program.size), *points, *(-v for v in points)]

    @property
    def _level_row(self) -> int:
        """The last of the nonnegative rows, in which the recession function is at most 1; after those of P v = 0."""
        squares = self.program.n_variables if self.program.P.nnz else 0
        return squares + self.program.cones.zero + self.program.cones.nonneg

    @cached_property
    def _gauge_solver(self) -> ConeSolver:
        """max <u, x> over f(x) <= 1, for the recession function of f."""
        program, n = self.program, self.program.n_variables
        A = sp.vstack([program.P, program.A], format="csr") if program.P.nnz else sp.csr_array(program.A)
        at, b = self._level_row, np.zeros(A.shape[0] + 1)
        b[at] = 1.0
        A = sp.vstack([A[:at], sp.csr_array(program.c[None, :]), A[at:]], format="csc")
        zero = program.cones.zero + (n if program.P.nnz else 0)
        cones = replace(program.cones, zero=zero, nonneg=program.cones.nonneg + 1)
        return ConeSolver(replace(program, P=sp.csc_array((n, n)), A=A, b=b, cones=cones), False)


def charged(program: ConeProgram, y: Array, z: Array, q: Array, v: Array) -> float:
    """b'y + 1/2 z'Pz - constant, plus what the round-off in A'y + P z + q = 0 may cost; infinite if that is more."""
    left = np.abs(program.A.T @ y + program.P @ z + q)
    if np.any(left > EXACT * _summands(program, y, z, q)):
        return np.inf
    square = 0.5 * float(z @ (program.P @ z))
    value, size = float(program.b @ y) + square, float(np.abs(program.b) @ np.abs(y)) + square
    off = UNIT * (size + abs(program.constant)) + REACH * float(left @ np.maximum(np.abs(v), np.abs(z)))
    bound = value - program.constant + off
    return bound if np.isfinite(bound) else np.inf


def _summands(program: ConeProgram, y: Array, z: Array, q: Array) -> Array:
    """The size of what adds up to zero in the equations, at least that of an average entry."""
    sizes = abs(program.A).T @ np.abs(y) + abs(program.P) @ np.abs(z) + np.abs(q)
    return np.asarray(sizes + np.mean(sizes))


class LeastSquares:
    """Least squares with a sparse M: the nearest point that satisfies M'p = right."""

    def __init__(self, M: sp.csc_array) -> None:
        self.M, self.adjoint = M, sp.csr_array(M.T)
        gram = sp.csc_array(M.T @ M)
        scale = float(gram.diagonal().max(initial=0.0)) or 1.0
        self.factor = spla.splu(gram + SMALL * scale * sp.eye_array(gram.shape[0], format="csc")) if gram.nnz else None

    def nearest(self, p: Array, right: Array) -> Array:
        """p + M (M'M)^-1 (right - M'p), refined."""
        for _ in range(REFINE if self.factor is not None else 0):
            left = right - self.adjoint @ p
            if not left.any():
                break
            p = p + self.M @ self.factor.solve(left)  # type: ignore[union-attr]
        return p
