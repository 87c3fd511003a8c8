"""What the builders of graphs and groups share: their base class, and how features are named and looked up.

It imports checks from :mod:`cvxstructreg.core`. Graphs, groups and the estimators import it.
"""
