"""The matrix M of all quadratic terms on the weights, with fast products for the second-order solvers."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import QuadraticForm, squared_columns
from cvxstructreg.forms.scaled_form import ScaledForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.solvers.smooth.matrix_products import GramProduct
from cvxstructreg.solvers.smooth.preconditioners import LEAST_SHARE, PivotedRows

_PIVOTED: WeakKeyDictionary[QuadraticForm, PivotedRows] = WeakKeyDictionary()


class QuadraticPart:
    """M = N'N + diag(weights) + others: one sparse factor N with scaled rows, a diagonal, and all other forms."""

    def __init__(self, parts: NormalForm) -> None:
        d = parts.model.n_weights
        self.weights = np.zeros(d)
        self.others: list[ScaledForm] = []
        self.factored: list[ScaledForm] = []
        for scaled in parts.weight_forms:
            form = scaled.form
            if form.diagonal is not None:
                self.weights += scaled.scale * form.diagonal
            elif sp.issparse(form.factor) and not form.is_operator:
                self.factored.append(scaled)
            else:
                self.others.append(scaled)
        self._column, self._has_weights = self.weights[:, None], bool(self.weights.any())
        # an upper bound if variables were eliminated, which is good enough for a preconditioner
        self.factor_diagonal = sum((x.scale * x.form.main_diagonal for x in self.factored), np.zeros(d))
        self.diagonal = sum((x.scale * x.form.main_diagonal for x in self.others), self.weights + self.factor_diagonal)
        factors = [np.sqrt(scaled.scale) * scaled.form.factor for scaled in self.factored]
        self.factor = sp.csr_array(sp.vstack(factors) if len(factors) > 1 else factors[0]) if factors else None
        self.product = GramProduct(self.factor) if self.factor is not None else None

    @property
    def is_one_product(self) -> bool:
        """Whether M is N'N + diag(weights) with a compiled product."""
        return self.product is not None and self.product.compiled and not self.others

    @cached_property
    def pivoted(self) -> PivotedRows | None:
        """The rows of sqrt(2) N for triangular coordinates, if these pay off."""
        if self.product is None or not self.product.compiled:
            return None
        if len(self.factored) == 1:  # cached for regularization paths, where only the strength changes
            form, scale = self.factored[0].form, self.factored[0].scale
            if form not in _PIVOTED:
                _PIVOTED[form] = PivotedRows(form.factor)
            rows = _PIVOTED[form].scaled(float(np.sqrt(2.0 * scale)))
        else:
            rows = PivotedRows(np.sqrt(2.0) * self.factor)
        return rows if rows.share >= LEAST_SHARE else None

    @cached_property
    def rest(self) -> GramProduct | None:
        """The other rows of N."""
        assert self.pivoted is not None
        return GramProduct(np.sqrt(0.5) * self.pivoted.rest) if self.pivoted.rest.nnz else None

    @property
    def rest_is_diagonal(self) -> bool:
        """Whether M without the pivoted rows is the diagonal ``weights``."""
        return self.rest is None and not self.others

    @cached_property
    def rest_diagonal(self) -> Array:
        """The diagonal of M without the pivoted rows."""
        assert self.pivoted is not None
        without = self.diagonal - self.factor_diagonal + 0.5 * squared_columns(self.pivoted.rest)
        return np.maximum(without, self.weights)  # cancellation may have destroyed a small ridge

    def apply(self, p: Array) -> Array:
        """M p."""
        if self.product is None or self.product.compiled or p.shape[1] > 1:
            out = np.zeros_like(p)
            self.add(p, 1.0, out)
            return out
        out = self.product.times(p)
        self._add_others(p, 1.0, out)
        return out

    def add(self, p: Array, scale: float, out: Array) -> None:
        """out += scale * M p."""
        if self.product is not None:
            self.product.add(p, scale, out)
        self._add_others(p, scale, out)

    def add_rest(self, p: Array, scale: float, out: Array) -> None:
        """out += scale * M p without the pivoted rows."""
        if self.rest is not None:
            self.rest.add(p, scale, out)
        self._add_others(p, scale, out)

    def _add_others(self, p: Array, scale: float, out: Array) -> None:
        if self._has_weights:
            weighted = self._column.astype(p.dtype, copy=False) * p
            if scale != 1.0:
                weighted *= scale
            out += weighted
        for scaled in self.others:
            out += (scale * scaled.scale) * scaled.form.apply(p)
