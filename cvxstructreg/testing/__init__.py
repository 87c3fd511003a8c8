"""Checks of the contracts of atoms and solvers, for your own atoms and solvers and for the tests of this package.

``expr`` defines an atom; every other method is compared with ``expr`` or with CVXPY. A failed check raises an
``AssertionError`` that names the atom, the clause, the point and the two numbers that differ, also under ``python -O``.
"""

from cvxstructreg.testing.atoms import check_atom
from cvxstructreg.testing.solvers import check_solver

__all__ = ["check_atom", "check_solver"]
