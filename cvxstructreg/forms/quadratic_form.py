"""Quadratic forms w'Mw, stored sparse: by matrix, by factor, or with some variables minimised out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # SciPy loads scipy.linalg when it is first used
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.semidefinite_solve import SemidefiniteSolve
from cvxstructreg.runtime.lazy import cached_property

#: Up to this size, dense eigendecompositions are used.
DENSE_LIMIT = 1000
#: Entries of a sparse matrix that are squared at a time, so that the squares stay in the cache of the processor.
SQUARED_AT_ONCE = 100_000
#: Below this, squared lengths of columns may have lost digits.
LEAST_SQUARE = 1e-280
#: If at most this share of the weights is nonzero, only their rows of M are multiplied.
FEW = 0.1
#: A smallest eigenvalue below this fraction of the largest diagonal entry counts as zero.
NEARLY_SINGULAR = 1e-9
#: x counts as a null vector if M x, or N x, is at most this, relative to the norms of its factors. Null vectors of N'N
#: are computed to about the square root of the round-off, those of M to the round-off itself.
UNSEEN_BY_MATRIX, UNSEEN_BY_FACTOR = 1e-13, 1e-9


class QuadraticForm:
    """q(w) = w'Mw, summed over the columns of w.

    ``M`` is given as a matrix, or by a factor N with M = N'N, or as a Schur complement: the columns ``eliminated`` of
    the factor are then minimised out, q(w) = min over mu of ||N_keep w + N_elim mu||^2.
    """

    def __init__(self, matrix: Any = None, factor: Any = None, eliminated: Any = None) -> None:
        self._matrix = matrix
        self.factor = factor
        self._elimination: SemidefiniteSolve | None = None
        self.eliminated: Any = None
        if eliminated is not None and np.size(eliminated):
            keep = np.setdiff1d(np.arange(factor.shape[1]), eliminated)
            columns = sp.csr_array(factor[:, eliminated])
            self.factor = sp.csr_array(factor[:, keep])
            # singular if the columns of the virtual nodes are linearly dependent
            self._elimination = SemidefiniteSolve(columns.T @ columns)
            self.eliminated = columns
        self.size: int = (self.factor if matrix is None else matrix).shape[1]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size} x {self.size})"

    @classmethod
    def diagonal_form(cls, weights: Array) -> QuadraticForm:
        """sum_j weights_j w_j^2."""
        return DiagonalForm(weights)

    @property
    def is_operator(self) -> bool:
        """Whether M is available only through products (variables were eliminated)."""
        return self._elimination is not None

    @cached_property
    def matrix(self) -> Any:
        """M as a matrix: sparse if it was given sparse, dense after elimination."""
        if self.is_operator:
            dense = self.apply(np.eye(self.size))
            return (dense + dense.T) / 2
        if self._matrix is not None:
            return self._matrix
        product = self.factor.T @ self.factor
        return sp.csr_array(product) if sp.issparse(product) else product

    @cached_property
    def _adjoint_factor(self) -> Any:
        """N', stored: transposing a small sparse matrix takes as long as a product with it."""
        return self.factor.T

    @cached_property
    def diagonal(self) -> Array | None:
        """The diagonal if M is diagonal, else None."""
        if self.is_operator or not sp.issparse(self.factor if self.factor is not None else self._matrix):
            return None
        if (
            self.factor is not None
            and self.size > DENSE_LIMIT
            and np.any(np.diff(sp.csr_array(self.factor).indptr) > 1)
        ):
            return None  # rows with several entries; forming N'N of a large graph just for this test is too slow
        matrix = sp.coo_array(self.matrix)
        off = (matrix.row != matrix.col) & (matrix.data != 0)
        return None if off.any() else np.asarray(self.matrix.diagonal(), dtype=float)

    @cached_property
    def main_diagonal(self) -> Array:
        """The entries M_jj, or upper bounds of them if variables were eliminated."""
        return np.asarray(self._matrix.diagonal()) if self.factor is None else squared_columns(self.factor)

    @cached_property
    def matrix_diagonal(self) -> Array:
        """The exact diagonal of M."""
        return np.asarray(self.matrix.diagonal(), dtype=float)

    def _few_rows(self, w: Array) -> Any:
        """The nonzero rows of w, if there are few and M is stored as a sparse matrix, else None."""
        known = self._matrix if self._matrix is not None else self.__dict__.get("matrix")
        if w.ndim != 2 or self.is_operator or known is None or not sp.issparse(known) or known.format != "csr":
            return None
        rows = np.flatnonzero(w[:, 0]) if w.shape[1] == 1 else np.flatnonzero(w.any(axis=1))
        return rows if rows.size <= FEW * self.size else None

    @property
    def trace_bound(self) -> float:
        """An upper bound of the trace of M."""
        return float(self.main_diagonal.sum())

    def apply(self, w: Array) -> Array:
        """M w."""
        rows = self._few_rows(w)
        if rows is not None:
            return np.asarray(self.matrix[rows].T @ w[rows]) if rows.size else np.zeros(w.shape)
        if self.factor is None:
            return np.asarray(self._matrix @ w)
        return np.asarray(self._adjoint_factor @ self._residual(w))

    def _residual(self, w: Array) -> Array:
        residual = np.asarray(self.factor @ w)
        if self._elimination is not None:  # a second projection if the first one is inaccurate
            for _ in range(2 if self._elimination.is_poor else 1):
                residual = residual - self.eliminated @ self._elimination(self.eliminated.T @ residual)
        return residual

    def eliminated_values(self, w: Array) -> Array:
        """The mu that minimises ||N_keep w + N_elim mu||^2 (of several, one); no rows if nothing was eliminated."""
        if self._elimination is None:
            return np.zeros((0, *w.shape[1:]))
        residual = np.asarray(self.factor @ w)
        values = np.zeros((self.eliminated.shape[1], *w.shape[1:]))
        for _ in range(2 if self._elimination.is_poor else 1):
            step = self._elimination(self.eliminated.T @ residual)
            residual, values = residual - self.eliminated @ step, values - step
        return values

    def value(self, w: Array) -> float:
        """w'Mw."""
        if self.factor is None or self._few_rows(w) is not None:
            return max(0.0, float(np.vdot(w, self.apply(w))))
        return float(np.sum(self._residual(w) ** 2))

    def value_and_product(self, w: Array) -> tuple[float, Array]:
        """(w'Mw, M w): ``value`` and ``apply`` for the price of one."""
        if self.factor is None or self._few_rows(w) is not None:
            product = self.apply(w)
            return max(0.0, float(np.vdot(w, product))), product
        residual = self._residual(w)
        return float(np.sum(residual**2)), np.asarray(self._adjoint_factor @ residual)

    def sees(self, x: Array) -> bool:
        """Whether x is clearly outside of the null space of M, so that q grows along it."""
        if self.factor is None:
            return is_more(self.apply(x), UNSEEN_BY_MATRIX * self.norm_bound, x)
        return is_more(self._residual(x), UNSEEN_BY_FACTOR * largest_row_sum(self.factor), x)

    def product_size(self, x: Array) -> Array:
        """For each entry of M x, about the size of its summands, by |M_jk|^2 <= M_jj M_kk."""
        roots = np.sqrt(self.main_diagonal)[:, None]
        return np.asarray(roots * np.linalg.norm(roots * x, axis=0))

    @cached_property
    def norm_bound(self) -> float:
        """An upper bound of the norm of |M| from row and column sums, used to estimate round-off."""
        if self.factor is None:
            return largest_row_sum(self._matrix)
        return largest_row_sum(self.factor) * largest_row_sum(self.factor.T)

    @cached_property
    def largest_eigenvalue(self) -> float:
        """An upper bound of the largest eigenvalue of M, exact for small forms."""
        if self.size <= DENSE_LIMIT:
            return float(max(0.0, self._spectrum[0][-1]))
        from scipy.sparse.linalg import norm as sparse_norm  # here, because its import takes long

        norm = sparse_norm if sp.issparse(self.factor if self.factor is not None else self._matrix) else np.linalg.norm
        base = self.factor if self.factor is not None else self._matrix
        bound = float(norm(base, 1) * norm(base, np.inf))  # ||N||_2^2 <= ||N||_1 ||N||_inf; elimination lowers it
        return bound if self.factor is not None else float(np.sqrt(bound))

    @cached_property
    def smallest_eigenvalue(self) -> float:
        """A lower bound of the smallest eigenvalue of M, from the diagonal or a small spectrum, else 0."""
        if self.diagonal is not None:
            return float(self.diagonal.min())
        if self.size > DENSE_LIMIT or self._seen_singular:
            return 0.0
        values = self._spectrum[0]
        return float(max(0.0, values[0] - self.size * np.finfo(float).eps * max(values[-1], 0.0)))

    @cached_property
    def _seen_singular(self) -> bool:
        """Whether M is singular up to one part in 10^9, as for most graphs, tested without eigenvalues.

        M is singular if its factor has fewer rows than columns, or if a Cholesky factorisation breaks down. This test
        takes a fraction of the time of the eigenvalues, which are then not needed.
        """
        if self.factor is not None and self.factor.shape[0] < self.size:
            return True
        matrix = to_dense(self.matrix)
        diagonal = matrix.diagonal()
        if diagonal.min() <= 0.0:
            return True
        shifted = matrix - (NEARLY_SINGULAR * diagonal.max()) * np.eye(self.size)
        return bool(scipy.linalg.lapack.dpotrf(shifted, overwrite_a=True)[1] != 0)

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(to_dense(self.matrix))
        return values, vectors

    def prox(self, v: Array, t: float) -> Array:
        """(I + 2 t M)^-1 v."""
        if self.diagonal is not None:
            return v / (1.0 + 2.0 * t * self.diagonal[:, None])
        if self._elimination is not None and self.size > DENSE_LIMIT:
            return self._joint_prox(v, t)
        if self.is_operator or not sp.issparse(self.matrix):
            return np.asarray(
                scipy.linalg.solve(np.eye(self.size) + 2.0 * t * to_dense(self.matrix), v, assume_a="pos")
            )
        from scipy.sparse.linalg import splu

        system = sp.csc_array(sp.eye_array(self.size) + 2.0 * t * self.matrix)
        return np.asarray(splu(system).solve(np.ascontiguousarray(v)))

    def _joint_prox(self, v: Array, t: float) -> Array:
        """The prox with eliminated variables: a joint sparse system, followed by a few conjugate gradient steps."""
        from scipy.sparse.linalg import LinearOperator, cg

        N = sp.hstack([self.factor, self.eliminated], format="csr")
        kept = sp.diags_array(np.arange(N.shape[1]) < self.size, dtype=float)
        joint, right = SemidefiniteSolve(kept + 2.0 * t * (N.T @ N)), np.zeros((N.shape[1], 1))

        def inverse(r: Array) -> Array:
            right[: self.size] = r.reshape(-1, 1)
            return joint(right)[: self.size]

        shape = (self.size, self.size)
        system = LinearOperator(shape, lambda x: x + 2.0 * t * self.apply(x.reshape(-1, 1)).ravel(), dtype=float)
        nearly = LinearOperator(shape, inverse, dtype=float)
        columns = [cg(system, column, inverse(column), rtol=1e-13, maxiter=50, M=nearly)[0] for column in v.T]
        return np.column_stack(columns)

    def conj(self, u: Array) -> float:
        """1/4 u'M^+ u, infinite if u is not in the range of M; by a dense eigendecomposition."""
        values, vectors = self._spectrum
        kept = values > self.size * np.finfo(float).eps * max(values[-1], 0.0)
        coordinates = vectors.T @ u
        outside = np.linalg.norm(coordinates[~kept])
        if outside > 1e-9 * max(1.0, float(np.linalg.norm(u))):
            return np.inf
        return float(0.25 * np.sum(coordinates[kept] ** 2 / values[kept, None]))


class DiagonalForm(QuadraticForm):
    """q(w) = sum_j weights_j w_j^2; the sparse matrix is made only when needed.

    Examples
    --------
    >>> form = QuadraticForm.diagonal_form(np.array([1.0, 3.0]))
    >>> form.value(np.array([[2.0], [1.0]])), form.matrix.toarray().tolist()
    (7.0, [[1.0, 0.0], [0.0, 3.0]])
    """

    def __init__(self, weights: Array) -> None:
        self._weights = np.asarray(weights, dtype=float)
        self.factor = self.eliminated = self._elimination = None
        self.size = self._weights.size

    @cached_property
    def matrix(self) -> Any:
        """The diagonal matrix in CSR format."""
        return sp.diags_array(self._weights, format="csr")

    @property
    def _matrix(self) -> Any:
        return self.matrix

    @property
    def diagonal(self) -> Array:
        """The weights."""
        return self._weights

    @property
    def main_diagonal(self) -> Array:
        """The weights."""
        return self._weights

    def product_size(self, x: Array) -> Array:
        """M |x|."""
        return self.apply(np.abs(x))

    @cached_property
    def norm_bound(self) -> float:
        """The largest weight."""
        return float(self._weights.max(initial=0.0))

    @property
    def largest_eigenvalue(self) -> float:
        """The largest weight."""
        return self.norm_bound

    def apply(self, w: Array) -> Array:
        """M w."""
        return self._weights.reshape(-1, *(1,) * (w.ndim - 1)) * w

    def value(self, w: Array) -> float:
        """w'Mw."""
        return float(np.vdot(w, self.apply(w)))

    def value_and_product(self, w: Array) -> tuple[float, Array]:
        """(w'Mw, M w)."""
        product = self.apply(w)
        return float(np.vdot(w, product)), product

    def conj(self, u: Array) -> float:
        """sum_j u_j^2 / (4 weights_j), infinite if u_j is not zero for some weight of zero."""
        c = np.broadcast_to(self._weights[:, None], u.shape)
        if np.any(u[c == 0]):
            return np.inf
        return float(np.sum(u[c > 0] ** 2 / (4.0 * c[c > 0])))


def is_more(product: Array, share: float, x: Array) -> bool:
    """Whether some entry of a product with x exceeds a share of the largest entry of x."""
    return float(np.abs(product).max(initial=0.0)) > share * float(np.abs(x).max(initial=0.0))


def largest_row_sum(matrix: Any) -> float:
    """max_i sum_j |A_ij| of a dense or sparse matrix."""
    return float(np.max(np.asarray(abs(matrix).sum(axis=1)), initial=0.0))


def squared_columns(matrix: Any) -> Array:
    """The squared norms of the columns of a dense or sparse matrix, or of blocks of rows."""
    if getattr(matrix, "is_row_blocks", False):
        return np.asarray(matrix.squared_columns())
    if not sp.issparse(matrix):
        return np.asarray(np.einsum("ij,ij->j", matrix, matrix), dtype=float)
    rows = sp.csr_array(matrix)
    total, step = np.zeros(rows.shape[1]), max(SQUARED_AT_ONCE, 4 * rows.shape[1])
    for first in range(0, len(rows.data), step):
        some = slice(first, first + step)
        total += np.bincount(rows.indices[some], weights=rows.data[some] ** 2, minlength=rows.shape[1])
    return total


def column_lengths(matrix: Any) -> Array:
    """The norms of the columns; those whose squares lose digits or overflow are computed from scaled numbers.

    Examples
    --------
    >>> column_lengths(np.array([[3.0, 3e-170, 3e200], [4.0, 4e-170, 4e200]]))
    array([5.e+000, 5.e-170, 5.e+200])
    """
    with np.errstate(over="ignore"):
        squares = squared_columns(matrix)
    lengths = np.sqrt(squares)
    if getattr(matrix, "is_row_blocks", False):
        return lengths
    lost = np.flatnonzero(~((squares >= LEAST_SQUARE) & (squares < np.inf)))
    some = matrix[:, lost] if lost.size else None
    if some is not None and (not sp.issparse(some) or some.nnz):
        largest = np.maximum(to_dense(abs(some).max(axis=0)).ravel(), np.finfo(float).tiny)
        scaled = some / largest if not sp.issparse(some) else some @ sp.diags_array(1.0 / largest)
        lengths[lost] = largest * np.sqrt(squared_columns(scaled))
    return lengths


def to_dense(matrix: Any) -> Array:
    """A dense float array of a dense or sparse matrix."""
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=float)
