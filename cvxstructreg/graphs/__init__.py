"""Graphs over features or samples: signed, sparse, possibly directed, possibly with virtual nodes."""

from cvxstructreg.graphs.graph import Graph

__all__ = ["Graph"]
