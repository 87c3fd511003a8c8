"""Linear maps of the entries of one variable, taken by columns, in the forms that plain problems have.

A map is one of four: :class:`Picks`, entries times numbers; :class:`Columns`, one matrix for each column of a matrix
variable; :class:`ScaledRows`, a matrix with factors of its rows, which are often undone later; or a matrix, dense or
sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxstructreg.numerics.arrays import Array

Positions = NDArray[np.int64]
#: A dense matrix with more than this part of its columns unused is stored sparse.
MOSTLY_EMPTY = 0.5


@dataclass(frozen=True, eq=False)
class Picks:
    """z_i = coef_i x[at_i]; ``coef`` None stands for ones."""

    at: Positions
    coef: Array | None
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the map."""
        return len(self.at), self.width

    @property
    def factors(self) -> Array:
        """The coefficients as an array."""
        return np.ones(len(self.at)) if self.coef is None else self.coef

    @property
    def is_identity(self) -> bool:
        """Whether z = x."""
        return self.coef is None and len(self.at) == self.width and bool(np.all(self.at == np.arange(self.width)))


@dataclass(frozen=True, eq=False)
class Columns:
    """vec(Z) = vec(A X) for a matrix X with k columns."""

    A: Any
    k: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the map."""
        return int(self.A.shape[0]) * self.k, int(self.A.shape[1]) * self.k


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """diag(factors) A; large matrices are copied only if the factors are not ones in the end."""

    factors: Array
    A: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the map."""
        return int(self.A.shape[0]), int(self.A.shape[1])


def identity(size: int) -> Picks:
    """The map z = x."""
    return Picks(np.arange(size), None, size)


def matrix(m: Any) -> Any:
    """The map as a dense array or a sparse array."""
    if isinstance(m, Picks):
        return sp.csr_array((m.factors, m.at, np.arange(len(m.at) + 1)), shape=m.shape)
    if isinstance(m, Columns):
        A = matrix(m.A)
        return A if m.k == 1 else sp.csr_array(sp.kron(sp.eye_array(m.k), sp.csr_array(A), format="csr"))
    if isinstance(m, ScaledRows):
        if np.all(m.factors == 1.0):
            return m.A
        if not sp.issparse(m.A):
            return m.factors[:, None] * m.A
        A = sp.csr_array(m.A)
        data = A.data * np.repeat(m.factors, np.diff(A.indptr))
        return sp.csr_array((data, A.indices, A.indptr), shape=A.shape)
    return m


def column(m: Any, at: int) -> Array:
    """One column of a map."""
    if isinstance(m, ScaledRows):
        return m.factors * column(m.A, at)
    entries = matrix(m)[:, [at]]
    return np.asarray(entries.toarray() if sp.issparse(entries) else entries)[:, 0]


def scaled(m: Any, c: Any) -> Any:
    """diag(c) m for a number or a vector c."""
    if np.ndim(c) == 0 and float(c) == 1.0:
        return m
    if isinstance(m, Picks):
        return Picks(m.at, np.broadcast_to(c, len(m.at)) * m.factors, m.width)
    if isinstance(m, Columns):
        if np.ndim(c) == 0:
            return Columns(scaled(m.A, c), m.k)
        by_column = np.reshape(c, (-1, m.k), order="F")
        if np.all(by_column == by_column[:, :1]):
            return Columns(scaled(m.A, by_column[:, 0]), m.k)
        m = matrix(m)
    factors = np.broadcast_to(np.asarray(c, dtype=float), m.shape[0])
    return ScaledRows(factors * m.factors, m.A) if isinstance(m, ScaledRows) else ScaledRows(factors, m)


def taken(m: Any, rows: Positions) -> Any:
    """The rows of the map at these positions."""
    if len(rows) == m.shape[0] and np.array_equal(rows, np.arange(len(rows))):
        return m
    if isinstance(m, Picks):
        return Picks(m.at[rows], None if m.coef is None else m.coef[rows], m.width)
    if isinstance(m, ScaledRows):
        return ScaledRows(m.factors[rows], taken(m.A, rows))
    A = matrix(m)
    return (sp.csr_array(A) if sp.issparse(A) else A)[rows]


def added(a: Any, b: Any) -> Any:
    """a + b."""
    if isinstance(a, Columns) and isinstance(b, Columns) and a.k == b.k:
        return Columns(added(a.A, b.A), a.k)
    a, b = matrix(a), matrix(b)
    if sp.issparse(a) and sp.issparse(b):
        return sp.csr_array(a + b)
    return _dense(a) + _dense(b)


def multiplied(A: Any, m: Any) -> Any:
    """A m for a matrix A."""
    A = matrix(A)
    if isinstance(m, Picks):
        if m.is_identity:
            return A
        columns = A * m.factors if not sp.issparse(A) else A @ sp.diags_array(m.factors, format="csr")
        if sp.issparse(A) or len(m.at) < MOSTLY_EMPTY * m.width or np.unique(m.at).size < len(m.at):
            return sp.csr_array(sp.csr_array(columns) @ matrix(Picks(m.at, None, m.width)))
        full = np.zeros((A.shape[0], m.width))
        full[:, m.at] = columns
        return full
    product = A @ matrix(m)
    return sp.csr_array(product) if sp.issparse(product) else np.asarray(product)


def multiplied_by_columns(A: Any, m: Any, k: int) -> Any:
    """The map of A Z for the map m of Z, which has k columns."""
    if k == 1:
        return multiplied(A, m)
    if isinstance(m, Columns) and m.k == k:
        return Columns(multiplied(A, m.A), k)
    if isinstance(m, Picks) and m.is_identity:
        return Columns(A, k)
    return multiplied(sp.csr_array(sp.kron(sp.eye_array(k), sp.csr_array(A), format="csr")), m)


def same(a: Any, b: Any) -> int:
    """1 if the maps are equal, -1 if they are equal up to the sign, else 0."""
    if a is b:
        return 1
    if a.shape != b.shape:
        return 0
    if isinstance(a, Picks) and isinstance(b, Picks):
        return _same_arrays(a.factors, b.factors) if np.array_equal(a.at, b.at) else 0
    if isinstance(a, Columns) and isinstance(b, Columns):
        return same(a.A, b.A) if a.k == b.k else 0
    if isinstance(a, ScaledRows) and isinstance(b, ScaledRows):
        return same(a.A, b.A) * _same_arrays(a.factors, b.factors)
    a, b = matrix(a), matrix(b)
    if sp.issparse(a) != sp.issparse(b):
        return 0
    if not sp.issparse(a):
        return _same_arrays(a, b)
    return 1 if not (a != b).nnz else -1 if not (a != -b).nnz else 0


def _same_arrays(a: Array, b: Array) -> int:
    if a is b or np.array_equal(a, b):
        return 1
    return -1 if np.array_equal(a, -b) else 0


def joined(blocks: list[Any]) -> Any:
    """Maps side by side, as one matrix; dense if most of it is."""
    blocks = [matrix(block) for block in blocks]
    if len(blocks) == 1:
        return blocks[0]
    stored = sum(block.nnz if sp.issparse(block) else block.size for block in blocks)
    total = blocks[0].shape[0] * sum(block.shape[1] for block in blocks)
    if stored > MOSTLY_EMPTY * total and not all(map(sp.issparse, blocks)):
        return np.hstack([_dense(block) for block in blocks])
    return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], format="csr"))


def piled(blocks: list[Any]) -> Any:
    """Maps on top of each other, as one matrix unless there is only one; sparse if one of them is."""
    if len(blocks) == 1:
        return blocks[0]
    blocks = [matrix(block) for block in blocks]
    if any(map(sp.issparse, blocks)):
        return sp.csr_array(sp.vstack([sp.csr_array(block) for block in blocks], format="csr"))
    return np.vstack(blocks)


def _dense(a: Any) -> Array:
    return a.toarray() if sp.issparse(a) else np.asarray(a)
