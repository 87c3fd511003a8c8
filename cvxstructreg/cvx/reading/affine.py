"""Read an affine CVXPY expression as linear maps of its variables and an offset.

CVXPY can extract such maps itself, but that takes seconds for a few million entries, much longer than most solves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.cvx.reading import names
from cvxstructreg.cvx.reading.maps import (
    Positions,
    added,
    identity,
    multiplied,
    multiplied_by_columns,
    piled,
    same,
    scaled,
    taken,
)
from cvxstructreg.cvx.reading.maps import matrix as as_matrix
from cvxstructreg.cvx.reading.refusal import UnrecognisedError, shown
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp

#: An affine function without a rule here is applied to unit vectors, up to this many.
MOST_UNITS = 2000


@dataclass(frozen=True, eq=False)
class Affine:
    """vec(e) = sum over variables v of parts[v] vec(v) + offset, all taken by columns."""

    shape: tuple[int, ...]
    parts: dict[int, Any]
    offset: Array

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.offset)

    def taken(self, rows: Positions, shape: tuple[int, ...] | None = None) -> Affine:
        """The entries at these positions."""
        parts = {v: taken(m, rows) for v, m in self.parts.items()}
        return Affine((len(rows),) if shape is None else shape, parts, self.offset[rows])

    def scaled(self, c: Any) -> Affine:
        """The entries times c."""
        return Affine(self.shape, {v: scaled(m, c) for v, m in self.parts.items()}, c * self.offset)

    def sign_of(self, other: Affine) -> int:
        """1 if the two are equal, -1 if they are equal up to the sign, else 0."""
        if self is other:
            return 1
        if self.size != other.size or self.parts.keys() != other.parts.keys():
            return 0
        signs = {same(m, other.parts[v]) for v, m in self.parts.items()}
        if len(signs) != 1:
            return 0
        sign = signs.pop()
        return sign if sign and np.array_equal(self.offset, sign * other.offset) else 0


@lru_cache(maxsize=16)
def positions(shape: tuple[int, ...]) -> Positions:
    """The positions by columns of the entries of an array; read-only."""
    made = np.arange(math.prod(shape)).reshape(shape, order="F")
    made.flags.writeable = False
    return made


def flat(array: Any) -> Array:
    """The entries of an array by columns."""
    return np.asarray(array, dtype=float).ravel(order="F")


class Reader:
    """Reads the expressions of one problem; what was read once is kept."""

    def __init__(self) -> None:
        self._affine: dict[int, Affine | None] = {}
        self._constant: dict[int, bool] = {}
        self._values: dict[int, Any] = {}
        self._kept: list[Any] = []  # so that ids stay valid

    def is_constant(self, e: Any) -> bool:
        """Whether the expression has no variables."""
        known = self._constant.get(id(e))
        if known is None:
            self._kept.append(e)
            known = not isinstance(e, cp.Variable) and all(self.is_constant(argument) for argument in e.args)
            self._constant[id(e)] = known
        return known

    def value(self, e: Any) -> Any:
        """The value of a constant expression: a dense array of numbers, or a sparse array."""
        key = id(e)
        if key not in self._values:
            found = e.value
            if found is None:
                missing = [p.name() for p in e.parameters() if p.value is None]
                raise UnrecognisedError(f"the parameter {', '.join(missing) or shown(e)} has no value; set it first")
            if np.iscomplexobj(found.data if sp.issparse(found) else found):
                raise UnrecognisedError(f"complex numbers in {shown(e)} are not supported")
            self._values[key] = sp.csr_array(found, dtype=float) if sp.issparse(found) else np.asarray(found, float)
            self._kept.append(e)
        return self._values[key]

    def number(self, e: Any) -> Array:
        """The value of a constant expression as a dense array of its shape."""
        found = self.value(e)
        return np.asarray(found.toarray() if sp.issparse(found) else found).reshape(e.shape, order="F")

    def affine(self, e: Any) -> Affine | None:
        """The maps and the offset of the expression; None if it is not affine."""
        key = id(e)
        if key not in self._affine:
            self._kept.append(e)
            self._affine[key] = self._read(e)
        return self._affine[key]

    def _read(self, e: Any) -> Affine | None:
        if isinstance(e, cp.Variable):
            return Affine(e.shape, {e.id: identity(e.size)}, np.zeros(e.size))
        if self.is_constant(e):
            return Affine(e.shape, {}, flat(self.number(e)))
        if not isinstance(e, names.AffAtom):
            return None
        read = []
        for argument in e.args:
            constant = self.is_constant(argument)
            read.append(None if constant else self.affine(argument))
            if read[-1] is None and not constant:
                return None
        if isinstance(e, names.AddExpression):
            return self._added(e)
        if isinstance(e, names.GATHERING):
            return self._gathered(e)
        if sum(a is not None for a in read) != 1:
            return None  # a product of variables
        which = next(i for i, a in enumerate(read) if a is not None)
        inner = read[which]
        assert inner is not None
        if isinstance(e, names.NegExpression):
            return inner.scaled(-1.0)
        if isinstance(e, names.Sum):
            return self._summed(e, inner)
        if isinstance(e, names.DivExpression):
            return self._times(e, inner, 1.0 / self.number(e.args[1])) if which == 0 else None
        if isinstance(e, names.multiply):
            return self._times(e, inner, self.number(e.args[1 - which]))
        if isinstance(e, names.MulExpression):
            return self._product(e, inner, which)
        return self._by_units(e, inner, which)

    def _spread(self, inner: Affine, shape: tuple[int, ...]) -> Affine:
        """The expression broadcast to a shape."""
        if inner.shape == shape:
            return inner
        return inner.taken(flat(np.broadcast_to(positions(inner.shape), shape)).astype(np.int64), shape)

    def _added(self, e: Any) -> Affine:
        parts: dict[int, Any] = {}
        offset = np.zeros(e.size)
        for argument in e.args:
            inner = self.affine(argument)
            assert inner is not None
            inner = self._spread(inner, e.shape)
            offset = offset + inner.offset
            for v, m in inner.parts.items():
                parts[v] = added(parts[v], m) if v in parts else m
        return Affine(e.shape, parts, offset)

    def _times(self, e: Any, inner: Affine, c: Array) -> Affine:
        inner = self._spread(inner, e.shape)
        factors = float(c.ravel()[0]) if c.size == 1 else flat(np.broadcast_to(c, e.shape))
        return Affine(e.shape, inner.scaled(factors).parts, factors * inner.offset)

    def gathered_positions(self, e: Any) -> list[Positions]:
        """For each entry of e: which entry of its arguments, one after the other, it is; in the shape of e."""
        if len(e.args) == 1:
            at = e.numeric([positions(e.args[0].shape)])
            return [np.asarray(at).reshape(e.shape, order="F").astype(np.int64, copy=False)]
        first, arrays = 0, []
        for argument in e.args:
            arrays.append(first + positions(argument.shape))
            first += argument.size
        return [np.asarray(e.numeric(arrays)).reshape(e.shape, order="F").astype(np.int64)]

    def _gathered(self, e: Any) -> Affine:
        (at,) = self.gathered_positions(e)
        inner = [self.affine(argument) for argument in e.args]
        if len(inner) == 1 and inner[0] is not None:
            return inner[0].taken(at.ravel(order="F"), e.shape)
        variables = {v: m.shape[1] for a in inner if a is not None for v, m in a.parts.items()}
        parts: dict[int, Any] = {}
        for v, width in variables.items():
            blocks = [
                as_matrix(a.parts[v]) if v in a.parts else sp.csr_array((a.size, width)) for a in inner if a is not None
            ]
            parts[v] = piled(blocks)
        offset = np.concatenate([a.offset for a in inner if a is not None])
        return Affine((len(offset),), parts, offset).taken(at.ravel(order="F"), e.shape)

    def _summed(self, e: Any, inner: Affine) -> Affine:
        ones = np.broadcast_to(_kept_axes(positions(e.shape), e), inner.shape).ravel(order="F")
        S = sp.csr_array((np.ones(inner.size), (ones, np.arange(inner.size))), shape=(e.size, inner.size))
        return Affine(e.shape, {v: multiplied(S, m) for v, m in inner.parts.items()}, S @ inner.offset)

    def _product(self, e: Any, inner: Affine, which: int) -> Affine | None:
        C, E = e.args[1 - which], e.args[which]
        if C.ndim > 2 or E.ndim > 2:
            return None
        c = self.value(C)
        if which == 1:  # C @ E
            A = c.reshape(1, -1) if C.ndim == 1 else c
            k = E.shape[1] if E.ndim == 2 else 1
            parts = {v: multiplied_by_columns(A, m, k) for v, m in inner.parts.items()}
            offset = A @ inner.offset.reshape((-1, k), order="F")
        else:  # E @ C: rows of E
            p = E.shape[0] if E.ndim == 2 else 1
            A = sp.csr_array(c.reshape(-1, 1) if C.ndim == 1 else c).T
            S = sp.csr_array(sp.kron(A, sp.eye_array(p), format="csr"))
            parts = {v: multiplied(S, m) for v, m in inner.parts.items()}
            offset = S @ inner.offset
        return Affine(e.shape, parts, flat(offset) if np.any(offset) else np.zeros(e.size))

    def _by_units(self, e: Any, inner: Affine, which: int) -> Affine | None:
        """Any other affine function: its matrix from unit vectors."""
        E = e.args[which]
        if E.size > MOST_UNITS or not e.is_affine():
            return None
        values = [None if i == which else self.number(argument) for i, argument in enumerate(e.args)]

        def applied(x: Array) -> Array:
            values[which] = x.reshape(E.shape, order="F")
            return flat(e.numeric(values))

        start = applied(np.zeros(E.size))
        columns = [sp.csc_array((applied(unit) - start)[:, None]) for unit in np.eye(E.size)]
        S = sp.csr_array(sp.hstack(columns, format="csr"))
        parts = {v: multiplied(S, m) for v, m in inner.parts.items()}
        return Affine(e.shape, parts, start + S @ inner.offset)


def _kept_axes(array: Any, e: Any) -> Any:
    """An array of the shape of an atom that reduces axes, with these axes of length one."""
    if getattr(e, "keepdims", False):
        return array
    if e.axis is None:
        return np.reshape(array, (1,) * e.args[0].ndim)
    return np.expand_dims(array, e.axis)


def spread_over_axes(weights: Array, e: Any) -> Array:
    """Weights of the entries of an atom that reduces axes, as weights of the entries of its argument."""
    return np.broadcast_to(_kept_axes(weights, e), e.args[0].shape)
