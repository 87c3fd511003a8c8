"""Huber functions of differences between neighbours: smooth total variation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.checks import real_number
from cvxstructreg.graphs import Graph
from cvxstructreg.graphs.conversion import OnGraph, as_graph, is_graph_like
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.composed import differences
from cvxstructreg.penalties.fused_lasso import FusedLasso
from cvxstructreg.penalties.huber_penalty import HuberPenalty
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class HuberDifferences(OnGraph, Atom):
    """sum over edges |W_ij| h(w_i - s_ij w_j), with h(x) = x^2 for |x| <= M and 2 M |x| - M^2 beyond.

    Small differences are smoothed as by a Laplacian, large ones are kept as by the fused lasso. The penalty has a
    gradient, and no weights become exactly equal (Huber 1964; for images, Nikolova and Ng 2005).

    Parameters
    ----------
    graph : Graph, int or tuple of int
        Undirected, without virtual nodes; or the length of a signal or the shape of a grid, as for
        :class:`TotalVariation`.
    M : float
        The difference at which the quadratic part ends; positive.

    Examples
    --------
    >>> from cvxstructreg import Graph
    >>> HuberDifferences(Graph.from_edges([(0, 1), (1, 2)], [1.0, 2.0]))([0.0, 0.5, 3.5])
    10.25
    >>> HuberDifferences(3, M=0.5)([0.0, 0.5, 3.5])
    3.0
    """

    graph: Any
    M: float = 1.0

    formula: ClassVar[str] = "sum_edges |W_ij| huber(w_i - s_ij w_j, M)"
    convention: ClassVar[str] = "each edge once; x^2 up to |x| = M, no factor 1/2"

    def __post_init__(self) -> None:
        if is_graph_like(self.graph):
            object.__setattr__(self, "graph", as_graph(self.graph, "HuberDifferences"))
            absolute, K = FusedLasso(self.graph).split()
            weights = absolute.weights  # type: ignore[attr-defined]
        else:
            D = differences(tuple(self.graph) if isinstance(self.graph, tuple | list) else self.graph)
            K, weights = sp.csr_array(D[np.flatnonzero(np.diff(D.indptr))]), None
        M = real_number(self.M, "M")
        object.__setattr__(self, "M", M)
        object.__setattr__(self, "_parts", (HuberPenalty(M, weights), K))

    @property
    def size(self) -> int | None:
        """Number of nodes."""
        return int(self.split()[1].shape[1])

    def split(self) -> tuple[Atom, Any]:
        """The Huber penalty, weighted by the edge weights, of the signed differences."""
        parts: tuple[Atom, Any] = self.__dict__["_parts"]
        return parts

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        outer, K = self.split()
        return outer.expr(K @ z) if K.shape[0] else cp.Constant(0.0)

    def value(self, z: Array) -> float:
        """The sum over edges."""
        outer, K = self.split()
        return outer.value(K @ z)

    def grad(self, z: Array) -> Array:
        """K' of the gradient of the Huber penalty."""
        outer, K = self.split()
        return np.asarray(K.T @ outer.grad(K @ z))

    def hessp(self, z: Array, p: Array) -> Array:
        """K' times the Hessian of the Huber penalty times K p."""
        outer, K = self.split()
        return np.asarray(K.T @ outer.hessp(K @ z, K @ p))

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The node names of the graph."""
        return self.graph.feature_names if isinstance(self.graph, Graph) else None

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[HuberDifferences, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        signed = Graph.from_edges([(0, 1), (1, 2)], [1.0, -2.0], n_nodes=3)
        return [(cls(signed, 0.7), (3, 2)), (cls((2, 2)), (4, 1))]
