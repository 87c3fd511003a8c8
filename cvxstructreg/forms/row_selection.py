"""The linear map that stacks copies of rows, stored without a matrix."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.checks import index_type
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.short_repr import size_of

#: From this many numbers on, compiled loops are worth the time to load the compiler.
COMPILE_FROM = 1_000_000


def compiled_pays(count: int) -> bool:
    """Whether compiled loops over this many numbers are worthwhile: always, once they are loaded."""
    return count >= COMPILE_FROM or "cvxstructreg.forms.compiled_groups" in sys.modules


class Selection:
    """w -> (w_j for j in indices): a matrix with a single 1 in each row, stored by its column indices.

    Parameters
    ----------
    indices : array of integers
        One for each row.
    n_columns : int
        Number of rows of w.

    Examples
    --------
    >>> import numpy as np
    >>> E = Selection([2, 0, 2], 3)
    >>> E @ np.array([1.0, 2.0, 3.0])
    array([3., 1., 3.])
    >>> E.T @ np.array([1.0, 2.0, 3.0])
    array([2., 0., 4.])
    """

    __array_ufunc__ = None  # NumPy then leaves products to this class

    def __init__(self, indices: Any, n_columns: int) -> None:
        # unsigned 32-bit: half the memory, and compiled loops need no test for negative numbers
        self.indices = np.asarray(indices).astype(np.uint32 if n_columns < 2**32 else np.uint64)
        self.indices.flags.writeable = False
        self.shape = (len(self.indices), int(n_columns))
        self.dtype = np.dtype(float)

    def __repr__(self) -> str:
        return f"Selection({size_of(self)})"

    @property
    def T(self) -> Adjoint:  # noqa: N802
        """The transposed map, which adds up the copies."""
        return Adjoint(self)

    @property
    def counts(self) -> np.ndarray:
        """How often each column is selected: the diagonal of E'E."""
        return np.asarray(self.T @ np.ones(self.shape[0]))

    def tocsr(self) -> Any:
        """The map as a sparse matrix."""
        index = index_type(max(self.shape))
        parts = (np.ones(self.shape[0]), self.indices.astype(index), np.arange(self.shape[0] + 1, dtype=index))
        return sp.csr_array(parts, shape=self.shape)

    def __matmul__(self, other: Any) -> Any:
        return other[self.indices] if isinstance(other, np.ndarray) else self.tocsr() @ other


class Adjoint:
    """u -> sum of the rows of u that are copies of the same row."""

    __array_ufunc__ = None

    def __init__(self, selection: Selection) -> None:
        self.T = selection
        self.shape = selection.shape[::-1]
        self.dtype = selection.dtype

    def __repr__(self) -> str:
        return f"Adjoint({size_of(self)})"

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Selection):
            other = other.tocsr()
        if not isinstance(other, np.ndarray):
            return self.T.tocsr().T @ other
        if other.ndim == 1:
            return self._added_up(other)
        return np.column_stack([self._added_up(column) for column in other.T])

    def _added_up(self, u: Array) -> Array:
        indices, d = self.T.indices, self.shape[0]
        if not compiled_pays(len(u)):
            return np.asarray(np.bincount(indices, weights=u, minlength=d), dtype=float)
        from cvxstructreg.forms.compiled_groups import add_adjoint

        out = np.zeros(d)
        add_adjoint(indices, np.ascontiguousarray(u, dtype=float), out, 1.0)
        return out


def picks_rows(K: Any) -> bool:
    """Whether each row of K has a single entry, equal to 1."""
    if isinstance(K, Selection):
        return True
    return sp.issparse(K) and K.format == "csr" and bool(np.all(np.diff(K.indptr) == 1) and np.all(K.data == 1.0))


def touch_once(pieces: Iterable[Any], diagonal: Array | None) -> bool:
    """Whether no row of the maps K of pieces has two entries, and no column in all of them together.

    ``diagonal`` is that of the sum of K'K, or None if it is not diagonal.
    """
    maps = [piece.K for piece in pieces]
    if diagonal is None:
        return False
    if all(K is None or isinstance(K, Selection) for K in maps):
        return bool(diagonal.max(initial=0.0) <= 1.0)
    counts = np.zeros(len(diagonal))
    for K in maps:
        entries = np.arange(len(diagonal)) if K is None else (K if isinstance(K, Selection) else K.tocsr()).indices
        counts += np.bincount(entries, minlength=len(diagonal))
    return bool(np.all(counts <= 1.0))
