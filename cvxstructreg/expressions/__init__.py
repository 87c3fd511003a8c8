"""Penalties from a CVXPY expression alone: their cone program, known structure in it, prox and certified conjugate.

May import ``penalties`` and everything below. Only ``cone_program.py`` reads the compiled data of CVXPY, and only
``cone_solver.py`` calls Clarabel.
"""

from cvxstructreg.expressions.from_expression import FromExpression

__all__ = ["FromExpression"]
