"""Absolute differences over the edges of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom
from cvxstructreg.forms.chains.plain_chain import chain_differences
from cvxstructreg.graphs import Graph
from cvxstructreg.graphs.conversion import OnGraph, as_graph
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.l1 import L1
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class FusedLasso(OnGraph, Atom):
    """sum over edges |W_ij| |w_i - s_ij w_j|, with s_ij = -1 for dissimilarity edges.

    The penalty makes connected weights exactly equal, or opposite over a dissimilarity edge (Tibshirani, Saunders,
    Rosset, Zhu and Knight 2005).

    Parameters
    ----------
    graph : Graph
        Undirected, without virtual nodes.

    Examples
    --------
    >>> from cvxstructreg import Graph
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], [2.0, -1.0], n_nodes=3)
    >>> FusedLasso(graph)([1.0, 2.0, 1.0])
    5.0
    """

    graph: Any

    formula: ClassVar[str] = "sum_edges |W_ij| |w_i - s_ij w_j|"
    convention: ClassVar[str] = "each edge once"

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", as_graph(self.graph, "FusedLasso"))
        if self.graph.n_virtual:
            raise ValueError("FusedLasso does not support virtual nodes; use Laplacian, or make them real features")
        i, j, w = self.graph.edges()
        if self.graph.is_directed:
            raise ValueError("FusedLasso needs an undirected graph; use graph.symmetrized()")
        rows, nodes = np.arange(len(w)), np.arange(self.graph.n_nodes)
        in_order = len(w) == len(nodes) - 1 and np.array_equal(i, nodes[:-1]) and np.array_equal(j, nodes[1:])
        if in_order and np.all(w > 0.0):
            differences = chain_differences(len(nodes))
        else:
            data = np.concatenate([np.ones(len(w)), -np.sign(w)])
            shape = (len(w), len(nodes))
            differences = sp.csr_array((data, (np.concatenate([rows, rows]), np.concatenate([i, j]))), shape=shape)
        outer = L1() if len(w) == 0 or (in_order and np.all(w == 1.0)) else L1(weights=np.abs(w))
        object.__setattr__(self, "_parts", (outer, differences))

    @property
    def size(self) -> int | None:
        """Number of nodes."""
        return int(self.graph.n_nodes)

    def split(self) -> tuple[Atom, Any]:
        """L1, weighted by the edge weights, of the signed differences."""
        parts: tuple[Atom, Any] = self.__dict__["_parts"]
        return parts

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        outer, differences = self.split()
        return outer.expr(differences @ z) if differences.shape[0] else cp.Constant(0.0)

    def value(self, z: Array) -> float:
        """The sum over edges."""
        outer, differences = self.split()
        return outer.value(differences @ z)

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The node names of the graph."""
        names: tuple[str, ...] | None = self.graph.feature_names
        return names

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[FusedLasso, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        chain = Graph.from_edges([(0, 1), (1, 2), (2, 3)], n_nodes=4)
        signed = Graph.from_edges([(0, 1), (1, 2)], [1.0, -2.0], n_nodes=3)
        return [(cls(chain), (4, 1)), (cls(signed), (3, 2))]
