"""A problem of this library that was made from a CVXPY problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.core.solution import Solution
from cvxstructreg.cvx.bounds import Bounds
from cvxstructreg.cvx.reading.layout import Layout
from cvxstructreg.expressions import FromExpression
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


class PlainProblem(Problem):
    """A problem made by :func:`from_cvxpy`: it knows the variables of the CVXPY problem it was made from.

    The objective of the CVXPY problem is ``sign * (value + constant)``.

    Attributes
    ----------
    cvxpy_problem : cp.Problem
        The problem it was made from.
    constant, sign : float
        The constant of the objective; -1 if it was maximised, else 1.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> w = cp.Variable(2)
    >>> objective = cp.sum_squares(np.eye(2) @ w - [3.0, 1.0]) + 2.0 * cp.norm1(w)
    >>> problem = csr.from_cvxpy(cp.Problem(cp.Minimize(objective)))
    >>> isinstance(problem, csr.PlainProblem), problem.sign
    (True, 1.0)
    """

    cvxpy_problem: cp.Problem
    constant: float
    sign: float
    bounds: Bounds
    layout: Layout
    #: In the vector of all entries of the variables: the places of the weights, by columns, and of the intercepts.
    weights_places: Any
    intercept_places: Any
    #: The intercepts are these numbers times their entries.
    unit: float

    @property
    def is_fully_known(self) -> bool:
        """Whether all terms have a known form, so that none is left to a cone solver."""
        return not any(isinstance(term.atom, FromExpression) for term in self.terms)

    def values_of(self, coef: Any, intercept: Any = 0.0) -> dict[Any, Array]:
        """The values of the CVXPY variables at weights, or at a :class:`~cvxstructreg.Solution`."""
        if isinstance(coef, Solution):
            coef, intercept = coef.coef, coef.intercept
        values = self.layout.values(self.vector_of(*self.shaped(coef, intercept)))
        return {variable: values[variable.id] for variable in self.layout.variables}

    def weights_at(self, values: Mapping[Any, Any] | None = None) -> tuple[Array, Any]:
        """``(coef, intercept)`` at values of the CVXPY variables, by default at their current values.

        Values outside of bounds by no more than round-off are moved to the bounds.
        """
        given: dict[int, Any] = {}
        for variable in self.layout.variables:
            value = variable.value if values is None else values.get(variable)
            if value is None:
                raise ValueError(f"the variable {variable.name()} has no value; solve the problem first, or pass one")
            given[variable.id] = np.broadcast_to(np.asarray(value, float), variable.shape)
        x, k = self.bounds.near(self.layout.vector(given)), self.n_outputs
        b = x[self.intercept_places] * self.unit
        if k == 1:
            return x[self.weights_places], float(b[0]) if b.size else 0.0
        return x[self.weights_places].reshape((-1, k), order="F"), b if b.size else np.zeros(k)

    def vector_of(self, theta: Array, b: Any = 0.0) -> Array:
        """The entries of all variables, one after the other, at weights of shape (d, k) and intercepts."""
        x = np.zeros(self.layout.size)
        x[self.weights_places] = theta.ravel(order="F")
        if self.intercept_places.size:
            x[self.intercept_places] = np.ravel(b) / self.unit
        return x
