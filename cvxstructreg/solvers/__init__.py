"""Solvers: each a module with ``NAME``, ``accepts(problem)`` and ``run(problem, start, tol, **options)``."""

from cvxstructreg.solvers.driver import InaccurateWarning, NoMinimiserWarning, solve
from cvxstructreg.solvers.registry import accepting, names, refusals

__all__ = ["InaccurateWarning", "NoMinimiserWarning", "accepting", "names", "refusals", "solve"]
