"""A nonsmooth term of an augmented Lagrangian: its set, its linear map, and its present q and sigma."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.centred_hinge import centred
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.solvers.general.dual_sets import Balls, DualSet
from cvxstructreg.solvers.general.newton_matrix import ActiveRows, BlockPairs, SparseRows, block_pairs


@dataclass(eq=False)
class RoughTerm:
    """A nonsmooth term: its set, its linear map, and the present q and sigma of the augmented Lagrangian."""

    piece: Piece | None  # None: absolute values or bounds of the weights
    dual_set: DualSet
    rows: Any  # the matrix of z = rows x: dense for terms of the scores, sparse for those of the weights
    of_scores: bool
    centred: bool  # whether z is centred over the outputs
    q: Array
    sigma: float = 1.0
    typical: float = 1.0  # size of z

    @cached_property
    def active_rows(self) -> list[ActiveRows]:
        """For a term of the scores, the products of the active rows of each output."""
        return [ActiveRows(self.rows) for _ in range(self.q.shape[1])]

    @cached_property
    def single_rows(self) -> list[ActiveRows]:
        """The same in single precision."""
        rows = self.rows.astype(np.float32)
        return [ActiveRows(rows) for _ in range(self.q.shape[1])]

    @cached_property
    def sparse_rows(self) -> SparseRows:
        """For a term of the weights, the products of its rows."""
        return SparseRows(self.rows)

    @cached_property
    def block_places(self) -> tuple[np.ndarray, np.ndarray]:
        """For balls: the row of each entry of K, and the place of its column and block in a table of all of these."""
        assert isinstance(self.dual_set, Balls)
        row = np.repeat(np.arange(self.rows.shape[0]), np.diff(self.rows.indptr))
        return row, self.rows.indices.astype(np.int64) * len(self.dual_set.radii) + self.dual_set.owner[row]

    @cached_property
    def block_pairs(self) -> BlockPairs | None:
        """For balls: the pairs of columns in the same block, if these are few."""
        assert isinstance(self.dual_set, Balls)
        return block_pairs(self.rows, *self.block_places, len(self.dual_set.radii))

    @cached_property
    def squares(self) -> Any:
        """The entries of sparse rows, squared."""
        return self.rows.multiply(self.rows).tocsr()

    @cached_property
    def columns(self) -> Any:
        """The transpose of ``rows``: a view of dense rows, and a matrix stored by rows of its own for sparse ones."""
        return self.rows.T.tocsr() if sp.issparse(self.rows) else self.rows.T

    def forward(self, x: Array) -> Array:
        """Z = K x."""
        z = np.asarray(self.rows @ x)
        return centred(z) if self.centred else z

    def adjoint(self, p: Array) -> Array:
        """K'p."""
        return np.asarray(self.columns @ (centred(p) if self.centred else p))

    def argument(self, z: Array) -> Array:
        """What is projected: q + sigma (z - o)."""
        with np.errstate(over="ignore"):  # a step without end is projected like any large number
            return np.asarray(self.q + self.sigma * (z - self.dual_set.offset))

    def multiplier(self, z: Array) -> Array:
        """The projection p."""
        return self.dual_set.project(self.argument(z))

    def complementarity(self, z: Array, p: Array) -> float:
        """f(z) - <p, z - o>, and |<p, z - o>| for bounds, which z may miss."""
        products, found = p * (z - self.dual_set.offset), self.dual_set.value(z)
        if isinstance(self.dual_set, Balls) or self.dual_set.is_bounded:
            return abs(found - float(products.sum()))
        finite = self.dual_set.finite
        return abs(found - float(products[finite].sum())) + float(np.abs(products[~finite]).sum())

    def dual(self, p: Array) -> Array:
        """The dual point of the piece that the multiplier stands for."""
        return centred(p) if self.centred else p
