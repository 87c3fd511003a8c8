"""Solvers: each a module with ``NAME``, ``accepts(problem)`` and ``run(problem, start, tol, **options)``.

The files here serve all solvers: ``driver`` is the entry, ``registry`` knows the solvers and chooses, ``run`` makes one
solve, ``iterate`` is what a solver yields, ``reference`` is CVXPY. The folders hold the algorithms by kind of problem,
each with its helpers and compiled loops. Solvers import certificates, forms and core, never an atom or an estimator.
"""

from cvxstructreg.solvers.driver import InaccurateWarning, NoMinimiserWarning, solve
from cvxstructreg.solvers.registry import accepting, names, refusals

__all__ = ["InaccurateWarning", "NoMinimiserWarning", "accepting", "names", "refusals", "solve"]
