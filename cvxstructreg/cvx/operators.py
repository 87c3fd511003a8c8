"""Sums and products of CVXPY expressions with atoms: ``lam * L1()`` and ``cp.norm1(w) + Squared(y)``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from cvxstructreg.runtime.lazy_cvxpy import cp


def leave_atoms_to_themselves() -> None:
    """Let ``+`` and ``*`` of CVXPY expressions return NotImplemented for atoms, terms and objectives on the right.

    Python then calls the operator of the atom. CVXPY would try to make an array of the atom and raise. All other
    operands are passed on unchanged.
    """
    for name in ("__add__", "__mul__"):
        operator = getattr(cp.Expression, name)
        if not hasattr(operator, "leaves_atoms"):
            setattr(cp.Expression, name, _leaving_atoms(operator))


def _leaving_atoms(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @wraps(operator)
    def applied(self: Any, other: Any) -> Any:
        from cvxstructreg.core.atom import Atom  # here, because importing the package must not load the core
        from cvxstructreg.core.objective import Objective, Term

        return NotImplemented if isinstance(other, Atom | Term | Objective) else operator(self, other)

    applied.__dict__["leaves_atoms"] = True
    return applied
