"""Products with the parts of the Newton matrix of an augmented Lagrangian with many weights.

Each part has ``part @ v`` for v of shape (D, k): only what is not zero at the point is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.numerics.arrays import Array

if TYPE_CHECKING:
    from cvxstructreg.solvers.general.dual_sets import Balls
    from cvxstructreg.solvers.general.rough_term import RoughTerm

#: Rows without weight are left out if at least this part of all rows is.
FEW = 0.8


class RowProduct:
    """R'diag(h) R for one output.

    Examples
    --------
    >>> RowProduct(sp.csr_array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 0.0])) @ np.ones((2, 1))
    array([[ 6.],
           [12.]])
    """

    def __init__(self, rows: Any, weights: Array) -> None:
        used = np.flatnonzero(weights)
        few = used.size < FEW * len(weights)
        self.rows, self.weights = (rows[used], weights[used]) if few else (rows, weights)
        self.columns = self.rows.T

    def __matmul__(self, v: Array) -> Array:
        return np.asarray(self.columns @ (self.weights * (self.rows @ v[:, 0])))[:, None]

    def row_blocks(self) -> tuple[Any, Array]:
        """The rows, with a 1 x 1 matrix for each."""
        return self.rows, self.weights[:, None, None]


class BlockProduct:
    """R'HR with a k x k matrix for each row."""

    def __init__(self, rows: Any, blocks: Array) -> None:
        self.rows, self.blocks, self.columns = rows, blocks, rows.T

    def __matmul__(self, v: Array) -> Array:
        return times(self.columns, np.einsum("iab,ib->ia", self.blocks, times(self.rows, v)))

    def row_blocks(self) -> tuple[Any, Array]:
        """The rows, with a k x k matrix for each."""
        return self.rows, self.blocks


class ActiveProduct:
    """R'C diag(h) C R for several outputs, h of shape (m, k), with C = I - 11'/k if scores are centred, else C = I.

    Examples
    --------
    >>> rows, h = sp.csr_array([[1.0, 2.0], [3.0, 4.0]]), np.array([[2.0, 0.0], [0.0, 0.0]])
    >>> ActiveProduct(rows, h, is_centred=False) @ np.ones((2, 2))
    array([[ 6.,  0.],
           [12.,  0.]])
    """

    def __init__(self, rows: Any, weights: Array, is_centred: bool) -> None:
        used = np.flatnonzero(weights.any(axis=1))
        few = used.size < FEW * len(weights)
        self.rows, self.weights = (rows[used], weights[used]) if few else (rows, weights)
        self.columns, self.is_centred = self.rows.T, is_centred

    def __matmul__(self, v: Array) -> Array:
        z = times(self.rows, v)
        p = self.weights * (centred(z) if self.is_centred else z)
        return times(self.columns, centred(p) if self.is_centred else p)

    def row_blocks(self) -> tuple[Any, Array]:
        """The rows, with a k x k matrix for each."""
        k = self.weights.shape[1]
        C = np.eye(k) - 1.0 / k if self.is_centred else np.eye(k)
        return self.rows, np.einsum("ac,ic,cb->iab", C, self.weights, C)


class BallsProduct:
    """sigma K'JK, J the derivative of the projection onto balls: diag(D) - v v' for each block."""

    def __init__(self, term: RoughTerm, balls: Balls, argument: Array) -> None:
        diagonal, units = balls.slopes(argument)
        assert units is not None
        self.diagonal, self.units = term.sigma * diagonal, np.sqrt(term.sigma) * units
        self.term, self.balls = term, balls

    def __matmul__(self, v: Array) -> Array:
        dz = times(self.term.rows, v)
        along = self.balls.sums(np.einsum("ij,ij->i", self.units, dz))
        return times(self.term.columns, self.diagonal * dz - self.units * along[self.balls.owner][:, None])


def times(matrix: Any, v: Array) -> Array:
    """A sparse matrix times a few columns, one by one: SciPy is slow for all at once.

    Examples
    --------
    >>> times(sp.csr_array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2))
    array([[1., 2.],
           [3., 4.]])
    """
    out = np.empty((matrix.shape[0], v.shape[1]))
    for a in range(v.shape[1]):
        out[:, a] = matrix @ np.ascontiguousarray(v[:, a])
    return out


class Diagonal:
    """A diagonal for each output, of shape (D, k)."""

    def __init__(self, entries: Array) -> None:
        self.entries = entries

    def __matmul__(self, v: Array) -> Array:
        return self.entries * v


class ByOutput:
    """A sparse matrix for each output."""

    def __init__(self, matrices: list[sp.csr_array]) -> None:
        self.matrices = matrices

    def __matmul__(self, v: Array) -> Array:
        return np.column_stack([matrix @ v[:, a] for a, matrix in enumerate(self.matrices)])


def of_weights(term: RoughTerm, slopes: Array) -> Diagonal | ByOutput:
    """K'diag(slopes) K for a term of the weights, output by output."""
    K, k = term.rows, slopes.shape[1]
    if is_plain(K):
        columns = [np.bincount(K.indices, slopes[:, a] * K.data**2, minlength=K.shape[1]) for a in range(k)]
        return Diagonal(np.column_stack(columns))
    matrices = []
    for a in range(k):
        used = np.flatnonzero(slopes[:, a])
        part = K[used]
        matrices.append(sp.csr_array(part.T @ (sp.diags_array(slopes[used, a]) @ part)))
    return ByOutput(matrices)


def is_plain(K: Any) -> bool:
    """Whether each row of the map has a single entry."""
    return bool(K.nnz == K.shape[0] and np.all(np.diff(K.indptr) == 1))
