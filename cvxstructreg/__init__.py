"""Structured regularization: write the model once, get the reference optimum, the fast solution and the proof."""

from cvxstructreg.core.certificate import Certificate
from cvxstructreg.core.model import Kernel, Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.graphs import Graph
from cvxstructreg.groups import Groups
from cvxstructreg.losses import Hinge, Logistic, MulticlassHinge, Multinomial, Squared, SquaredHinge
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
from cvxstructreg.solvers import InaccurateWarning
from cvxstructreg.verification import Report, certify, verify

__version__ = "0.1.0"

__all__ = [
    "L1",
    "Box",
    "Certificate",
    "Dissimilarity",
    "FeatureNetwork",
    "FusedLasso",
    "Graph",
    "GroupLasso",
    "Groups",
    "Hinge",
    "InaccurateWarning",
    "Kernel",
    "Laplacian",
    "LatentGroupLasso",
    "Linear",
    "Logistic",
    "MulticlassHinge",
    "Multinomial",
    "NonNegative",
    "Objective",
    "Path",
    "Problem",
    "Quadratic",
    "RKHSNorm",
    "Report",
    "Ridge",
    "Solution",
    "Squared",
    "SquaredHinge",
    "Term",
    "certify",
    "lambda_max",
    "path",
    "verify",
]
