"""Solvers: each a module with ``NAME``, ``accepts(problem)`` and ``run(problem, start, tol, **options)``."""

from cvxstructreg.solvers.driver import InaccurateWarning, solve
from cvxstructreg.solvers.registry import accepting, names, refusals

__all__ = ["InaccurateWarning", "accepting", "names", "refusals", "solve"]
