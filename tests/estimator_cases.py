"""Small data and a graph, groups or pairs for each estimator, for the tests of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg import L1, Graph, GroupLasso, Laplacian, estimators

NAMES = ["age", "height", "weight", "pulse", "noise"]
GRAPH = Graph.from_edges([(0, 1), (1, 2), (3, 4)], [1.0, 2.0, 1.0], n_nodes=5)
GROUPS = {"body": [0, 1, 2], "heart": [2, 3], "rest": [4]}

#: name of the estimator -> parameters with structure, and the parameter to tune
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "FeatureNetworkClassifier": ({"graph": GRAPH}, "alpha"),
    "FeatureNetworkRegressor": ({"graph": GRAPH}, "alpha"),
    "LaplacianElasticNetClassifier": ({"graph": GRAPH}, "lam1"),
    "LaplacianElasticNetRegressor": ({"graph": GRAPH}, "lam1"),
    "MixedGraphClassifier": (
        {"graph": "knn", "graph_options": {"n_neighbors": 4}, "loss": "squared_hinge"},
        "lam2",
    ),
    "DissimilaritySVC": ({"pairs": [(0, 1), (2, 3)]}, "lam1"),
    "GroupLassoClassifier": ({"groups": GROUPS}, "lam_group"),
    "GroupLassoRegressor": ({"groups": GROUPS}, "lam_group"),
    "EarlyStopped": ({"groups": GROUPS, "rhos": [1.0, 10.0], "stops": [1, 5], "cv": 2}, "lam_group"),
    "FrequencyRidgeClassifier": ({"groups": GROUPS}, "lam"),
    "StructuredClassifier": (
        {"penalty": L1() + GroupLasso(list(GROUPS.values())), "loss": "squared_hinge"},
        "class_weight",
    ),
    "StructuredRegressor": ({"penalty": 0.1 * L1() + Laplacian(GRAPH), "loss": "huber"}, "delta"),
}


def make(name: str, **params: Any) -> Any:
    """The estimator with its structure."""
    return getattr(estimators, name)(**{**CASES[name][0], **params})


def data(name: str, n: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets that fit the estimator; the classes are 0 and 1 in turn."""
    rng = np.random.default_rng(seed)
    signs = np.tile([-1.0, 1.0], n // 2)
    X = rng.normal(size=(n, 5)) + 0.8 * signs[:, None] * np.array([1.0, 1.0, 0.5, 0.0, 0.0])
    return (X, X[:, 0] + X[:, 1]) if name.endswith("Regressor") else (X, (signs > 0).astype(int))
