"""One block of rows: where its data are, and the checks when they are read."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.checksum import KEYS, Sums, checksum


class BlockError(ValueError):
    """A block of rows is missing, truncated, changed or not finite; the message names the block."""


class LostBlockError(BlockError):
    """What a block needs was lost with a worker."""


class MemoryLimitWarning(UserWarning):
    """The columns in use do not fit into the memory limit, so that every step needs passes over the data."""


@dataclass(frozen=True, eq=False)
class Block:
    """A block of rows that can be read again and again, by any process that gets a copy of this object.

    Attributes
    ----------
    name : str
        Names the block in error messages.
    n_rows, n_columns : int
        The shape; -1 if it is not known before the block is read.
    """

    name: str
    n_rows: int = -1
    n_columns: int = -1

    def read(self, verify: bool) -> Any:
        """The matrix, (X, y) or (X, y, sample_weight); ``verify`` asks for a check against a stored checksum."""
        raise NotImplementedError

    def stamp(self) -> tuple[int, ...]:
        """Numbers that change when the data of the block are changed; empty if this cannot be told."""
        return ()

    @property
    def stored_checksum(self) -> int | None:
        """The checksum of the data if it is stored with them."""
        return None

    def unverified(self) -> tuple[Any, Check] | None:
        """The CSR matrix, and its check against a stored checksum that is still to be made; None if there is none."""
        return None

    @property
    def nbytes(self) -> float:
        """The bytes that the block takes in memory; NaN if this is not known before it is read."""
        return float("nan")

    def load(self, first: bool) -> Any:
        """The matrix in double precision, after all checks; ``first`` asks for the checks that need a pass."""
        return self.load_all(first)[0]

    def load_all(self, first: bool) -> tuple[Any, Any, Any]:
        """The matrix, and the labels and sample weights that are read with it (None without)."""
        try:
            matrix, y, weights = parts_of(self.read(first))
            X = as_block(matrix)
        except BlockError:
            raise
        except (OSError, ValueError, TypeError) as error:
            raise BlockError(f"{self.name} cannot be read: {error}") from error
        if self.n_rows >= 0 and X.shape[0] != self.n_rows:
            raise BlockError(f"{self.name} has {X.shape[0]} rows, expected {self.n_rows}; was it changed?")
        if self.n_columns >= 0 and X.shape[1] != self.n_columns:
            raise BlockError(f"{self.name} has {X.shape[1]} columns, expected {self.n_columns}")
        unseen = first and self.stored_checksum is None  # blocks with a checksum were finite when they were written
        if unseen and not np.isfinite(X.data if sp.issparse(X) else X).all():
            raise BlockError(f"{self.name} contains NaN or infinite values; impute or drop them, and write it again")
        check_lengths(self.name, X.shape[0], y, weights)
        return X, y, weights


@dataclass(frozen=True, eq=False)
class MemoryBlock(Block):
    """A matrix in memory, or a memory-mapped one."""

    matrix: Any = None

    def read(self, verify: bool) -> Any:
        """The matrix itself."""
        return self.matrix

    @property
    def nbytes(self) -> float:
        """The bytes of the arrays in double precision."""
        if self.matrix is None:
            return float("nan")
        if sp.issparse(self.matrix):
            return 12.0 * self.matrix.nnz
        return 8.0 * self.matrix.shape[0] * self.matrix.shape[1]


@dataclass(frozen=True, eq=False)
class MadeBlock(Block):
    """The result of a function without arguments, which must return the same rows every time."""

    make: Callable[[], Any] = tuple

    def read(self, verify: bool) -> Any:
        """Call the function."""
        return self.make()


@dataclass(frozen=True, eq=False)
class SelectedBlock(Block):
    """Some columns of another block."""

    base: Block = Block("")
    columns: Any = None

    def read(self, verify: bool) -> Any:
        """The columns, selected anew whenever the block is read."""
        return self.base.load(verify)[:, self.columns]

    def stamp(self) -> tuple[int, ...]:
        """The stamp of the whole block."""
        return self.base.stamp()

    @property
    def stored_checksum(self) -> int | None:
        """The checksum of the whole block."""
        return self.base.stored_checksum


def parts_of(item: Any) -> tuple[Any, Any, Any]:
    """A block as (X, y, sample_weight); None for what is not given."""
    if not isinstance(item, tuple):
        return item, None, None
    if not 1 <= len(item) <= 3:
        raise ValueError(f"a block is X, (X, y) or (X, y, sample_weight); got a tuple of {len(item)}")
    X, y, weights = (*item, None, None)[:3]
    return X, None if y is None else np.asarray(y), None if weights is None else np.asarray(weights, dtype=float)


def check_lengths(name: str, n_rows: int, y: Any, weights: Any) -> None:
    """Check that each row of a block has a label and a weight, if any row has."""
    for what, values in (("labels", y), ("sample weights", weights)):
        if values is not None and len(values) != n_rows:
            raise BlockError(f"{name} has {n_rows} rows, but {len(values)} {what}")


def as_block(matrix: Any) -> Any:
    """CSR without duplicates, or a dense matrix; both in double precision."""
    if sp.issparse(matrix):
        X = matrix if matrix.format == "csr" and matrix.dtype == np.float64 else sp.csr_array(matrix, dtype=float)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return sp.csr_array(X) if not isinstance(X, sp.csr_array) else X
    X = np.asarray(matrix, dtype=float)
    if X.ndim != 2:
        raise ValueError(f"a block must be a matrix, got shape {X.shape}")
    return X


def arrays_of(X: Any) -> dict[str, Array]:
    """The arrays that a matrix is stored as: three for CSR, one for a dense matrix."""
    if sp.issparse(X):
        return {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    return {"dense": np.ascontiguousarray(X)}


def checksum_of(arrays: dict[str, Any], kind: str = "words") -> int:
    """The checksum of the arrays in order; of the kind "crc32", as in folders that earlier versions wrote, CRC-32."""
    if kind == "words":
        return checksum(arrays)
    if kind != "crc32":
        raise BlockError(f"checksums of the kind {kind!r} are not known; a later version wrote the folder")
    value = 0
    for array in arrays.values():
        value = zlib.crc32(np.ascontiguousarray(array).data.cast("B") if array.size else b"", value)
    return value


class Check:
    """The comparison of a CSR block with its stored checksum, made while a kernel reads the rows.

    A matrix with the attribute ``check`` must not be used for anything else before :meth:`finish`: its indices may be
    damaged.
    """

    def __init__(self, name: str, arrays: dict[str, Array], stored: int) -> None:
        self._name, self._arrays, self._stored, self._done = name, arrays, stored, False
        self._sums = {key: Sums(arrays[key]) for key in ("data", "indices")}

    @property
    def running(self) -> tuple[Any, ...]:
        """For compiled loops: the words of data and indices, their sums so far, and the indices in a word."""
        data, indices = (self._sums[key] for key in ("data", "indices"))
        per_word = 8 // self._arrays["indices"].dtype.itemsize
        return data.words, indices.words, KEYS, data.state, indices.state, per_word

    def finish(self) -> None:
        """Add what was not read yet, and compare."""
        if not self._done and checksum(self._arrays, self._sums) != self._stored:
            raise changed(self._name)
        self._done = True


def changed(name: str) -> BlockError:
    """The error for a block with another checksum than the stored one."""
    return BlockError(f"{name} was changed since it was written: its checksum differs; write it again")
