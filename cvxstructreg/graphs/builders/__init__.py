"""Builders of graphs from data, texts and lexicons. They import the graphs of :mod:`cvxstructreg.graphs`."""
