"""An expression of one CVXPY variable, as a function of the weights."""

from __future__ import annotations

from typing import Any

from cvxstructreg.runtime.lazy_cvxpy import cp


class OfVariable:
    """The function w -> expression with w in place of its only variable.

    Examples
    --------
    >>> w = cp.Variable(3)
    >>> OfVariable(cp.norm1(2.0 * w))(cp.Constant([1.0, -1.0, 0.5])).value.item()
    5.0
    """

    def __init__(self, expression: cp.Expression) -> None:
        variables = expression.variables()
        text = " ".join(str(expression).split())
        text = text if len(text) <= 80 else text[:77] + "..."
        if len(variables) != 1:
            names = ", ".join(variable.name() for variable in variables) or "none"
            raise TypeError(
                f"a penalty is a function of the weights, so its expression has one variable; {text} has {names}. "
                "Write it as a function, FromExpression(lambda w: ...), or state the whole problem as a cp.Problem and "
                "call from_cvxpy"
            )
        (self.variable,) = variables
        declared = [key for key, value in self.variable.attributes.items() if value is not None and value is not False]
        if declared:
            raise ValueError(
                f"the variable of {text} is declared {declared[0]}, which the weights of a model are not; use a "
                "variable without attributes, and NonNegative() or Box() for bounds"
            )
        if self.variable.ndim > 2:
            raise ValueError(
                f"the variable of {text} has shape {self.variable.shape}; weights have shape (d,) or (d, k)"
            )
        self.expression = expression

    @property
    def is_joint(self) -> bool:
        """Whether the variable is a matrix with several columns."""
        return self.variable.ndim == 2 and self.variable.shape[1] > 1

    def __call__(self, w: Any) -> Any:
        """The expression at w, an expression of the same size as the variable."""
        if w.shape != self.variable.shape:
            w = cp.reshape(w, self.variable.shape, order="F")
        return self._at(self.expression, w)

    def _at(self, e: Any, w: Any) -> Any:
        if isinstance(e, cp.Variable):
            return w
        if not e.variables():
            return e
        arguments = [self._at(argument, w) for argument in e.args]
        if isinstance(e, cp.transforms.indicator):
            return cp.transforms.indicator(arguments, err_tol=e.err_tol)
        return e.copy(arguments)
