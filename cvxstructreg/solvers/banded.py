"""Coordinates for quadratic parts that are narrow bands in some order of the weights: chains, rings and the like.

    P = 2 M + share * diag(X'phi''X) = U'U,   theta = U^-1 v

M takes part as it is, only the data are reduced to their diagonal. A solve with U costs as much as a few rows of dense
data, and halves the conjugate gradient steps where data and network weigh about the same. As 2 M = U'U - share * diag,
products with H take no product with M.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg import blas

from cvxstructreg.core.atom import Array

if TYPE_CHECKING:
    from cvxstructreg.solvers.curvature import Curvature

#: The widest band, as a part of the rows of dense data: solving with it is cheap beside a product with them.
WIDEST = 1 / 50
#: A factor serves further points as long as the sum of phi'' changes by less than this factor.
SERVES = 3.0


@dataclass(frozen=True, eq=False)
class NarrowBand:
    """2 M in an order of the weights, by its upper diagonals as LAPACK stores them: entry (i, j) in row w + i - j."""

    order: Any
    upper: Array

    @property
    def width(self) -> int:
        """The number of diagonals above the main one."""
        return len(self.upper) - 1


def narrow_band(factor: Any, weights: Array, widest: int, most: int) -> NarrowBand | None:
    """2 N'N + 2 diag(weights) as a band, by reverse Cuthill-McKee; None if it is too wide or takes too long to form."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    d = factor.shape[1]
    lengths = np.diff(factor.indptr)
    if 2 * lengths.max(initial=0) - 2 > 4 * widest or int(np.sum(lengths.astype(np.int64) ** 2)) > most:
        return None
    matrix = sp.csr_array(2.0 * (factor.T @ factor))
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    position = np.empty(d, dtype=np.int64)
    position[order] = np.arange(d)
    rows = np.repeat(position, np.diff(matrix.indptr))
    columns = position[matrix.indices]
    kept = rows <= columns
    rows, columns = rows[kept], columns[kept]
    width = int((columns - rows).max(initial=0))
    if width > widest:
        return None
    upper = np.zeros((width + 1, d), order="F")
    upper[width + rows - columns, columns] = matrix.data[kept]
    upper[width] += 2.0 * weights[order]
    return NarrowBand(order, upper)


class Banded:
    """G = U, the Cholesky factor of a band, in its order of the weights."""

    compiled = None

    def __init__(self, curvature: Curvature, band: NarrowBand) -> None:
        self.curvature, self.band = curvature, band
        n, d = curvature.objective.design.shape
        self.diagonal = (n / (n + d)) ** 2 * curvature.centred_data
        self._total = float(curvature.rows.sum())
        P = band.upper.copy(order="F")
        P[band.width] += self.diagonal[band.order, 0]
        self._factor = np.asfortranarray(scipy.linalg.cholesky_banded(P, overwrite_ab=True, check_finite=False))

    def moved(self, curvature: Curvature) -> Banded | None:
        """The same coordinates for the Hessian at another point, unless that has become too different."""
        total = float(curvature.rows.sum())
        if not total <= SERVES * self._total <= SERVES**2 * total:
            return None
        result = copy.copy(self)
        result.curvature = curvature
        return result

    @cached_property
    def _single(self) -> tuple[Any, Any]:
        return self._factor.astype(np.float32, order="F"), self.diagonal.astype(np.float32)

    def _like(self, v: Array) -> tuple[Any, Any]:
        return (self._factor, self.diagonal) if v.dtype == np.float64 else self._single

    def to_weights(self, v: Array) -> Array:
        """G^-1 v."""
        solve = blas.dtbsv if v.dtype == np.float64 else blas.stbsv
        theta = np.empty_like(v)
        theta[self.band.order, 0] = solve(self.band.width, self._like(v)[0], v[:, 0])
        return theta

    def pull(self, r: Array) -> Array:
        """G^-T r."""
        solve = blas.dtbsv if r.dtype == np.float64 else blas.stbsv
        return np.asarray(solve(self.band.width, self._like(r)[0], r[self.band.order, 0], trans=1, overwrite_x=1))[
            :, None
        ]

    def residual(self, q: Array) -> Array:
        """G'q, the residual of the weights that has the coordinates q."""
        multiply = blas.dtbmv if q.dtype == np.float64 else blas.stbmv
        out = np.empty_like(q)
        out[self.band.order, 0] = multiply(self.band.width, self._like(q)[0], q[:, 0], trans=1)
        return out

    def times(self, v: Array) -> Array:
        """G^-T H G^-1 v = v + G^-T (X'phi''X - share * diag) G^-1 v."""
        theta = self.to_weights(v)
        out = self.curvature.times_data(theta)
        out -= self._like(v)[1] * theta
        out = self.pull(out)
        out += v
        return out


def banded(curvature: Curvature) -> Banded | None:
    """Banded coordinates for large dense data and one output, if the quadratic part is a narrow band."""
    objective = curvature.objective
    if objective.dense is None or not objective.has_single:
        return None
    n, d = objective.design.shape
    band = objective.quadratic.band(int(WIDEST * n), n * d)
    if band is None:
        return None
    last = objective.last_banded
    objective.last_banded = (last and last.moved(curvature)) or Banded(curvature, band)
    return objective.last_banded
