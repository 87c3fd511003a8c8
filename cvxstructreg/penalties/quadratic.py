"""Any quadratic penalty, given by its matrix or by a factor of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.model import as_design
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT, QuadraticForm, to_dense
from cvxstructreg.forms.quadratic_penalty import QuadraticPenalty
from cvxstructreg.numerics.semidefinite import exceeds
from cvxstructreg.penalties.ridge import RKHSNorm

#: Negative eigenvalues that count as round-off, relative to the largest entry. (The round-off of a factorisation of up
#: to 1,000 rows is a hundredth of that.)
ROUND_OFF = 1e-8


@dataclass(frozen=True, eq=False, repr=False)
class Quadratic(QuadraticPenalty):
    """w'Qw, or ||N w||^2 with Q = N'N: no factor 1/2. Pass exactly one of ``matrix`` and ``factor``.

    Generalised ridge regression, or Tikhonov regularization (Tikhonov 1963).

    Parameters
    ----------
    matrix : array or scipy.sparse of shape (d, d)
        Symmetric and positive semidefinite (checked up to 1,000 features). In a problem with a Kernel model of the same
        matrix, the penalty becomes :class:`RKHSNorm`, which is equal to it.
    factor : array or scipy.sparse of shape (m, d)
        N with Q = N'N. The penalty is then always convex, and the factor is usually sparser than Q.

    Examples
    --------
    >>> Quadratic(matrix=[[2.0, 0.0], [0.0, 1.0]])([1.0, 2.0])
    6.0
    >>> Quadratic(factor=[[1.0, -1.0]])([1.0, 3.0])
    4.0
    """

    matrix: Any = None
    factor: Any = None

    formula: ClassVar[str] = "w'Qw"
    convention: ClassVar[str] = "no factor 1/2"

    def __post_init__(self) -> None:
        if (self.matrix is None) == (self.factor is None):
            raise ValueError("Quadratic takes exactly one of matrix= and factor=")
        if self.factor is not None:
            form = QuadraticForm(factor=as_design(self.factor, "factor"))
        else:
            form = QuadraticForm(matrix=_checked_psd(as_design(self.matrix, "matrix")))
        self._set_form(form)

    def on_model(self, model: Any) -> Atom:
        """The norm of the function if the matrix is the Gram matrix of a Kernel model."""
        if self.factor is not None or model.kernel is None or self.size != model.n_weights:
            return self
        given = self.quadratic(model.n_weights).matrix
        return RKHSNorm() if np.array_equal(to_dense(given), model.design) else self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'matrix' if self.factor is None else 'factor'} for {self.size} features)"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Quadratic, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        N = rng.normal(size=(3, 4))
        return [
            (cls(matrix=N.T @ N), (4, 1)),
            (cls(factor=N), (4, 2)),
            (cls(factor=sp.csr_array(np.round(N))), (4, 1)),
        ]


def _checked_psd(matrix: Any) -> Any:
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"matrix must be square, got shape {matrix.shape}; pass a rectangular N as factor=")
    scale = float(abs(matrix).max()) or 1.0
    if float(abs(matrix - matrix.T).max()) > 1e-10 * scale:
        raise ValueError("matrix must be symmetric; pass (Q + Q.T) / 2 if that is what you mean")
    if matrix.shape[0] <= DENSE_LIMIT and not exceeds(to_dense(matrix), -0.9 * ROUND_OFF * scale):
        smallest = float(np.linalg.eigvalsh(to_dense(matrix))[0])
        if smallest < -ROUND_OFF * scale:
            raise ValueError(f"matrix must be positive semidefinite, but its smallest eigenvalue is {smallest:.3g}")
    return (matrix + matrix.T) / 2
