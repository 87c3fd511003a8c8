"""The graph Laplacian, on weights or on scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.checks import checked_count
from cvxstructreg.forms.composed_forms import PowerForm
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.forms.quadratic_penalty import QuadraticPenalty
from cvxstructreg.graphs import Graph
from cvxstructreg.graphs.conversion import OnGraph, as_graph
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(OnGraph, QuadraticPenalty):
    """1/2 sum_ij |W_ij| (w_i - s_ij w_j)^2 = sum over edges |W_ij| (w_i - s_ij w_j)^2, with s_ij the sign of the edge.

    This equals w'Lw with L = D - W, without another factor 1/2. ``normalized=True`` replaces L by D^-1/2 L D^-1/2;
    isolated nodes contribute nothing in either case. A dissimilarity edge pulls its two ends to opposite values.
    ``power=p`` uses w'L^p w, which couples nodes up to p steps apart. Virtual nodes are minimised out.

    On the examples of a model this is manifold regularization with a mixed graph (Goldberg, Zhu and Wright 2007). There
    are two ways to apply the penalty. ``on_scores()`` penalises f = h + b, so the intercept b is penalised as well.
    ``on_function()`` penalises h alone, which is what a support vector machine with a warped kernel minimises. The two
    agree if constants cost nothing, that is, without dissimilarity edges and with ``normalized=False``; otherwise they
    differ if the model has an intercept.

    Parameters
    ----------
    graph : Graph
        Undirected.
    normalized : bool
        Whether to use the normalized Laplacian, with weights divided by the square roots of the degrees.
    power : int
        The power of L, 1 by default.

    Examples
    --------
    >>> from cvxstructreg import Graph
    >>> graph = Graph.from_edges([(0, 1), (1, 2)], [2.0, -1.0], n_nodes=3)
    >>> Laplacian(graph)([1.0, 2.0, 1.0])
    11.0
    >>> Laplacian(graph, power=2)([1.0, 2.0, 1.0])
    38.0

    With the graph on f = h + b and with the graph on h, the same data give different intercepts:

    >>> import cvxstructreg as csr
    >>> gram = csr.Kernel([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
    >>> loss = csr.Squared([1.0, 0.5], rows=[0, 2]) + csr.RKHSNorm()
    >>> on_f = csr.Problem(gram, loss + csr.Laplacian(graph).on_scores()).solve(tol=1e-9)
    >>> on_h = csr.Problem(gram, loss + csr.Laplacian(graph).on_function()).solve(tol=1e-9)
    >>> round(on_f.intercept, 3), round(on_h.intercept, 3)
    (0.183, 0.749)
    """

    graph: Any
    normalized: bool = False
    power: int = 1

    formula: ClassVar[str] = "sum_edges |W_ij| (w_i - s_ij w_j)^2"
    convention: ClassVar[str] = "= w'Lw, each edge once, no factor 1/2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "graph", as_graph(self.graph, "Laplacian"))
        if not isinstance(self.normalized, bool | np.bool_):
            raise TypeError(f"normalized must be True or False, got {self.normalized!r}")
        power = checked_count(self.power, "power")
        factor = self.graph.incidence(normalized=self.normalized)
        if power == 1:
            self._set_form(QuadraticForm(factor=factor, eliminated=self.graph.virtual))
            return
        if self.graph.n_virtual:
            raise ValueError("power > 1 is not defined for a graph with virtual nodes; use power=1")
        self._set_form(PowerForm(self.graph.laplacian(normalized=self.normalized), factor, power))

    def expr(self, z: cp.Expression) -> cp.Expression:
        """||N z||^2 with N'N the (power of the) Laplacian."""
        form = self.quadratic(z.shape[0])
        return cp.sum_squares(form.half(z)) if isinstance(form, PowerForm) else super().expr(z)

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The node names of the graph."""
        names: tuple[str, ...] | None = self.graph.feature_names
        return names

    def __repr__(self) -> str:
        options = (", normalized=True" if self.normalized else "") + (f", power={self.power}" if self.power > 1 else "")
        return f"{type(self).__name__}({self.graph!r}{options})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Laplacian, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        plain = Graph.from_edges([(0, 1), (1, 2)], [1.0, 2.0], n_nodes=4)
        signed = Graph.from_edges([(0, 1), (1, 2), (0, 2)], [1.0, 2.0, -0.5], n_nodes=3)
        virtual = Graph.from_edges([(0, 3), (1, 3), (2, 3)], n_nodes=4, virtual=[3])
        return [
            (cls(plain), (4, 1)),
            (cls(signed, normalized=True), (3, 2)),
            (cls(virtual), (3, 1)),
            (cls(signed, power=2), (3, 1)),
            (cls(signed, normalized=True, power=5), (3, 1)),
        ]
