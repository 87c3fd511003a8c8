"""Atoms of this library inside CVXPY expressions: they keep their identity."""

from __future__ import annotations

from typing import Any

from cvxstructreg.cvx.reading.names import nonneg_wrap
from cvxstructreg.runtime.lazy_cvxpy import cp


class Remembered(nonneg_wrap):
    """The expression ``atom.expr(z)``, which CVXPY solves as usual, with the atom and its argument z.

    An attribute of an expression would be lost when CVXPY copies or flattens it. The atom and its argument are the
    *data* of this wrapper, which CVXPY keeps; the wrapper itself changes nothing.
    """

    def __init__(self, expression: Any, atom: Any = None, argument: Any = None) -> None:
        self.atom, self.argument = atom, argument
        super().__init__(expression)

    def get_data(self) -> list[Any]:
        """The atom and its argument, so that copies have them."""
        return [self.atom, self.argument]


def expression_of(function: Any, z: Any) -> Any:
    """The expression of an atom, a term or an objective at z; if z is affine, it remembers them."""
    expression = function.expr(z)
    if not isinstance(expression, cp.Expression) or not expression.variables() or not z.is_affine():
        return expression
    return Remembered(expression, function, z)
