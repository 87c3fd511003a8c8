"""Penalties from a CVXPY expression alone: their cone program, known structure in it, prox and certified conjugate.

May import ``penalties`` and everything below. Only ``cone_program.py`` reads the compiled data of CVXPY, and only
``cone_solver.py`` calls Clarabel.
"""

from cvxstructreg.core.objective import penalty_of_function, term_of_expression
from cvxstructreg.expressions.from_expression import FromExpression, term_of

penalty_of_function[:] = [FromExpression]  # so that a function of the weights may be a term of a sum,
term_of_expression[:] = [term_of]  # and an expression of a variable as well

__all__ = ["FromExpression"]
