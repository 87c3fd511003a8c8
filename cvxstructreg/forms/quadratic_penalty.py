"""The base class of quadratic penalties: all methods follow from the quadratic form."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.checks import real_array
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


class QuadraticPenalty(Atom):
    """w'Mw, summed over the columns of w. A subclass calls ``_set_form`` in its constructor and inherits the rest."""

    def _set_form(self, form: QuadraticForm) -> None:
        object.__setattr__(self, "_form", form)

    def quadratic(self, m: int) -> QuadraticForm:
        """The form, for m rows."""
        form: QuadraticForm = self.__dict__["_form"]
        return form

    def expr(self, z: cp.Expression) -> cp.Expression:
        """||N z||^2 by the factor, with eliminated variables as CVXPY variables, or z'Mz by the matrix."""
        form = self.quadratic(z.shape[0])
        if form.factor is None:
            return cp.sum([cp.quad_form(z[:, j], cp.psd_wrap(form.matrix)) for j in range(z.shape[1])])
        if form.eliminated is None:
            return cp.sum_squares(form.factor @ z)
        means = cp.Variable((form.eliminated.shape[1], z.shape[1]))
        return cp.sum_squares(form.factor @ z + form.eliminated @ means)

    def virtual_values(self, z: Array) -> Array:
        """The values of the virtual nodes that the penalty minimises over, one row for each; no rows without them."""
        return self.quadratic(z.shape[0]).eliminated_values(z)

    @property
    def size(self) -> int | None:
        """Number of rows of the matrix."""
        return self.quadratic(0).size

    def value(self, z: Array) -> float:
        """z'Mz."""
        return self.quadratic(z.shape[0]).value(z)

    def grad(self, z: Array) -> Array:
        """2 M z."""
        return 2.0 * self.quadratic(z.shape[0]).apply(z)

    def hessp(self, z: Array, p: Array) -> Array:
        """2 M p."""
        return 2.0 * self.quadratic(z.shape[0]).apply(p)

    def lipschitz(self) -> float:
        """Twice (an upper bound of) the largest eigenvalue of M."""
        return 2.0 * self.quadratic(0).largest_eigenvalue

    def prox(self, v: Array, t: float) -> Array:
        """(I + 2 t M)^-1 v."""
        return self.quadratic(v.shape[0]).prox(v, t)

    def conj(self, u: Array) -> float:
        """1/4 u'M^+ u on the range of M."""
        return self.quadratic(u.shape[0]).conj(u)


class MatrixPenalty(QuadraticPenalty):
    """theta' gram theta by the matrix: the function norm as an ordinary quadratic term."""

    formula = "theta' gram theta"

    def __init__(self, matrix: Any) -> None:
        self._set_form(QuadraticForm(matrix=matrix))


def checked_diagonal(weights: Any, name: str) -> Array | None:
    """The weights as a read-only array, after checking that they are finite and nonnegative; None stays None."""
    if weights is None:
        return None
    array = real_array(weights, f"the weights of {name}")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"the weights of {name} must be one number for each feature, got shape {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        bad = int(np.flatnonzero(~np.isfinite(array) | (array < 0))[0])
        raise ValueError(f"the weights of {name} must be finite and nonnegative; number {bad} is {array[bad]}")
    array.flags.writeable = False
    return array
