"""Solvers of almost any problem: proximal gradients with momentum (``fista``) and ``admm``.

A solver imports core, forms, certificates and what lies below them, and ``iterate`` of :mod:`cvxstructreg.solvers`.
"""
