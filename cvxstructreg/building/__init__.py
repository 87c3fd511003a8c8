"""Shared code of the graph and group builders: the base class, and the names of features and their lookup.

This package imports checks from :mod:`cvxstructreg.core`. Graphs, groups and the estimators import this package.
"""
