"""Trend filtering on lines (Kim et al. 2009; Tibshirani 2014) and graphs (Wang et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.objective import Term
from cvxstructreg.graphs import Graph
from cvxstructreg.graphs.conversion import OnGraph, as_graph
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.composed import compose, differences
from cvxstructreg.penalties.fused_lasso import FusedLasso
from cvxstructreg.penalties.l1 import L1
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class TrendFilter(OnGraph, Atom):
    """||D^order w||_1, the absolute differences of this order: the weights are piecewise polynomial.

    Order 1 gives constant pieces (total variation), order 2 straight lines, order 3 parabolas: the pieces have the
    degree ``order - 1``, which Tibshirani (2014) calls the order. On a graph, D is the matrix of differences over its
    edges, and the orders alternate D, D'D, DD'D, ... (Wang, Sharpnack, Smola and Tibshirani 2016).

    Parameters
    ----------
    order : int
        The order of the differences, 1 or more.
    graph : Graph, optional
        Undirected, without virtual nodes. Without a graph, the weights are on a line in the order of the columns.

    Examples
    --------
    >>> TrendFilter(2)([0.0, 1.0, 2.0, 0.0])
    3.0
    >>> from cvxstructreg import Graph
    >>> TrendFilter(2, Graph.from_edges([(0, 1), (1, 2), (2, 3)]))([0.0, 1.0, 2.0, 3.0])
    2.0
    """

    order: int = 2
    graph: Any = None

    formula: ClassVar[str] = "||D^order w||_1"
    convention: ClassVar[str] = "differences of this order of weights in a row; on a graph D, D'D, DD'D, ..."

    def __post_init__(self) -> None:
        if isinstance(self.order, bool) or not isinstance(self.order, int | np.integer) or self.order < 1:
            raise ValueError(f"order must be an integer of at least 1, got {self.order!r}; 2 gives straight lines")
        if self.graph is not None:
            object.__setattr__(self, "graph", as_graph(self.graph, "TrendFilter"))
        object.__setattr__(self, "order", int(self.order))
        object.__setattr__(self, "_known", {})
        if self.graph is not None:
            self._composed(self.graph.n_nodes)  # so that a directed graph is refused here

    @property
    def size(self) -> int | None:
        """Number of nodes; None for a line of any length."""
        return None if self.graph is None else int(self.graph.n_nodes)

    def check_rows(self, m: int, what: str) -> None:
        """Raise unless there are enough weights for differences of this order."""
        super().check_rows(m, what)
        if self.graph is None and m <= self.order:
            raise ValueError(
                f"differences of order {self.order} need at least {self.order + 1} weights in a row, but the model has "
                f"{m} {what}; lower the order"
            )

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless the array has enough rows."""
        super().check_shape(shape)
        self.check_rows(shape[0], "rows")

    def _composed(self, d: int) -> Atom:
        known: dict[int, Atom] = self.__dict__["_known"]
        if d not in known:
            K = differences(d if self.graph is None else self.graph, self.order)
            known.setdefault(d, compose(L1(), K) if K.shape[0] else FusedLasso(self.graph))  # no edges: zero
        return known[d]

    def parts(self, shape: tuple[int, int]) -> Sequence[Term]:
        """L1 of the differences."""
        return [1.0 * self._composed(shape[0])]

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self._composed(z.shape[0]).expr(z)

    def value(self, z: Array) -> float:
        """The sum of absolute differences."""
        return self._composed(len(z)).value(z)

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The node names of the graph."""
        names: tuple[str, ...] | None = None if self.graph is None else self.graph.feature_names
        return names

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[TrendFilter, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        empty = Graph(np.zeros((3, 3)))
        signed = Graph.from_edges([(0, 1), (1, 2), (0, 3)], [1.0, 2.0, -1.0])
        return [
            (cls(1), (3, 2)),
            (cls(2), (4, 1)),
            (cls(3), (5, 1)),
            (cls(2, signed), (4, 1)),
            (cls(3, signed), (4, 2)),
            (cls(1, empty), (3, 1)),
        ]
