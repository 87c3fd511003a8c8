"""The penalty of the feature network estimators."""

from __future__ import annotations

from typing import Any

from cvxstructreg.estimators.alignment import Columns, aligned_graph
from cvxstructreg.penalties import FeatureNetwork, Ridge


def feature_network(estimator: Any, structure: Any, columns: Columns) -> list[Any]:
    """alpha ||(I - P) w||^2 + beta ||w||^2."""
    alpha, beta = estimator._strength("alpha"), estimator._strength("beta")
    signed = estimator._choice("signed", ("separate", "joint"))
    estimator.graph_ = aligned_graph(structure, columns)
    network = [] if estimator.graph_ is None else [alpha * FeatureNetwork(estimator.graph_, signed=signed)]
    return [*network, beta * Ridge()]
