"""Quadratic forms made from others: powers of a matrix, and forms of linear images."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.quadratic_form import QuadraticForm, largest_row_sum
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property

#: A power is stored dense if more than this share of its entries are nonzero.
DENSE_SHARE = 0.3
#: From WIDE columns on, dense products with L are faster if more than the share DENSE_BASE of L is nonzero.
WIDE, DENSE_BASE = 100, 0.03


class PowerForm(QuadraticForm):
    """w'L^p w for a sparse L = B'B and p > 1, by p products with L; the matrix L^p is computed only when needed."""

    def __init__(self, laplacian: Any, incidence: Any, power: int) -> None:
        super().__init__(matrix=laplacian)
        self.base, self.incidence, self.power = laplacian, incidence, power

    @property
    def is_operator(self) -> bool:
        """True, because L^p has many more entries than L."""
        return True

    @cached_property
    def matrix(self) -> Any:
        """L^p, sparse as long as few entries are nonzero."""
        product: Any = self.base
        for _ in range(self.power - 1):
            product = product @ self.base
            if sp.issparse(product) and product.nnz > DENSE_SHARE * product.shape[0] ** 2:
                product = product.toarray()
        return (product + product.T) / 2

    def apply(self, w: Array) -> Array:
        """L^p w."""
        wide = w.shape[1] >= WIDE and self.base.nnz > DENSE_BASE * self.size**2
        base = self._dense_base if wide else self.base
        for _ in range(self.power):
            w = base @ w
        return np.asarray(w)

    @cached_property
    def _dense_base(self) -> Array:
        return np.asarray(self.base.toarray())

    @cached_property
    def largest_eigenvalue(self) -> float:
        """The p-th power of (an upper bound of) the largest eigenvalue of L."""
        return QuadraticForm(matrix=self.base).largest_eigenvalue ** self.power

    def sees(self, x: Array) -> bool:
        """Whether L sees x: L^p has the same null space, but much smaller eigenvalues."""
        return QuadraticForm(matrix=self.base).sees(x)

    def product_size(self, x: Array) -> Array:
        """One bound for all entries."""
        return np.full(x.shape, self.norm_bound * float(np.abs(x).max(initial=0.0)))

    @cached_property
    def norm_bound(self) -> float:
        """The p-th power of the bound for L."""
        return largest_row_sum(self.base) ** self.power

    def half(self, w: Any) -> Any:
        """N w with L^p = N'N, for arrays and CVXPY expressions."""
        for _ in range(self.power // 2):
            w = self.base @ w
        return self.incidence @ w if self.power % 2 else w

    def value(self, w: Array) -> float:
        """||N w||^2."""
        return float(np.sum(self.half(w) ** 2))

    def value_and_product(self, w: Array) -> tuple[float, Array]:
        """(||N w||^2, L^p w)."""
        return self.value(w), self.apply(w)

    @cached_property
    def main_diagonal(self) -> Array:
        """The diagonal of L^p, which is H'H for even p and H'LH for odd p, with H = L^(p // 2)."""
        half: Any = self.base
        for _ in range(self.power // 2 - 1):
            half = half @ self.base
        other = self.base @ half if self.power % 2 else half
        return np.asarray(half.multiply(other).sum(axis=0)).ravel()

    @cached_property
    def trace_bound(self) -> float:
        """trace(L) times the (p - 1)-th power of a bound of the largest eigenvalue."""
        return float(self.base.diagonal().sum()) * float(abs(self.base).sum(axis=1).max(initial=0.0)) ** (
            self.power - 1
        )


class PulledForm(QuadraticForm):
    """w -> (A w)'M(A w), by products with A and M: a form in h = A w, seen as a form in w."""

    def __init__(self, form: QuadraticForm, design: Any) -> None:
        super().__init__(matrix=design)
        self.form, self.design = form, design
        self._adjoint = sp.csr_array(design.T) if sp.issparse(design) else design.T

    @property
    def is_operator(self) -> bool:
        """True, because A'MA is not formed."""
        return True

    @cached_property
    def matrix(self) -> Array:
        """A'MA, dense."""
        base = self.form.matrix
        product = self._adjoint @ (base @ self.design)
        dense = np.asarray(product.toarray() if sp.issparse(product) else product)
        return (dense + dense.T) / 2

    def apply(self, w: Array) -> Array:
        """A'M A w."""
        return np.asarray(self._adjoint @ self.form.apply(np.asarray(self.design @ w)))

    def value(self, w: Array) -> float:
        """(A w)'M(A w)."""
        return self.form.value(np.asarray(self.design @ w))

    def value_and_product(self, w: Array) -> tuple[float, Array]:
        """((A w)'M(A w), A'M A w)."""
        value, product = self.form.value_and_product(np.asarray(self.design @ w))
        return value, np.asarray(self._adjoint @ product)

    @cached_property
    def largest_eigenvalue(self) -> float:
        """An upper bound: the bound for M times a bound of the squared norm of A."""
        sizes = abs(self.design)
        bound = float(sizes.sum(axis=0).max()) * float(sizes.sum(axis=1).max())
        return self.form.largest_eigenvalue * bound

    def sees(self, x: Array) -> bool:
        """Whether M sees A x, where x changes A x by more than round-off."""
        return self.form.sees(np.asarray(self.design @ x))

    def product_size(self, x: Array) -> Array:
        """One bound for all entries."""
        return np.full(x.shape, self.norm_bound * float(np.abs(x).max(initial=0.0)))

    @cached_property
    def norm_bound(self) -> float:
        """The bound for M times a bound of the squared norm of |A|."""
        return self.form.norm_bound * largest_row_sum(self.design) * largest_row_sum(self.design.T)

    @cached_property
    def main_diagonal(self) -> Array:
        """The diagonal of A'diag(M)A: good enough for preconditioners, but not the diagonal of A'MA."""
        squares = self.design.copy()
        if sp.issparse(squares):
            squares.data **= 2
        else:
            squares **= 2
        return np.asarray(squares.T @ self.form.main_diagonal)
