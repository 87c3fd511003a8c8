"""Small data sets shipped with the package."""

from cvxstructreg.datasets.corpus import load_corpus

__all__ = ["load_corpus"]
