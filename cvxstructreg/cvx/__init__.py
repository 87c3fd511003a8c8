"""Plain CVXPY problems, solved fast and proved: recognition, the solve method, and atoms inside expressions.

May import ``losses``, ``penalties``, ``expressions`` and everything below. Only ``reading/names.py`` imports from
inside CVXPY.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cvxstructreg.cvx.reading.refusal import UnrecognisedError
from cvxstructreg.cvx.registration import register

if TYPE_CHECKING:
    from cvxstructreg.cvx.plain_problem import PlainProblem
    from cvxstructreg.cvx.solving import solve_structreg
    from cvxstructreg.cvx.translation import from_cvxpy

__all__ = ["PlainProblem", "UnrecognisedError", "from_cvxpy", "register", "solve_structreg"]

# These files need CVXPY, so they are loaded on first use.
_FILES = {"PlainProblem": "plain_problem", "from_cvxpy": "translation", "solve_structreg": "solving"}


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
