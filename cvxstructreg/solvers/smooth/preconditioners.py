"""Coordinates in which the Newton system is well conditioned: theta = G^-1 v, with G'G close to the Hessian H.

:class:`Diagonal` takes G from the diagonal of H. :class:`Triangular` is for factors with a dominant entry in each
row, such as the networks N = I - P. Then ``H = F'F + Delta`` with F = sqrt(2) N, and the rest Delta (data, ridge) is
close to its diagonal. The matrix ``B = F + S`` with S = diag(Delta)^(1/2) has B'B = H up to cross terms (at most a
factor of two if F and S commute), and its condition number is only the square root of that of H. The unknowns are
sorted by the number of rows that contain them, rare ones first. Then most of B lies above the diagonal, since the
neighbours of a rare word are more frequent words. So G, the upper triangle of B, approximates B without factorisation
and fill-in.

Conjugate gradient steps to reduce a residual by 10^4 on a network of 12,000 words with 25 neighbours each, for
alpha / beta = 10, 1,000, 10,000: 36, 57, 117 with Triangular, and 40, 176, 392 with Diagonal.

Since F = G + L - S, a product with G^-T H G^-1 takes as many passes over F as one with H (Eisenstat 1981).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.units import power_of_two
from cvxstructreg.runtime.lazy import cached_property

if TYPE_CHECKING:
    from cvxstructreg.solvers.smooth.curvature import Curvature

#: S = SHIFT * diag(Delta)^(1/2). SHIFT is less than one, because the cross terms make B'B larger than H.
SHIFT = 0.7
#: If Delta exceeds this part of the diagonal of F'F for half of the unknowns, Diagonal is as good and cheaper.
MOST_REST = 1 / 40
#: If fewer than this part of the columns have a row with a dominant entry, Diagonal is as good.
LEAST_SHARE = 0.5


class Diagonal:
    """G = diag(H)^(1/2). Single-precision products are in the scaled coordinates of ``unit`` * G."""

    def __init__(self, curvature: Curvature) -> None:
        self.curvature = curvature
        self.inverse = inverse_root(curvature.centred_diagonal())
        self.unit = power_of_two(float(np.median(self.inverse)))

    def to_weights(self, v: Array) -> Array:
        """G^-1 v."""
        return self._like(v) * v

    def pull(self, r: Array) -> Array:
        """G^-T r."""
        return self._like(r) * r

    def _like(self, v: Array) -> Array:
        return self.inverse if v.dtype == np.float64 else self._single

    @cached_property
    def _single(self) -> Array:
        return (self.inverse / self.unit).astype(np.float32)

    def residual(self, q: Array) -> Array:
        """G'q, the residual q in the coordinates of the weights."""
        return q / self._like(q)

    def times(self, v: Array) -> Array:
        """G^-T H G^-1 v."""
        if v.dtype == np.float64:
            return self.pull(self.curvature.times(self.to_weights(v)))
        bent = self.curvature.times(self.to_weights(v))  # may be in double precision
        bent *= self.unit**2
        return np.asarray(self._single * bent, dtype=np.float32)

    @cached_property
    def compiled(self) -> tuple[tuple[Any, ...], int] | None:
        """Arguments of the compiled loop, and its cost in entries; None unless M is one sparse factor and a ridge."""
        objective = self.curvature.objective
        quadratic = objective.quadratic
        if objective.compiled is None or not quadratic.is_one_product or objective.penalty.any:
            return None
        assert quadratic.product is not None and quadratic.product.forward.compiled is not None
        design, factor = objective.compiled.arrays, quadratic.product.forward.compiled.arrays
        inverse = self.inverse[:, 0]
        centring = self.curvature.centring(self.pull(self.curvature.centre))
        diagonals = (inverse, inverse, 2.0 * quadratic.weights)
        arguments = (design, self.curvature.rows[:, 0], factor, factor, None, diagonals, centring)
        return arguments, len(design[1]) + len(factor[1]) + len(inverse)


class PivotedRows:
    """Rows of a sparse factor, one per column, each with its dominant entry there, in order; ``rest`` are the others.

    Dominant entries keep triangular solves from growing.
    """

    def __init__(self, factor: Any) -> None:
        m, d = factor.shape
        pivot = _pivots(factor)
        row_of = np.full(d, -1, dtype=np.int64)
        candidates = np.flatnonzero(pivot >= 0)[::-1]
        row_of[pivot[candidates]] = candidates  # in reverse order, so that the first row of each pivot is kept
        chosen = row_of[row_of >= 0]
        self.share = len(chosen) / d
        others = np.ones(m, dtype=bool)
        others[chosen] = False
        self.rest = sp.csr_array(factor[np.flatnonzero(others)])
        mentioned = np.bincount(factor.indices, minlength=d)
        order = np.argsort(mentioned, kind="stable")
        position = np.empty(d, dtype=np.int64)
        position[order] = np.arange(d)
        in_order = row_of[order]
        matrix = factor[in_order[in_order >= 0]]
        rows = np.repeat(np.flatnonzero(in_order >= 0), np.diff(matrix.indptr))
        columns = position[matrix.indices]
        self.order = order.astype(np.uint32)
        self.pivots = np.zeros(d)
        own = columns == rows
        self.pivots[matrix.indices[own]] = matrix.data[own]
        self.upper = _entries(matrix, rows, columns > rows)
        self.lower = _entries(matrix, rows, columns < rows)

    def scaled(self, scale: float) -> PivotedRows:
        """The same rows for the factor times a positive number."""
        result = copy.copy(self)
        result.rest, result.pivots = scale * self.rest, scale * self.pivots
        result.upper = (*self.upper[:2], scale * self.upper[2])
        result.lower = (*self.lower[:2], scale * self.lower[2])
        return result


def _pivots(factor: Any) -> np.ndarray:
    """For each row, the column of its largest entry if that outweighs the sum of the others, else -1."""
    m = factor.shape[0]
    pivot = np.full(m, -1, dtype=np.int64)
    filled = np.flatnonzero(np.diff(factor.indptr))
    if not filled.size:
        return pivot
    starts = factor.indptr[filled]
    largest = np.zeros(m)
    largest[filled] = np.maximum.reduceat(factor.data, starts)
    sums = np.zeros(m)
    sums[filled] = np.add.reduceat(np.abs(factor.data), starts)
    rows = np.repeat(np.arange(m), np.diff(factor.indptr))
    found = np.flatnonzero(factor.data == largest[rows])[::-1]
    pivot[rows[found]] = factor.indices[found]
    return np.where(2.0 * largest >= sums * (1.0 - 1e-9), pivot, -1)


def _entries(matrix: Any, rows: np.ndarray, kept: np.ndarray) -> tuple[Any, Any, Any]:
    """CSR arrays of the kept entries; row t belongs to the t-th unknown in the order."""
    counts = np.bincount(rows[kept], minlength=matrix.shape[1])
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    return indptr, matrix.indices[kept].astype(np.uint32), np.ascontiguousarray(matrix.data[kept], dtype=np.float64)


class Triangular:
    """G = D + U, the upper triangle of F + S. The diagonal S differs between outputs."""

    def __init__(self, curvature: Curvature, rows: PivotedRows) -> None:
        from cvxstructreg.solvers.smooth import compiled_newton

        self.curvature, self.rows, self._compiled = curvature, rows, compiled_newton
        shift = 1.0 / inverse_root(curvature.centred_diagonal(rows))
        pivots = rows.pivots[:, None]
        # a column without a row has only its diagonal entry, which is then exact
        self.shift = np.where(pivots > 0, SHIFT * shift, shift)
        self.inverse = 1.0 / (pivots + self.shift)

    def to_weights(self, v: Array) -> Array:
        """G^-1 v."""
        x = v.copy()
        if x.shape[1] == 1:
            self._compiled.solve_upper(*self.rows.upper, self.rows.order, self.inverse[:, 0], x[:, 0])
        else:
            self._compiled.solve_upper_block(*self.rows.upper, self.rows.order, self.inverse, x)
        return x

    def pull(self, r: Array) -> Array:
        """G^-T r."""
        x = r.copy()
        if x.shape[1] == 1:
            self._compiled.solve_upper_transposed(*self.rows.upper, self.rows.order, self.inverse[:, 0], x[:, 0])
        else:
            self._compiled.solve_upper_transposed_block(*self.rows.upper, self.rows.order, self.inverse, x)
        return x

    def residual(self, q: Array) -> Array:
        """G'q, the residual q in the coordinates of the weights."""
        out = np.zeros_like(q)
        self._compiled.multiply_upper_transposed(*self.rows.upper, self.rows.order, self.inverse, q, out)
        return out

    def times(self, v: Array) -> Array:
        """G^-T H G^-1 v = u + G^-T ((L - S)'u + Delta theta); theta = G^-1 v, u = F theta = v + (L - S) theta."""
        theta = self.to_weights(v)
        out = self.curvature.times(theta, self.rows)
        u = v.copy()
        self._compiled.add_lower_product_block(*self.rows.lower, self.rows.order, self.shift, theta, u, out)
        out = self.pull(out)
        out += u
        return out

    @cached_property
    def compiled(self) -> tuple[tuple[Any, ...], int] | None:
        """Arguments of the compiled loop, and its cost in entries; None unless Delta is only the data and a ridge."""
        objective, rows = self.curvature.objective, self.rows
        if objective.compiled is None or not objective.quadratic.rest_is_diagonal:
            return None
        design = objective.compiled.arrays
        diagonals = (self.inverse[:, 0], self.shift[:, 0], 2.0 * objective.quadratic.weights)
        centring = self.curvature.centring(self.pull(self.curvature.centre))
        arguments = (design, self.curvature.rows[:, 0], rows.upper, rows.lower, rows.order, diagonals, centring)
        return arguments, len(design[1]) + len(rows.upper[1]) + len(rows.lower[1]) + len(rows.order)


def inverse_root(diagonal: Array) -> Array:
    """1 / sqrt(diagonal), with a floor for entries that are nearly zero."""
    floor = 1e-14 * max(float(diagonal.max(initial=0.0)), 1e-280)
    return np.asarray(1.0 / np.sqrt(np.maximum(diagonal, floor)))


def coordinates(curvature: Curvature) -> Diagonal | Triangular:
    """The coordinates for a Hessian: triangular if the factor outweighs the rest and has enough pivoted rows."""
    quadratic = curvature.objective.quadratic
    by_factor = 2.0 * quadratic.factor_diagonal[:, None]
    rest = curvature.centred_diagonal() - by_factor
    heavy = np.count_nonzero((rest > MOST_REST * by_factor) & (by_factor > 0))
    if 2 * heavy >= rest.shape[1] * np.count_nonzero(by_factor):
        return Diagonal(curvature)
    rows = quadratic.pivoted
    return Diagonal(curvature) if rows is None else Triangular(curvature, rows)
