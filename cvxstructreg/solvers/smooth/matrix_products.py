"""Products with sparse and dense matrices, for one or several columns; compiled where that pays off."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.units import power_of_two
from cvxstructreg.runtime.lazy import cached_property

#: From this many stored entries on, compiled products make up for the time of loading the compiler.
COMPILE_FROM = 50_000
#: Bytes of a block of rows of dense data, and the number of rows below which blocks do not pay off.
BLOCK, LEAST_ROWS = 1 << 19, 16


class GramProduct:
    """scale * A'A p for a sparse matrix A."""

    def __init__(self, matrix: Any) -> None:
        self.forward = Product(matrix)
        self._weights = np.ones((matrix.shape[0], 1))

    @cached_property
    def _adjoint(self) -> Product:
        transposed = self.forward.matrix.T
        return Product(by_rows(transposed) if self.compiled else transposed)

    @property
    def compiled(self) -> bool:
        """Whether compiled products are used."""
        return self.forward.compiled is not None

    def times(self, p: Array) -> Array:
        """A'A p."""
        return self._adjoint.times(self.forward.times(p))

    def add(self, p: Array, scale: float, out: Array) -> None:
        """out += scale * A'A p."""
        if self.forward.compiled is not None and p.shape[1] == 1:
            self.forward.compiled.add_gram(scale * self._weights, p, 0.0, out)
        else:
            self._adjoint.add(self.forward.times(p), scale, out)


class DenseRows:
    """A dense matrix A in double or single precision. Blocks of rows stay in the cache between A p and A'u."""

    def __init__(self, matrix: Array) -> None:
        self._double = matrix

    @cached_property
    def _copy(self) -> tuple[Any, Array]:
        """A copy in single precision, and the squared norms of its columns, computed while a block is in the cache."""
        n, d = self._double.shape
        single, squares = np.empty_like(self._double, dtype=np.float32), np.zeros(d)
        with np.errstate(over="ignore", under="ignore"):
            for first in range(0, n, self._rows(4)):
                block = single[first : first + self._rows(4)]
                block[:] = self._double[first : first + self._rows(4)]
                squares += np.einsum("ij,ij->j", block, block)
        return single, squares

    @property
    def _single(self) -> Any:
        return self._copy[0]

    @cached_property
    def single_norms(self) -> Array:
        """The norms of the columns, accurate to single precision."""
        return np.asarray(np.sqrt(self._copy[1]))

    def _rows(self, itemsize: int) -> int:
        """The number of rows in a block."""
        n, d = self._double.shape
        size = BLOCK // (d * itemsize)
        return n if size < LEAST_ROWS else size

    def weighted_squares(self, weights: Array) -> Array:
        """The diagonal of A'diag(weights)A, by blocks of rows."""
        total = np.zeros(self._double.shape[1])
        for first in range(0, len(weights), LEAST_ROWS):
            block = self._double[first : first + LEAST_ROWS]
            total += weights[first : first + LEAST_ROWS, 0] @ block**2
        return total[:, None]

    def times(self, p: Array, single: bool = False) -> Array:
        """A p, optionally in single precision."""
        return _in_single(self._single, p) if single else np.asarray(self._double @ p)

    def pull(self, u: Array, single: bool = False) -> Array:
        """A'u, optionally in single precision."""
        return _in_single(self._single.T, u) if single else np.asarray(self._double.T @ u)

    def gram(self, weights: Array, p: Array, shift: float) -> Array:
        """A'u with u = weights * (A p + shift), in the precision of p, for one column."""
        matrix: Any = self._double if p.dtype == np.float64 else self._single
        (n, d), size = matrix.shape, self._rows(matrix.itemsize)
        column, weight = np.ascontiguousarray(p[:, 0]), weights[:, 0]
        out, part, images = np.zeros(d, p.dtype), np.empty(d, p.dtype), np.empty(n, p.dtype)
        for first in range(0, n, size):
            block, u = matrix[first : first + size], images[first : first + size]
            np.dot(block, column, out=u)
            u += shift
            u *= weight[first : first + size]
            np.dot(u, block, out=part)
            out += part
        return out[:, None]


def _in_single(matrix: Any, p: Array) -> Array:
    """A p in single precision; p is first scaled to about 1, because the range of single precision is narrow."""
    unit = power_of_two(float(np.abs(p).max(initial=0.0)))
    return np.asarray(unit * (matrix @ (p / unit).astype(np.float32)).astype(float))


class Product:
    """A p for a dense or sparse matrix A; compiled if A is sparse and p has several columns."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.compiled = CompiledRows(matrix) if _compile(matrix) else None

    def times(self, p: Array) -> Array:
        """A p."""
        return np.asarray(self.matrix @ p) if self.compiled is None or p.shape[1] == 1 else self.plus(np.zeros(1), p)

    def plus(self, start: Array, p: Array) -> Array:
        """start + A p."""
        if self.compiled is None or p.shape[1] == 1:
            return np.asarray(self.matrix @ p) + start
        out = np.empty((self.matrix.shape[0], p.shape[1]), dtype=p.dtype)
        out[:] = start
        self.compiled.add_product(p, 1.0, out)
        return out

    def add(self, p: Array, scale: float, out: Array) -> None:
        """out += scale * A p."""
        if self.compiled is None or p.shape[1] == 1:
            product = self.matrix @ p
            product *= scale
            out += product
        else:
            self.compiled.add_product(p, scale, out)


def squared(matrix: Any) -> Any:
    """The squares of the entries; the result of a sparse matrix shares its indices."""
    return matrix._with_data(matrix.data**2, copy=False) if sp.issparse(matrix) else matrix**2


def by_rows(matrix: Any) -> Any:
    """The matrix in CSR format if it is sparse."""
    return sp.csr_array(matrix) if sp.issparse(matrix) else matrix


class CompiledRows:
    """A CSR matrix A with the data types of the compiled loops."""

    def __init__(self, matrix: Any) -> None:
        from cvxstructreg.solvers.smooth import compiled_newton

        self._compiled = compiled_newton
        self.arrays = (
            np.ascontiguousarray(matrix.indptr, dtype=np.uint32),
            np.ascontiguousarray(matrix.indices, dtype=np.int32).view(np.uint32),
            np.ascontiguousarray(matrix.data, dtype=np.float64),
        )

    def add_gram(self, weights: Array, p: Array, shift: float, out: Array) -> float:
        """out += A'u, u = weights * (A p + shift), in one pass over A, for one column; returns the sum of u."""
        column = np.ascontiguousarray(p[:, 0])
        weight = np.ascontiguousarray(weights[:, 0])
        return float(self._compiled.add_gram_product(*self.arrays, weight, column, shift, out[:, 0]))

    def add_product(self, p: Array, scale: float, out: Array) -> None:
        """out += scale * A p."""
        arrays = self.arrays if p.dtype == np.float64 else self._single
        self._compiled.add_product_block(*arrays, arrays[2].dtype.type(scale), np.ascontiguousarray(p), out)

    @cached_property
    def _single(self) -> tuple[Any, Any, Any]:
        """The arrays with values in single precision."""
        return *self.arrays[:2], self.arrays[2].astype(np.float32)


def _compile(matrix: Any) -> bool:
    """Whether compiled products pay off: always if the compiler is loaded, else only for large matrices."""
    if not sp.issparse(matrix) or matrix.format != "csr" or matrix.nnz >= 2**31:
        return False
    return matrix.nnz >= COMPILE_FROM or "cvxstructreg.solvers.smooth.compiled_newton" in sys.modules
