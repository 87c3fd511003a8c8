"""Solvers: each module of an algorithm ends with its ``SOLVER``, a :class:`~cvxstructreg.solvers.solver.Solver`.

The files here serve all solvers: ``driver`` is the entry, ``registry`` lists the solvers and chooses one, ``needs``
states what a solver needs of a problem, ``run`` makes one solve, ``iterate`` is what a solver yields, ``reference`` is
CVXPY. The folders hold the algorithms by kind of problem,
each with its helpers and compiled loops. Solvers import certificates, forms and core, never an atom or an estimator.
"""

from cvxstructreg.solvers.driver import InaccurateWarning, NoMinimiserWarning, solve
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.registry import accepting, names, refusals, register, unregister
from cvxstructreg.solvers.solver import Solver

__all__ = [
    "InaccurateWarning",
    "Iterate",
    "NoMinimiserWarning",
    "Solver",
    "accepting",
    "names",
    "refusals",
    "register",
    "solve",
    "unregister",
]
