"""Estimators of feature network regularization."""
