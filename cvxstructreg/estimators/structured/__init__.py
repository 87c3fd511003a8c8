"""Estimators with any loss and any sum of penalties."""
