"""Plots with matplotlib (only these functions need it): each function draws on Axes and returns them."""

from cvxstructreg.plots.coefficients import coefficient_path
from cvxstructreg.plots.convergence import convergence
from cvxstructreg.plots.network import feature_graph
from cvxstructreg.plots.regions import decision_regions
from cvxstructreg.plots.sentences import coloured_sentences

__all__ = ["coefficient_path", "coloured_sentences", "convergence", "decision_regions", "feature_graph"]
