"""Bounds of single entries, from attributes of variables and from constraints, and their multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.cvx.reading import names
from cvxstructreg.cvx.reading.affine import Affine, Reader
from cvxstructreg.cvx.reading.layout import Layout
from cvxstructreg.forms.separable import Separable
from cvxstructreg.numerics.arrays import Array

#: A weight is at its bound if it is this near, relative to the size of the bound.
AT_BOUND = 1e-9
#: A violation of a bound that counts as the inaccuracy of a solver, relative to the value.
SLIGHT = 1e-6


@dataclass(frozen=True, eq=False)
class Bounding:
    """A constraint whose rows are bounds: ``a_i x[at_i] <= limit_i``, ``>=`` if a_i < 0, or an equation.

    ``rows`` is the entry of the constraint that each row belongs to.
    """

    constraint: Any
    rows: Any
    at: Any
    factors: Array
    limits: Array
    is_equation: bool = False


class InfeasibleBoundsError(Exception):
    """The bounds of a problem contradict each other."""


class Bounds:
    """Lower and upper bounds of all entries."""

    def __init__(self, layout: Layout) -> None:
        self.lower, self.upper = np.full(layout.size, -np.inf), np.full(layout.size, np.inf)
        self.bounding: list[Bounding] = []
        for variable in layout.variables:
            first = layout.first[variable.id]
            own = slice(first, first + variable.size)
            given = variable.attributes
            if given.get("nonneg") or given.get("pos"):
                self.lower[own] = 0.0
            if given.get("nonpos") or given.get("neg"):
                self.upper[own] = 0.0
            if given.get("bounds") is not None:
                lower, upper = (np.broadcast_to(_number(b), variable.shape).ravel("F") for b in given["bounds"])
                self.lower[own] = np.maximum(self.lower[own], lower)
                self.upper[own] = np.minimum(self.upper[own], upper)

    @property
    def given(self) -> Any:
        """Which entries have a bound."""
        return np.isfinite(self.lower) | np.isfinite(self.upper)

    def take(self, constraint: Any, reader: Reader, layout: Layout) -> bool:
        """Add a constraint if it consists of bounds of single entries."""
        found = _read(constraint, reader, layout)
        for bounding in found or ():
            up = (bounding.factors > 0) | bounding.is_equation
            down = (bounding.factors < 0) | bounding.is_equation
            limits = bounding.limits / bounding.factors
            np.minimum.at(self.upper, bounding.at[up], limits[up])
            np.maximum.at(self.lower, bounding.at[down], limits[down])
            self.bounding.append(bounding)
        return found is not None

    def take_atom(self, affine: Affine, part: Separable, layout: Layout) -> bool:
        """Add the bounds of an atom of this library, if its argument has one entry of a variable in each row."""
        K = layout.rows([affine])
        K.sum_duplicates()
        K.eliminate_zeros()
        if np.any(np.diff(K.indptr) != 1):
            return False
        shape = affine.shape if len(affine.shape) == 2 else (affine.size, 1)
        ends = [np.broadcast_to(end, shape).ravel(order="F") - affine.offset for end in (part.lower, part.upper)]
        first, last = (end / K.data for end in ends)
        np.maximum.at(self.lower, K.indices, np.minimum(first, last))
        np.minimum.at(self.upper, K.indices, np.maximum(first, last))
        return True

    def near(self, x: Array) -> Array:
        """x, moved to bounds that it violates by little, as the solutions of interior-point solvers do."""
        inside = np.clip(x, self.lower, self.upper)
        return np.where(np.abs(inside - x) <= SLIGHT * (1.0 + np.abs(x)), inside, x)

    def check(self) -> None:
        """Raise if no point satisfies the bounds."""
        if np.any(self.lower > self.upper):
            raise InfeasibleBoundsError

    def multipliers(self, x: Array, normal: Array) -> dict[int, Array]:
        """The multipliers of the constraints at x; ``normal`` is positive where an upper bound holds x back."""
        rest = normal.copy()
        found: dict[int, Array] = {}
        for bounding in self.bounding:
            limits = bounding.limits / bounding.factors
            tight = np.abs(x[bounding.at] - limits) <= AT_BOUND * (1.0 + np.abs(limits))
            size = np.zeros(int(bounding.constraint.size) if bounding.constraint.size else 1)
            for i, at in enumerate(bounding.at):
                share = rest[at] / bounding.factors[i]
                if tight[i] and (bounding.is_equation or share > 0):
                    size[bounding.rows[i]] += share
                    rest[at] = 0.0
            found[bounding.constraint.id] = found.get(bounding.constraint.id, np.zeros(size.size)) + size
        return found


def _number(bound: Any) -> Array:
    value = bound.value if hasattr(bound, "value") else bound
    return np.asarray(value, dtype=float)


def _read(constraint: Any, reader: Reader, layout: Layout) -> list[Bounding] | None:
    if isinstance(constraint, names.Inequality):
        left, right = constraint.args
        if isinstance(left, names.absolute | names.norm_inf) and reader.is_constant(right):
            return _two_sided(constraint, left, reader, layout)
    if isinstance(constraint, names.Inequality | names.Equality):
        affine, sign = reader.affine(constraint.expr), 1.0
    elif isinstance(constraint, names.NonPos | names.Zero | names.NonNeg):
        affine, sign = reader.affine(constraint.args[0]), -1.0 if isinstance(constraint, names.NonNeg) else 1.0
    else:
        return None
    if affine is None:
        return None
    found = _single(constraint, affine.scaled(sign), -sign * affine.offset, layout)
    return None if found is None else [found]


def _two_sided(constraint: Any, left: Any, reader: Reader, layout: Layout) -> list[Bounding] | None:
    """|z| <= c and max |z| <= c."""
    affine = reader.affine(left.args[0])
    scalar = isinstance(left, names.norm_inf)
    if affine is None or (scalar and left.axis is not None):
        return None
    c = np.broadcast_to(reader.number(constraint.args[1]), left.args[0].shape).ravel(order="F")
    pair = [_single(constraint, affine.scaled(sign), c - sign * affine.offset, layout, scalar) for sign in (1.0, -1.0)]
    found = [part for part in pair if part is not None]
    return found if len(found) == 2 else None


def _single(constraint: Any, affine: Affine, limits: Array, layout: Layout, scalar: bool = False) -> Bounding | None:
    """The bounds of an affine expression with one entry of a variable in each row."""
    K = layout.rows([affine])
    K.sum_duplicates()
    K.eliminate_zeros()
    counts = np.diff(K.indptr)
    if np.any(counts > 1):
        return None
    is_equation = isinstance(constraint, names.Equality | names.Zero)
    empty = limits[counts == 0]  # rows 0 <= limit
    if np.any(empty < 0) or (is_equation and np.any(empty)):
        raise InfeasibleBoundsError
    rows = np.zeros(affine.size, dtype=int) if scalar else np.arange(affine.size)
    return Bounding(constraint, rows[counts == 1], K.indices, K.data, limits[counts == 1], is_equation)
