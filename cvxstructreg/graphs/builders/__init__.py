"""Builders of graphs from data, texts and lexicons. They import :mod:`cvxstructreg.graphs`."""
