"""What no rule knows: the other terms and constraints of a problem as one penalty from a CVXPY expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxstructreg.core.objective import Term
from cvxstructreg.cvx.bounds import Bounds
from cvxstructreg.cvx.reading.affine import Reader
from cvxstructreg.cvx.reading.layout import Layout
from cvxstructreg.cvx.reading.refusal import UnrecognisedError, shown
from cvxstructreg.expressions import FromExpression
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp

#: A point may violate a constraint by this much and count as feasible.
FEASIBLE = 1e-8
#: The expression is raised above zero by this part of its size.
MARGIN = 1e-6
#: Weights up to which penalties of known form are joined with what is left.
MOST_JOINED = 500


class LeftOver:
    """Terms, a linear term and constraints that have no known form."""

    def __init__(
        self, terms: list[tuple[Any, Array]], gradient: Array, constraints: list[Any], bounds: Bounds, reader: Reader
    ) -> None:
        self.terms, self.gradient, self.constraints = terms, gradient, constraints
        self.bounds, self.reader = bounds, reader

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return not self.terms and not np.any(self.gradient) and not self.constraints

    @property
    def first(self) -> str:
        """The first term that is left, for messages."""
        if self.terms:
            return shown(self.terms[0][0])
        return "a linear term" if np.any(self.gradient) else shown(self.constraints[0])

    def touched(self, layout: Layout) -> Any:
        """The entries of the variables of all terms that are left."""
        ids = {v.id for e, _ in self.terms for v in e.variables()}
        ids |= {v.id for constraint in self.constraints for v in constraint.variables()}
        found = self.gradient != 0
        for variable in layout.variables:
            if variable.id in ids:
                found[layout.first[variable.id] : layout.first[variable.id] + variable.size] = True
        return found

    def joins(self, n_weights: int) -> bool:
        """Whether the penalties that are not smooth become one with what is left.

        A certificate needs this if there are constraints. For few weights it is then one solve of a cone program; a
        sum of several terms needs a search for the share of each.
        """
        return bool(self.constraints) or n_weights <= MOST_JOINED

    def term(
        self, layout: Layout, columns: Any, shape: tuple[int, int] | None = None, others: Sequence[Term] = ()
    ) -> tuple[Term, float]:
        """The penalty on the weights, which are the ``columns`` of the vector, and the constant added to it.

        ``shape`` is that of a matrix of weights; the ``others`` are added to the penalty.
        """
        name = self.first if len(self.terms) + len(self.constraints) == 1 else f"{self.first} and others"

        def bare(w: Any) -> Any:
            entries = w if shape is None else cp.reshape(w, (columns.size,), order="F")
            weights = w if shape is not None else cp.reshape(w, (columns.size, 1), order="F")
            total = [self._expression(entries, layout, columns), *(term.expr(weights) for term in others)]
            return total[0] if len(total) == 1 else cp.sum(cp.hstack(total))

        raised = 0.0
        if np.any(self.gradient) or any(not e.is_nonneg() or np.any(w < 0) for e, w in self.terms):
            expression = bare(cp.Variable(int(columns.size) if shape is None else shape))
            if not expression.is_convex():
                raise UnrecognisedError(
                    f"{name} is not convex by the rules of CVXPY, or not concave if it is maximised"
                )
            raised = 0.0 if expression.is_nonneg() else self._raise(expression, name)

        def function(w: Any) -> Any:
            return bare(w) + raised if raised else bare(w)

        return 1.0 * FromExpression(function, name=name, joint=shape is not None), raised

    def _raise(self, expression: Any, name: str) -> float:
        """A constant that makes the expression nonnegative."""
        problem = cp.Problem(cp.Minimize(expression))
        try:
            lowest = float(problem.solve(solver=cp.CLARABEL))
        except cp.SolverError as error:
            raise UnrecognisedError(f"{name} has no known form, and its minimum could not be found: {error}") from error
        if not np.isfinite(lowest):
            raise UnrecognisedError(
                f"{name} has no known form, and without the other terms it is {problem.status}; a penalty must be "
                "bounded from below"
            )
        return max(0.0, -lowest) + MARGIN * (1.0 + abs(lowest))

    def _expression(self, w: Any, layout: Layout, columns: Any) -> Any:
        """The sum of all that is left, as a function of the weights."""
        place = np.full(layout.size, -1)
        place[columns] = np.arange(columns.size)
        swap = {}
        for variable in layout.variables:
            first = layout.first[variable.id]
            at = place[first : first + variable.size]
            if np.all(at >= 0):
                entries = w[int(at[0])] if variable.ndim == 0 else w[at]
                swap[variable.id] = entries if variable.ndim < 2 else cp.reshape(entries, variable.shape, order="F")
        total = [cp.sum(cp.multiply(weights, substituted(e, swap, self.reader))) for e, weights in self.terms]
        if np.any(self.gradient):
            total += [self.gradient[columns] @ w, *self._bounds(w, columns)]
        if self.constraints:
            changed = [with_arguments(constraint, swap, self.reader) for constraint in self.constraints]
            total.append(cp.transforms.indicator(changed, err_tol=FEASIBLE))
        return total[0] if len(total) == 1 else cp.sum(cp.hstack(total))

    def _bounds(self, w: Any, columns: Any) -> list[Any]:
        """The bounds, repeated here because they may bound the linear term from below."""
        lower, upper = self.bounds.lower[columns], self.bounds.upper[columns]
        below, above = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        given = [w[below] >= lower[below]] if below.size else []
        given += [w[above] <= upper[above]] if above.size else []
        return [cp.transforms.indicator(given, err_tol=FEASIBLE)] if given else []


def substituted(e: Any, swap: dict[int, Any], reader: Reader) -> Any:
    """The expression with other variables, and with the values of its parameters."""
    if isinstance(e, cp.Variable):
        return swap.get(e.id, e)  # auxiliary variables stay
    if reader.is_constant(e):
        return cp.Constant(reader.value(e)) if e.parameters() else e
    if isinstance(e, cp.transforms.indicator):
        return cp.transforms.indicator([with_arguments(c, swap, reader) for c in e.args], err_tol=FEASIBLE)
    return with_arguments(e, swap, reader)


def with_arguments(e: Any, swap: dict[int, Any], reader: Reader) -> Any:
    """An atom or a constraint with other variables in its arguments.

    A semidefinite constraint is written with the smallest eigenvalue: CVXPY does not compile it inside an indicator.
    """
    arguments = [substituted(argument, swap, reader) for argument in e.args]
    if isinstance(e, cp.PSD):
        return cp.lambda_min((arguments[0] + arguments[0].T) / 2.0) >= 0
    return e.copy(arguments)
