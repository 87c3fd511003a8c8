"""Plots with matplotlib (only these functions need it): each function draws on Axes and returns them."""

from cvxstructreg.plots.coefficients import coefficient_path
from cvxstructreg.plots.convergence import convergence
from cvxstructreg.plots.cross_validation import cv_curve
from cvxstructreg.plots.duality import duality
from cvxstructreg.plots.functions import conjugate, prox
from cvxstructreg.plots.network import feature_graph
from cvxstructreg.plots.regions import decision_regions
from cvxstructreg.plots.sentences import coloured_sentences

__all__ = [
    "coefficient_path",
    "coloured_sentences",
    "conjugate",
    "convergence",
    "cv_curve",
    "decision_regions",
    "duality",
    "feature_graph",
    "prox",
]
