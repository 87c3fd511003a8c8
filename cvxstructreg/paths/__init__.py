"""Families of problems that differ in one strength: where all weights become zero, and paths from there."""

from cvxstructreg.paths.largest_strength import lambda_max
from cvxstructreg.paths.warm_path import Path, path

__all__ = ["Path", "lambda_max", "path"]
