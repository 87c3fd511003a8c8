"""A word of warning when a graph term leaves nothing of the kernel."""

from __future__ import annotations

import warnings

from cvxstructreg.core.atom import Array
from cvxstructreg.core.warp import GraphOperator

#: trace(M gram) / n from which on the graph drowns everything else; published experiments reach about 10^6.
HUGE = 1e8


class GraphDominatesWarning(UserWarning):
    """The graph term is so strong beside the function norm that f can hardly be anything but constant."""


def warn_if_graph_dominates(operator: GraphOperator, gram: Array) -> None:
    """Warn if trace(M gram) / n is huge, M being the graph term over the strength of the function norm."""
    if operator.trace_bound(gram) <= HUGE * operator.n:
        return
    size = operator.trace_with(gram) / operator.n
    if size > HUGE:
        warnings.warn(
            f"the graph term is {size:.1e} times as strong as the function norm (trace(M gram) / n): f is nearly "
            "constant along its edges, and little is left of the labels. Lower the strength of the Laplacian, raise "
            "that of RKHSNorm(), or use normalized=True",
            GraphDominatesWarning,
            stacklevel=2,
        )
