"""Estimators of the Laplacian elastic net."""
