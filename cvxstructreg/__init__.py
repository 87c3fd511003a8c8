"""Structured regularization: write a model once; get the reference optimum, a fast solution and a proof."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cvxstructreg.certificates.certificate import Certificate, WrongBoundError
from cvxstructreg.core.model import Kernel, Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.graphs import Graph
from cvxstructreg.groups import Groups
from cvxstructreg.losses import Hinge, Logistic, MulticlassHinge, Multinomial, Squared, SquaredHinge
from cvxstructreg.numerics.semidefinite import RepairedGramWarning
from cvxstructreg.paths import Path, lambda_max, path
from cvxstructreg.penalties import (
    L1,
    Box,
    Dissimilarity,
    FeatureNetwork,
    FusedLasso,
    GroupLasso,
    Laplacian,
    LatentGroupLasso,
    NonNegative,
    Quadratic,
    Ridge,
    RKHSNorm,
)
from cvxstructreg.solvers import InaccurateWarning, NoMinimiserWarning
from cvxstructreg.solvers.graph_strength import GraphDominatesWarning
from cvxstructreg.verification import Report, certify, verify
from cvxstructreg.warped_kernel import WarpedKernel

if TYPE_CHECKING:
    from cvxstructreg import conventions, datasets, estimators, metrics, plots
    from cvxstructreg.estimators import (
        DissimilaritySVC,
        FeatureNetworkClassifier,
        FeatureNetworkClassifierCV,
        GroupLassoClassifier,
        GroupLassoClassifierCV,
        GroupLassoRegressor,
        GroupLassoRegressorCV,
        LaplacianElasticNetClassifier,
        LaplacianElasticNetClassifierCV,
        LaplacianElasticNetRegressor,
        LaplacianElasticNetRegressorCV,
        MixedGraphClassifier,
    )

__version__ = "0.1.0"

__all__ = [
    "L1",
    "Box",
    "Certificate",
    "Dissimilarity",
    "DissimilaritySVC",
    "FeatureNetwork",
    "FeatureNetworkClassifier",
    "FeatureNetworkClassifierCV",
    "FusedLasso",
    "Graph",
    "GraphDominatesWarning",
    "GroupLasso",
    "GroupLassoClassifier",
    "GroupLassoClassifierCV",
    "GroupLassoRegressor",
    "GroupLassoRegressorCV",
    "Groups",
    "Hinge",
    "InaccurateWarning",
    "Kernel",
    "Laplacian",
    "LaplacianElasticNetClassifier",
    "LaplacianElasticNetClassifierCV",
    "LaplacianElasticNetRegressor",
    "LaplacianElasticNetRegressorCV",
    "LatentGroupLasso",
    "Linear",
    "Logistic",
    "MixedGraphClassifier",
    "MulticlassHinge",
    "Multinomial",
    "NoMinimiserWarning",
    "NonNegative",
    "Objective",
    "Path",
    "Problem",
    "Quadratic",
    "RKHSNorm",
    "RepairedGramWarning",
    "Report",
    "Ridge",
    "Solution",
    "Squared",
    "SquaredHinge",
    "Term",
    "WarpedKernel",
    "WrongBoundError",
    "certify",
    "conventions",
    "datasets",
    "estimators",
    "lambda_max",
    "metrics",
    "path",
    "plots",
    "verify",
]

# Importing scikit-learn takes longer than importing everything else, so modules that need it are loaded on first use.
_ESTIMATORS = {
    "DissimilaritySVC",
    "FeatureNetworkClassifier",
    "FeatureNetworkClassifierCV",
    "GroupLassoClassifier",
    "GroupLassoClassifierCV",
    "GroupLassoRegressor",
    "GroupLassoRegressorCV",
    "LaplacianElasticNetClassifier",
    "LaplacianElasticNetClassifierCV",
    "LaplacianElasticNetRegressor",
    "LaplacianElasticNetRegressorCV",
    "MixedGraphClassifier",
}
_PARTS = {"conventions", "datasets", "estimators", "metrics", "plots"}


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        return getattr(import_module("cvxstructreg.estimators"), name)
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
