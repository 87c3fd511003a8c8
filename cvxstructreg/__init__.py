"""Structured regularization: write a model once; get the reference optimum, a fast solution and a proof.

Names are loaded when first read (PEP 562): ``import cvxstructreg`` loads neither NumPy nor SciPy, and a script waits
for the modules that it uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cvxstructreg.cvx.registration import register

if TYPE_CHECKING:
    from cvxstructreg import conventions, datasets, estimators, io, metrics, plots, selection, testing
    from cvxstructreg.certificates.certificate import Certificate, WrongBoundError
    from cvxstructreg.certificates.dual_point import DualPoint
    from cvxstructreg.core.model import Kernel, Linear
    from cvxstructreg.core.objective import Objective, Term
    from cvxstructreg.core.penalty import Penalty
    from cvxstructreg.core.problem import Problem
    from cvxstructreg.core.solution import Solution
    from cvxstructreg.cvx import PlainProblem, UnrecognisedError, from_cvxpy
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
    from cvxstructreg.text import TextStructure
    from cvxstructreg.verification import Diagnosis, Report, certify, diagnose, trace, verify
    from cvxstructreg.warped_kernel import WarpedKernel

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

# Where each name is defined; tests compare this with the imports for type checkers above.
_HOMES = {
    "certificates.certificate": ("Certificate", "WrongBoundError"),
    "certificates.dual_point": ("DualPoint",),
    "core.model": ("Kernel", "Linear"),
    "core.objective": ("Objective", "Term"),
    "core.penalty": ("Penalty",),
    "core.problem": ("Problem",),
    "core.solution": ("Solution",),
    "cvx": ("PlainProblem", "UnrecognisedError", "from_cvxpy"),
    "estimators": (
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
    ),
    "expressions": ("FromExpression",),
    "graphs": ("Graph",),
    "groups": ("Groups", "TreeGroups"),
    "losses": (
        "Absolute",
        "Cox",
        "Gamma",
        "Hinge",
        "Huber",
        "Logistic",
        "MultiTask",
        "MulticlassHinge",
        "Multinomial",
        "Poisson",
        "Quantile",
        "Squared",
        "SquaredHinge",
        "Tweedie",
    ),
    "numerics.semidefinite": ("RepairedGramWarning",),
    "paths": ("Path", "lambda_max", "path"),
    "penalties": (
        "BlockNorms",
        "Box",
        "Dissimilarity",
        "ExclusiveLasso",
        "FeatureNetwork",
        "FusedLasso",
        "GroupLasso",
        "HuberDifferences",
        "HuberPenalty",
        "L1",
        "Laplacian",
        "LatentGroupLasso",
        "NonNegative",
        "NuclearNorm",
        "Quadratic",
        "RKHSNorm",
        "Ridge",
        "SLOPE",
        "TotalVariation",
        "TrendFilter",
        "compose",
        "differences",
    ),
    "row_blocks.block": ("BlockError", "MemoryLimitWarning"),
    "row_blocks.design": ("RowBlocks",),
    "runtime.notices": ("AllZeroWarning", "GridEdgeWarning", "UngroupedWarning"),
    "solvers": ("InaccurateWarning", "NoMinimiserWarning"),
    "solvers.graph_strength": ("GraphDominatesWarning",),
    "text": ("TextStructure",),
    "verification": ("Diagnosis", "Report", "certify", "diagnose", "trace", "verify"),
    "warped_kernel": ("WarpedKernel",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = {
    *("building", "certificates", "cli", "conventions", "core", "crosscheck", "cvx", "datasets", "estimators"),
    *("expressions", "forms", "graphs", "groups", "instances", "io", "losses", "metrics", "numerics", "paths"),
    *("penalties", "plots", "reductions", "row_blocks", "runtime", "selection", "solvers", "testing", "text"),
    *("verification", "warped_kernel"),
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        return value
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
