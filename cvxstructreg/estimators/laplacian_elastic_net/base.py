"""The penalty of the Laplacian elastic net estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.estimators.alignment import Columns, aligned_graph
from cvxstructreg.penalties import L1, Laplacian


def laplacian_elastic_net(estimator: Any, structure: Any, columns: Columns) -> list[Any]:
    """lam1 ||w||_1 + lam2/2 w'Lw."""
    lam1, lam2 = estimator._strength("lam1"), estimator._strength("lam2")
    normalized = estimator.normalized
    if not isinstance(normalized, bool | np.bool_):
        raise TypeError(f"normalized must be True or False, got {normalized!r}")
    graph = estimator.graph_ = aligned_graph(structure, columns)
    smooth = [] if graph is None else [0.5 * lam2 * Laplacian(graph, normalized=bool(normalized))]
    return [lam1 * L1(), *smooth]
