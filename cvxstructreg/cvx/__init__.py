"""Plain CVXPY problems, solved fast and proved: recognition, the solve method, and atoms inside expressions.

May import ``losses``, ``penalties``, ``expressions`` and everything below. Only ``reading/names.py`` imports from
inside CVXPY.
"""

from cvxstructreg.cvx.plain_problem import PlainProblem
from cvxstructreg.cvx.reading.refusal import UnrecognisedError
from cvxstructreg.cvx.solving import register, solve_structreg
from cvxstructreg.cvx.translation import from_cvxpy

__all__ = ["PlainProblem", "UnrecognisedError", "from_cvxpy", "register", "solve_structreg"]
