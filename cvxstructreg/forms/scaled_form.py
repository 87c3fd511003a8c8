"""A quadratic term of a problem: its strength and its form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT


@dataclass(frozen=True, eq=False)
class ScaledForm:
    """``scale * x'Mx``."""

    scale: float
    form: QuadraticForm

    def value(self, x: Array) -> float:
        """scale * x'Mx."""
        return self.scale * self.form.value(x)

    def grad_noise(self, x: Array) -> Array:
        """The round-off in each entry of the gradient."""
        return (0.5 * UNIT * self.scale) * self.form.product_size(x)

    def grad_error(self, x: Array) -> float:
        """The norm of the round-off in the gradient; few numbers are added for an entry of a sparse product."""
        return 0.5 * UNIT * self.scale * self.form.norm_bound * float(np.linalg.norm(x))

    def grad(self, x: Array) -> Array:
        """2 scale M x."""
        return 2.0 * self.scale * self.form.apply(x)
