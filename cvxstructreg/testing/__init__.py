"""The contracts of atoms and of solvers as checks, for third parties and for the tests of this package.

``expr`` is the definition of an atom; every other method is compared with it or with CVXPY. A broken clause is an
``AssertionError`` that names the atom, the clause, the point and the two numbers that differ, also under ``python -O``.
"""

from cvxstructreg.testing.atoms import check_atom
from cvxstructreg.testing.solvers import check_solver

__all__ = ["check_atom", "check_solver"]
