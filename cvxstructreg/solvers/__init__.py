"""Solvers: each module that implements an algorithm ends with ``SOLVER``, a :class:`~cvxstructreg.solvers.Solver`.

The files here are shared by all solvers: ``driver`` is the entry point, ``registry`` lists the solvers and chooses one,
``needs`` states what a solver requires of a problem, ``run`` performs one solve, ``iterate`` is what a solver yields,
and ``reference`` is CVXPY. The folders hold the algorithms by kind of problem, each with its helpers and compiled
loops. Solvers import certificates, forms and core, never an atom or an estimator.
"""

from cvxstructreg.solvers.driver import NoMinimiserWarning, solve
from cvxstructreg.solvers.iterate import InaccurateWarning, Iterate
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
