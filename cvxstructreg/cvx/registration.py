"""Make this library known to CVXPY, as soon as CVXPY is imported."""

from __future__ import annotations

from typing import Any

from cvxstructreg.cvx.operators import leave_atoms_to_themselves
from cvxstructreg.runtime.lazy_cvxpy import cp, when_imported

METHOD = "structreg"


def register() -> None:
    """Make ``prob.solve(method="structreg")`` known to CVXPY, and sums and products of its expressions with atoms.

    If CVXPY is not imported yet, this waits for its import.
    """
    when_imported(_register)


def _register() -> None:
    cp.Problem.register_solve(METHOD, _solve)
    leave_atoms_to_themselves()


def _solve(prob: Any, **options: Any) -> float:
    from cvxstructreg.cvx.solving import solve_structreg

    return solve_structreg(prob, **options)
