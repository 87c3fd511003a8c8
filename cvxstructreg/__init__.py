"""Structured regularization: write a model once; get the reference optimum, a fast solution and a proof."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cvxstructreg.certificates.certificate import Certificate, WrongBoundError
from cvxstructreg.certificates.dual_point import DualPoint
from cvxstructreg.core.model import Kernel, Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.penalty import Penalty
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.cvx import UnrecognisedError, register
from cvxstructreg.expressions import FromExpression
from cvxstructreg.graphs import Graph
from cvxstructreg.groups import Groups, TreeGroups
from cvxstructreg.losses import (
    Absolute,
    Cox,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    MulticlassHinge,
    Multinomial,
    MultiTask,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
    Tweedie,
)
from cvxstructreg.numerics.semidefinite import RepairedGramWarning
from cvxstructreg.paths import Path, lambda_max, path
from cvxstructreg.penalties import (
    L1,
    SLOPE,
    BlockNorms,
    Box,
    Dissimilarity,
    ExclusiveLasso,
    FeatureNetwork,
    FusedLasso,
    GroupLasso,
    HuberDifferences,
    HuberPenalty,
    Laplacian,
    LatentGroupLasso,
    NonNegative,
    NuclearNorm,
    Quadratic,
    Ridge,
    RKHSNorm,
    TotalVariation,
    TrendFilter,
    compose,
    differences,
)
from cvxstructreg.row_blocks.block import BlockError, MemoryLimitWarning
from cvxstructreg.row_blocks.design import RowBlocks
from cvxstructreg.runtime.notices import AllZeroWarning, GridEdgeWarning, UngroupedWarning
from cvxstructreg.solvers import InaccurateWarning, NoMinimiserWarning
from cvxstructreg.solvers.graph_strength import GraphDominatesWarning
from cvxstructreg.warped_kernel import WarpedKernel

if TYPE_CHECKING:
    from cvxstructreg import conventions, datasets, estimators, io, metrics, plots, selection, testing
    from cvxstructreg.cvx import PlainProblem, from_cvxpy
    from cvxstructreg.estimators import (
        DissimilaritySVC,
        EarlyStopped,
        FeatureNetworkClassifier,
        FeatureNetworkClassifierCV,
        FeatureNetworkRegressor,
        FeatureNetworkRegressorCV,
        FrequencyRidgeClassifier,
        GroupLassoClassifier,
        GroupLassoClassifierCV,
        GroupLassoRegressor,
        GroupLassoRegressorCV,
        LaplacianElasticNetClassifier,
        LaplacianElasticNetClassifierCV,
        LaplacianElasticNetRegressor,
        LaplacianElasticNetRegressorCV,
        MixedGraphClassifier,
        StructuredClassifier,
        StructuredClassifierCV,
        StructuredRegressor,
        StructuredRegressorCV,
    )
    from cvxstructreg.text import TextStructure
    from cvxstructreg.verification import Diagnosis, Report, certify, diagnose, trace, verify

__version__ = "0.1.0"

register()  # prob.solve(method="structreg")

__all__ = [
    "L1",
    "SLOPE",
    "Absolute",
    "AllZeroWarning",
    "BlockError",
    "BlockNorms",
    "Box",
    "Certificate",
    "Cox",
    "Diagnosis",
    "Dissimilarity",
    "DissimilaritySVC",
    "DualPoint",
    "EarlyStopped",
    "ExclusiveLasso",
    "FeatureNetwork",
    "FeatureNetworkClassifier",
    "FeatureNetworkClassifierCV",
    "FeatureNetworkRegressor",
    "FeatureNetworkRegressorCV",
    "FrequencyRidgeClassifier",
    "FromExpression",
    "FusedLasso",
    "Gamma",
    "Graph",
    "GraphDominatesWarning",
    "GridEdgeWarning",
    "GroupLasso",
    "GroupLassoClassifier",
    "GroupLassoClassifierCV",
    "GroupLassoRegressor",
    "GroupLassoRegressorCV",
    "Groups",
    "Hinge",
    "Huber",
    "HuberDifferences",
    "HuberPenalty",
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
    "MemoryLimitWarning",
    "MixedGraphClassifier",
    "MultiTask",
    "MulticlassHinge",
    "Multinomial",
    "NoMinimiserWarning",
    "NonNegative",
    "NuclearNorm",
    "Objective",
    "Path",
    "Penalty",
    "PlainProblem",
    "Poisson",
    "Problem",
    "Quadratic",
    "Quantile",
    "RKHSNorm",
    "RepairedGramWarning",
    "Report",
    "Ridge",
    "RowBlocks",
    "Solution",
    "Squared",
    "SquaredHinge",
    "StructuredClassifier",
    "StructuredClassifierCV",
    "StructuredRegressor",
    "StructuredRegressorCV",
    "Term",
    "TextStructure",
    "TotalVariation",
    "TreeGroups",
    "TrendFilter",
    "Tweedie",
    "UngroupedWarning",
    "UnrecognisedError",
    "WarpedKernel",
    "WrongBoundError",
    "certify",
    "compose",
    "conventions",
    "datasets",
    "diagnose",
    "differences",
    "estimators",
    "from_cvxpy",
    "io",
    "lambda_max",
    "metrics",
    "path",
    "plots",
    "selection",
    "testing",
    "trace",
    "verify",
]

# Importing scikit-learn or CVXPY takes longer than all else, so modules that need them are loaded on first use.
_ESTIMATORS = {
    "DissimilaritySVC",
    "EarlyStopped",
    "FeatureNetworkClassifier",
    "FeatureNetworkClassifierCV",
    "FeatureNetworkRegressor",
    "FeatureNetworkRegressorCV",
    "FrequencyRidgeClassifier",
    "GroupLassoClassifier",
    "GroupLassoClassifierCV",
    "GroupLassoRegressor",
    "GroupLassoRegressorCV",
    "LaplacianElasticNetClassifier",
    "LaplacianElasticNetClassifierCV",
    "LaplacianElasticNetRegressor",
    "LaplacianElasticNetRegressorCV",
    "MixedGraphClassifier",
    "StructuredClassifier",
    "StructuredClassifierCV",
    "StructuredRegressor",
    "StructuredRegressorCV",
}
_OTHERS = dict.fromkeys(("PlainProblem", "from_cvxpy"), "cvx") | {"TextStructure": "text"}
_OTHERS |= dict.fromkeys(("Diagnosis", "Report", "certify", "diagnose", "trace", "verify"), "verification")
_PARTS = {"conventions", "datasets", "estimators", "io", "metrics", "plots", "selection", "testing"}


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        return getattr(import_module("cvxstructreg.estimators"), name)
    if name in _OTHERS:
        return getattr(import_module(f"{__name__}.{_OTHERS[name]}"), name)
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
