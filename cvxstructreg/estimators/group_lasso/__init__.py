"""Estimators of the sparse overlapping group lasso, with the published algorithm and tables of sentences."""
