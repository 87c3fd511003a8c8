"""The graph Laplacian, on weights or on scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.quadratic_form import QuadraticForm
from cvxstructreg.core.quadratic_penalty import QuadraticPenalty
from cvxstructreg.graphs import Graph


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(QuadraticPenalty):
    """1/2 sum_ij |W_ij| (w_i - s_ij w_j)^2 = sum over edges |W_ij| (w_i - s_ij w_j)^2, with s_ij the sign of the edge.

    This is w'Lw with L = D - W and no further factor 1/2. ``normalized=True`` replaces L by D^-1/2 L D^-1/2; isolated
    nodes contribute nothing either way. A dissimilarity edge pulls the two ends to opposite values. ``on_scores()``
    applies it to the scores of the examples (manifold regularization). Virtual nodes are minimised out.

    Parameters
    ----------
    graph : Graph
        Undirected.
    normalized : bool
        Whether to divide by the square roots of the degrees.

    Examples
    --------
    >>> from cvxstructreg import Graph
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], [2.0, -1.0], n_nodes=3)
    >>> Laplacian(graph)([1.0, 2.0, 1.0])
    11.0
    """

    graph: Any
    normalized: bool = False

    formula: ClassVar[str] = "sum_edges |W_ij| (w_i - s_ij w_j)^2"
    convention: ClassVar[str] = "= w'Lw, each edge once, no factor 1/2"

    def __post_init__(self) -> None:
        if not isinstance(self.graph, Graph):
            raise TypeError(f"Laplacian needs a Graph, got {type(self.graph).__name__}; wrap it: Graph(W)")
        if not isinstance(self.normalized, bool | np.bool_):
            raise TypeError(f"normalized must be True or False, got {self.normalized!r}")
        factor = self.graph.incidence(normalized=self.normalized)
        self._set_form(QuadraticForm(factor=factor, eliminated=self.graph.virtual))

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The names of the nodes."""
        names: tuple[str, ...] | None = self.graph.feature_names
        return names

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r}{', normalized=True' if self.normalized else ''})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Laplacian, tuple[int, int]]]:
        """Tiny instances with the shape they act on."""
        plain = Graph.from_edges([(0, 1), (1, 2)], [1.0, 2.0], n_nodes=4)
        signed = Graph.from_edges([(0, 1), (1, 2), (0, 2)], [1.0, 2.0, -0.5], n_nodes=3)
        virtual = Graph.from_edges([(0, 3), (1, 3), (2, 3)], n_nodes=4, virtual=[3])
        return [(cls(plain), (4, 1)), (cls(signed, normalized=True), (3, 2)), (cls(virtual), (3, 1))]
