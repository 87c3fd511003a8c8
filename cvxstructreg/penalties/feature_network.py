"""Feature network regularization (Sandler, Talukdar, Ungar and Blitzer, NIPS 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.forms.quadratic_penalty import QuadraticPenalty
from cvxstructreg.graphs import Graph
from cvxstructreg.graphs.conversion import OnGraph, as_graph


@dataclass(frozen=True, eq=False, repr=False)
class FeatureNetwork(OnGraph, QuadraticPenalty):
    """||(I - P) w||^2: each weight is pulled to the average of its neighbours. No factor 1/2.

    P holds the graph weights, with rows normalised to sum to one. Nodes without an outgoing edge are not pulled: their
    rows are left out. A dissimilarity edge (negative weight) pulls a weight to *minus* the average of such neighbours.
    By default these edges have rows of their own, ``||(I + Q) w||^2``, as in the paper. With ``signed="joint"`` similar
    and dissimilar neighbours share one row and are normalised together, which is a different penalty. Virtual nodes
    (class means) are minimised out, so that w has one entry for each real feature.

    Parameters
    ----------
    graph : Graph
        Row i holds the neighbours that feature i is pulled to. The graph may be directed.
    signed : {"separate", "joint"}
        How dissimilarity edges are used.

    Examples
    --------
    >>> from cvxstructreg import Graph
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], n_nodes=3)
    >>> FeatureNetwork(graph)([1.0, 1.0, 1.0]), FeatureNetwork(graph)([0.0, 1.0, 0.0])
    (0.0, 3.0)

    With a class mean as virtual node, the penalty is the sum of squared distances to the class mean:

    >>> means = Graph.from_edges([(0, 3), (1, 3), (2, 3)], n_nodes=4, virtual=[3], directed=True)
    >>> round(FeatureNetwork(means)([1.0, 2.0, 6.0]), 10)
    14.0
    """

    graph: Any
    signed: str = "separate"

    formula: ClassVar[str] = "||(I - P) w||^2"
    convention: ClassVar[str] = "P: graph weights, rows summing to 1; no factor 1/2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", as_graph(self.graph, "FeatureNetwork"))
        if self.signed not in ("separate", "joint"):
            raise ValueError(f'signed must be "separate" or "joint", got {self.signed!r}')
        parts = [self.graph]
        if self.signed == "separate" and self.graph.is_signed:
            parts = [self.graph.similarity(), self.graph.dissimilarity()]
        rows = [_pulled_rows(part) for part in parts]
        form = QuadraticForm(
            factor=rows[0] if len(rows) == 1 else sp.csr_array(sp.vstack(rows)), eliminated=self.graph.virtual
        )
        self._set_form(form)

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The node names of the graph."""
        names: tuple[str, ...] | None = self.graph.feature_names
        return names

    def __repr__(self) -> str:
        joint = ', signed="joint"' if self.signed == "joint" else ""
        return f"{type(self).__name__}({self.graph!r}{joint})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[FeatureNetwork, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        signed = Graph.from_edges([(0, 1), (1, 2), (0, 3)], [1.0, 2.0, -1.0], n_nodes=5)
        virtual = Graph.from_edges(
            [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)], [1, 1, 1, 1, -1.0], n_nodes=6, virtual=[4, 5], directed=True
        )
        return [(cls(signed), (5, 1)), (cls(signed, signed="joint"), (5, 2)), (cls(virtual), (4, 2))]


def _pulled_rows(graph: Graph) -> Any:
    """I - P, without the rows of nodes that have no outgoing edge."""
    P = graph.transition()
    pulled = np.diff(P.indptr) > 0
    identity = sp.eye_array(graph.n_nodes, format="csr")
    rows = sp.csr_array(identity - P)
    return rows if pulled.all() else rows[np.flatnonzero(pulled)]
