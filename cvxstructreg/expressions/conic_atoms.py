"""Penalties whose prox and conjugate come from the cone program of their expression."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.expressions.cone_program import ConeProgram
from cvxstructreg.expressions.dual_bound import DualBound
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp

#: The shortest step of a prox, relative to the size of the point: shorter ones have no effect on it.
SHORTEST = 1e-9
#: A dual point outside the domain of the conjugate is moved this far inside.
INSIDE = 1e-7
#: The shares of the way to the interior of a domain that are tried.
SHARES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
#: How many results of the conjugate or of the dual norm are kept.
RECENT = 4


class WrittenPenalty(Atom):
    """A penalty given by an expression: the definition, its value, and nothing else."""

    formula: ClassVar[str] = "f(w)"

    def __init__(self, written: Any, shape: tuple[int, int]) -> None:
        self.written, self.shape = written, shape

    @property
    def size(self) -> int | None:
        """Number of rows."""
        return int(self.shape[0])

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        expression: cp.Expression = self.written.expr(z)
        return expression

    def value(self, z: Array) -> float:
        """f(z); infinite outside the domain."""
        return float(self.written.value(z))

    def is_nonnegative(self, shape: tuple[int, int]) -> bool:
        """As for the expression."""
        return bool(self.written.is_nonnegative(shape))

    def __repr__(self) -> str:
        return repr(self.written)


class ConicPenalty(WrittenPenalty):
    """A penalty with the prox of its cone program, for each column of the argument or for all together."""

    def __init__(self, written: Any, shape: tuple[int, int], program: ConeProgram) -> None:
        super().__init__(written, shape)
        self.program, self.bound = program, DualBound(program)
        self.recent: deque[tuple[bytes, float]] = deque(maxlen=RECENT)

    def _columns(self, z: Array) -> list[Array]:
        """The arguments of the program: all entries by columns, or each column."""
        return [z.ravel(order="F")] if self.program.size == z.size else [z[:, j] for j in range(z.shape[1])]

    def _joined(self, columns: list[Array], shape: tuple[int, ...]) -> Array:
        if len(columns) == 1:
            return columns[0].reshape(shape, order="F")
        return np.column_stack(columns)

    def prox(self, v: Array, t: float) -> Array:
        """argmin_x  t f(x) + 1/2 ||x - v||^2, by the cone program with a square added."""
        step = max(float(t), SHORTEST * (1.0 + float(np.abs(v).max(initial=0.0))))
        found = [self._prox(column, step) for column in self._columns(v)]
        if any(x is None for x in found):
            return Atom.prox(self, v, step)
        return self._joined([x for x in found if x is not None], v.shape)

    def _prox(self, v: Array, t: float) -> Array | None:
        unit = max(1.0, t)
        q = t * self.program.c / unit
        q[self.program.at] -= v / unit
        answer = self.bound.with_square.solve(q, factor=t / unit, weight=1.0 / unit)
        return answer.v[self.program.at] if answer.solved else None

    def _remembered(self, u: Array, compute: Callable[[Array], float], join: Callable[[list[float]], float]) -> float:
        """The joined results for all columns; those of the last arrays are kept, since certificates ask repeatedly."""
        key = u.tobytes()
        for known, result in tuple(self.recent):
            if known == key:
                return result
        result = float(join([compute(column) for column in self._columns(u)]))
        self.recent.append((key, result))
        return result

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"recent": deque(maxlen=RECENT)}

    def flat(self) -> Array | None:
        """The directions along which f does not change, for a function of each column."""
        by_column = self.program.size == self.shape[0]
        return self.program.flat if by_column and self.program.flat.size else None

    def _without_flat(self, u: Array) -> Array:
        N = self.flat()
        return u if N is None else u - N @ (N.T @ u)


class ConicFunction(ConicPenalty):
    """Such a penalty with a bound of its conjugate."""

    def conj(self, u: Array) -> float:
        """A number that f*(u) does not exceed, larger by about the accuracy of the cone solver."""
        return self._remembered(u, lambda column: self.bound.conj(column), sum)

    def into_domain(self, u: Array) -> Array:
        """u, or the first point on the way from u to the interior of the domain that is inside it."""
        inside = self._joined([self.bound.centre for _ in self._columns(u)], u.shape)
        moved = u if self.conj(u) < np.inf else self._without_flat(u)
        for share in SHARES:
            if self.conj(moved + share * (inside - moved)) < np.inf:
                return np.asarray(moved + share * (inside - moved))
        return inside

    def largest_factor(self, u: Array) -> float:
        """1 / (the gauge of the domain of f*), a little less to be inside despite the accuracy of the cone solver."""
        size = max(self.bound.dual_gauge(column) for column in self._columns(u))
        return (1.0 - INSIDE) / size if size > 0.0 else np.inf


class ConicNorm(ConicPenalty):
    """Such a penalty that is a norm or seminorm, with a bound of its dual norm."""

    def dual_norm(self, u: Array) -> float:
        """A number that the dual norm does not exceed, larger by about the accuracy of the cone solver."""
        return self._remembered(u, lambda column: self.bound.dual_gauge(column), max)

    def into_domain(self, u: Array) -> Array:
        """u without its part along flat directions, scaled into the dual ball."""
        if self.dual_norm(u) <= 1.0:
            return u
        u = self._without_flat(u)
        size = self.dual_norm(u)
        return u / (size * (1.0 + INSIDE)) if 1.0 < size < np.inf else u


def conic_penalty(written: Any, shape: tuple[int, int], program: ConeProgram) -> WrittenPenalty:
    """The penalty with all that its cone program gives: a dual norm, a conjugate, or only the definition."""
    if program.is_homogeneous and _is_even(written.value, shape):
        norm = ConicNorm(written, shape, program)
        if norm.bound.interior is not None:
            return norm
    function = ConicFunction(written, shape, program)
    return function if function.bound.centres else WrittenPenalty(written, shape)


def _is_even(value: Callable[[Array], float], shape: tuple[int, int]) -> bool:
    """Whether f(-z) = f(z) at a few random points."""
    rng = np.random.default_rng(0)
    points = [rng.normal(size=shape) for _ in range(3)]
    return all(abs(value(z) - value(-z)) <= 1e-9 * (1.0 + abs(value(z))) for z in points)
