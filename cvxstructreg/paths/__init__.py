"""Regularization paths: the strength at which all weights become zero, and solutions for decreasing strengths."""

from cvxstructreg.paths.largest_strength import lambda_max
from cvxstructreg.paths.warm_path import Path, path

__all__ = ["Path", "lambda_max", "path"]
