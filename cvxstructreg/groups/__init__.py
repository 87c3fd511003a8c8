"""Groups of features: overlapping or not, weighted, kept as one flat array of indices."""

from cvxstructreg.groups.groups import Groups

__all__ = ["Groups"]
