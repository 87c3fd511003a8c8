"""Norms of consecutive blocks of rows, each output by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class ColumnBlockNorms(Atom):
    """sum_g c_g sum_j ||z_gj||_2 over consecutive blocks of rows g and columns j.

    Examples
    --------
    >>> ColumnBlockNorms([0, 2], [1.0])([[3.0, 0.0], [4.0, 2.0]])
    7.0
    """

    indptr: Any
    weights: Any = None

    formula: ClassVar[str] = "sum_g c_g sum_j ||w_gj||_2"
    convention: ClassVar[str] = "blocks of consecutive weights, each output by itself"

    def __post_init__(self) -> None:
        blocks = BlockNorms(self.indptr, self.weights)
        for name, value in (("_blocks", blocks), ("indptr", blocks.indptr), ("weights", blocks.weights)):
            object.__setattr__(self, name, value)

    @property
    def _of_column(self) -> BlockNorms:
        blocks: BlockNorms = self.__dict__["_blocks"]
        return blocks

    @property
    def size(self) -> int | None:
        """Number of rows of all blocks."""
        return self._of_column.size

    def for_outputs(self, k: int) -> Atom:
        """For one output, the plain norms of the blocks."""
        return self._of_column if k == 1 else self

    def norms(self, z: Array) -> Array:
        """sum_j ||z_gj|| for each block."""
        return np.asarray(sum(self._of_column.norms(column[:, None]) for column in z.T))

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return cp.sum([self._of_column.expr(z[:, [j]]) for j in range(z.shape[1])])

    def value(self, z: Array) -> float:
        """The weighted sum of norms."""
        return sum(self._of_column.value(column) for column in z.T)

    def prox(self, v: Array, t: float) -> Array:
        """The prox of each column."""
        return np.column_stack([self._of_column.prox(column, t) for column in v.T])

    def project(self, u: Array, radius: float = 1.0) -> Array:
        """The nearest point with ||u_gj|| <= radius c_g."""
        return np.column_stack([self._of_column.project(column[:, None], radius) for column in u.T])

    def dual_norm(self, u: Array) -> float:
        """The largest ||u_gj|| / c_g."""
        return max((self._of_column.dual_norm(column) for column in u.T), default=0.0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.weights)} blocks of {self.size} rows)"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[ColumnBlockNorms, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        return [(cls([0, 2, 3], [1.0, 2.0]), (3, 2)), (cls([0, 3]), (3, 1))]
