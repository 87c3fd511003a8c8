"""Linear systems with I + M gram, where M is a sum of quadratic forms: the effect of a graph on a kernel.

A graph term lam2 h'Mh plus the norm lam1 ||h||^2 is the norm of another kernel, gram' = gram (I + M gram)^-1 with M
scaled by lam2 / lam1. The warped kernel is computed in this form, for a few right-hand sides, and never as gram minus a
correction. That difference would lose digits in proportion to the size of M, and would no longer be positive
semidefinite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.memory import require_memory

#: From SINGLE_FROM rows on, the matrix is factorised in single precision and the solution is refined in double
#: precision. From ROUGH_FROM rows on, the same is done if a single-precision solution is good enough at first.
SINGLE_FROM, ROUGH_FROM = 800, 400
#: Refinement ends at this relative residual (or at a larger one requested by the caller), or when a step reduces the
#: residual by less than a factor of two. The second number limits the steps.
REFINED, REFINEMENTS = 1e-11, 8
#: A refinement step is expected to gain as much as the last one. If this multiple of the expected residual is within
#: the goal, the residual is not computed.
FORESEEN = 10.0
#: Above this value of trace(M gram) / n, the solution is refined with residuals computed from the edges.
STRONG = 1e4
#: A sparse matrix is multiplied with a dense one of more than LARGE entries in blocks of this many columns, which stay
#: in the cache.
COLUMNS, LARGE = 128, 1_000_000
#: From this many rows on, compiled products make up for the time of loading the compiler.
COMPILE_FROM = 500
#: Random sign vectors for estimating the trace of M gram, if M is only available as an operator.
SIGNS = 8


class GraphOperator:
    """M = sum of c_t M_t for quadratic forms M_t: products with M, and its sparse structure if there is any."""

    def __init__(self, scaled: Sequence[tuple[float, QuadraticForm]], n: int) -> None:
        self.n = n
        kept = [(c, form) for c, form in scaled if c > 0]
        self.operators = [(c, form) for c, form in kept if form.is_operator]
        self.plain = [(c, form) for c, form in kept if not form.is_operator]

    @property
    def is_zero(self) -> bool:
        """Whether M has no terms."""
        return not self.operators and not self.plain

    @cached_property
    def matrix(self) -> Any:
        """The sum of the plain forms, sparse (or dense, if one of them is); None if there are none."""
        total: Any = None
        for c, form in self.plain:
            matrix = self._scaled(c, form)
            total = matrix if total is None else total + matrix
        return sp.csr_array(total) if sp.issparse(total) else total

    def _scaled(self, c: float, form: QuadraticForm) -> Any:
        """c M_t; compiled for a form given by edges, which is ten times faster than a product of sparse matrices."""
        N = form.factor
        compiled = self.n >= COMPILE_FROM and "matrix" not in form.__dict__
        if compiled and sp.issparse(N) and N.format == "csr" and np.all(np.diff(N.indptr) == 2):
            from cvxstructreg.solvers.kernels.compiled_warp import of_edges

            return of_edges(N, c)
        return c * form.matrix

    @property
    def n_edges(self) -> float:
        """The number of rows of :attr:`factor`; infinite if there is no factor."""
        if self.operators or not self.plain or any(not sp.issparse(form.factor) for _, form in self.plain):
            return np.inf
        return sum(form.factor.shape[0] for _, form in self.plain)

    @cached_property
    def factor(self) -> Any:
        """Sparse N with M = N'N, if every form has such a factor, else None."""
        if self.n_edges == np.inf:
            return None
        return sp.csr_array(sp.vstack([np.sqrt(c) * form.factor for c, form in self.plain]))

    @cached_property
    def touched(self) -> np.ndarray:
        """The nonzero rows of M; all rows unless M is a sparse matrix."""
        if self.operators or not sp.issparse(self.matrix):
            return np.arange(0 if self.is_zero else self.n)
        return np.flatnonzero(np.diff(self.matrix.indptr))

    def apply(self, V: Array) -> Array:
        """M V."""
        total = np.zeros_like(V) if self.matrix is None else _times(self.matrix.astype(V.dtype, copy=False), V)
        for c, form in self.operators:
            total += c * form.apply(V)
        return total

    def one_plus(self, V: Array) -> Array:
        """I + M V for a square V."""
        if self.n >= COMPILE_FROM and not self.operators and sp.issparse(self.matrix):
            from cvxstructreg.solvers.kernels.compiled_warp import one_plus

            return one_plus(self.matrix, V)
        total = self.apply(V)
        np.einsum("ii->i", total)[:] += 1.0
        return total

    def apply_by_edges(self, V: Array) -> Array:
        """M V as N'(N V): differences are computed first, so that large entries of M do not cause cancellation."""
        total = np.zeros_like(V)
        for c, form in (*self.plain, *self.operators):
            total += c * form.apply(V)
        return total

    def trace_bound(self, gram: Array) -> float:
        """An upper bound on trace(M gram) for sums of (w_i - s w_j)^2 and their powers, from the diagonals only."""
        traces = sum(c * form.trace_bound for c, form in (*self.plain, *self.operators))
        return 2.0 * traces * float(gram.diagonal().max())

    def trace_with(self, gram: Array) -> float:
        """trace(M gram)."""
        total = 0.0
        if sp.issparse(self.matrix):
            rows = np.repeat(np.arange(self.n), np.diff(self.matrix.indptr))
            total += float(self.matrix.data @ gram[rows, self.matrix.indices])
        elif self.matrix is not None:
            total += float(np.sum(self.matrix * gram))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(self.n, SIGNS)) if self.operators else None
        for c, form in self.operators:  # estimated by the mean of r'M gram r over random sign vectors r
            assert signs is not None
            total += c * float(np.sum(form.apply(signs) * (gram @ signs))) / signs.shape[1]
        return total


def _symmetric_times(gram: Array, V: Array) -> Array:
    """gram V; symmetry halves the time for a single column."""
    if V.shape[1] > 1:
        return np.asarray(gram @ V)
    fortran = gram if gram.flags.f_contiguous else gram.T
    return np.asarray(scipy.linalg.blas.dsymv(1.0, fortran, np.ascontiguousarray(V[:, 0])))[:, None]


def _times(matrix: Any, V: Array) -> Array:
    """A sparse (or dense) matrix times a wide dense one, in blocks of columns."""
    if not sp.issparse(matrix) or V.size <= LARGE:
        return np.asarray(matrix @ V)
    out = np.empty((matrix.shape[0], V.shape[1]), dtype=V.dtype)
    for first in range(0, V.shape[1], COLUMNS):
        out[:, first : first + COLUMNS] = matrix @ np.ascontiguousarray(V[:, first : first + COLUMNS])
    return out


def _lu_solved(factors: tuple[Array, np.ndarray], Y: Array) -> Array:
    """The solution of A'X = Y by the LU factors of A, in their precision.

    SciPy's ``getrs`` temporarily adds one to the pivots in place, without holding the interpreter lock. Threads that
    share the pivots would read wrong values, so each call gets its own copy.
    """
    lu, pivots = factors
    getrs = scipy.linalg.lapack.sgetrs if lu.dtype == np.float32 else scipy.linalg.lapack.dgetrs
    return np.asarray(getrs(lu, pivots.copy(), Y, trans=1)[0])


class Warp:
    """X = (I + M gram)^-1 Y with one factorisation, of the size of the edges if they are few, else of the nodes."""

    def __init__(self, gram: Array, operator: GraphOperator, accuracy: float = REFINED) -> None:
        self.gram, self.operator, self.accuracy = gram, operator, max(accuracy, REFINED)
        self.is_rough = False  # whether a solution was refined only to ``accuracy``, and could be refined further
        self.nodes = nodes = operator.touched
        self.by_edges = operator.n_edges < len(nodes)
        self.changes_nothing = operator.is_zero or not len(nodes)
        size = min(operator.n_edges, len(nodes))
        require_memory(
            16.0 * size * size,
            f"the warped kernel of a graph on {len(nodes):,} nodes",
            'use a linear model, solver="kernel_cg" with a smooth loss, or a graph on fewer nodes',
        )

    def solve(self, Y: Array) -> Array:
        """X, refined to ``accuracy``."""
        return self._by(self._solve_nodes, Y)

    @property
    def can_be_rough(self) -> bool:
        """Whether :meth:`rough` is faster than :meth:`solve`."""
        return not self.changes_nothing and not self.by_edges and len(self.nodes) >= ROUGH_FROM

    def rough(self, Y: Array) -> Array:
        """X in single precision; :meth:`improved` refines it."""
        return self._by(self._solve_roughly, Y)

    def improved(self, X: Array, Y: Array) -> Array:
        """Refine an approximate solution X to the accuracy of :meth:`solve`."""
        if len(self.nodes) == self.operator.n and self._single is not None:
            found = self._refined(Y, X)
            if found is not None:
                return found
        return self.solve(Y)

    def _by(self, solve_nodes: Callable[[Array], Array], Y: Array) -> Array:
        if self.changes_nothing:
            return Y.copy()
        if self.by_edges:
            N = self.operator.factor
            image = N @ (self.gram @ Y)
            return np.asarray(Y - N.T @ scipy.linalg.cho_solve(self._edges, image, check_finite=False))
        if len(self.nodes) == self.operator.n:
            return solve_nodes(Y)
        # rows of zeros in M leave Y unchanged
        X, outside = Y.copy(), Y.copy()
        outside[self.nodes] = 0.0
        right = Y - self.operator.apply(self.gram @ outside)
        X[self.nodes] = solve_nodes(right[self.nodes])
        return X

    @cached_property
    def _edges(self) -> Any:
        """The Cholesky factor of I + N gram N'."""
        N = self.operator.factor
        inner = _times(N, np.ascontiguousarray(_times(N, self.gram).T))
        inner[np.diag_indices_from(inner)] += 1.0
        return scipy.linalg.cho_factor((inner + inner.T) / 2, overwrite_a=True, check_finite=False)

    @cached_property
    def _part(self) -> tuple[GraphOperator, Array]:
        """M and gram on the touched nodes."""
        if len(self.nodes) == self.operator.n:
            return self.operator, self.gram
        gram = self.gram[np.ix_(self.nodes, self.nodes)]
        if self.operator.n_edges < np.inf:
            part = QuadraticForm(factor=sp.csr_array(self.operator.factor[:, self.nodes]))
        else:
            part = QuadraticForm(matrix=sp.csr_array(self.operator.matrix[self.nodes][:, self.nodes]))
        return GraphOperator([(1.0, part)], len(self.nodes)), gram

    def _system(self, single: bool) -> Any:
        """The LU factors of I + M gram."""
        operator, gram = self._part
        system = operator.one_plus(gram.astype(np.float32) if single else gram)
        # the transposed view is in Fortran order, and the factors of the transposed matrix are as good
        getrf = scipy.linalg.lapack.sgetrf if single else scipy.linalg.lapack.dgetrf
        lu, pivots, failed = getrf(np.ascontiguousarray(system, np.float32 if single else None).T, overwrite_a=True)
        return None if failed > 0 else (lu, pivots)

    @cached_property
    def _single(self) -> Any:
        return self._system(True)

    @cached_property
    def _double(self) -> Any:
        factors = self._system(False)
        if factors is None:
            raise np.linalg.LinAlgError("I + M gram is singular: gram is not positive semidefinite")
        return factors

    def _solve_roughly(self, Y: Array) -> Array:
        if self._single is None:
            return self._solve_nodes(Y)
        return _lu_solved(self._single, Y.astype(np.float32)).astype(float)

    def _solve_nodes(self, Y: Array) -> Array:
        if (len(self.nodes) >= SINGLE_FROM or "_single" in self.__dict__) and self._single is not None:
            X = self._refined(Y, None)
            if X is not None:
                self.is_rough = self.accuracy > REFINED
                return X
        X = _lu_solved(self._double, Y)
        operator, gram = self._part
        if operator.trace_bound(gram) > STRONG * operator.n:
            for _ in range(2):
                left = Y - X - operator.apply_by_edges(gram @ X)
                X = X + _lu_solved(self._double, left)
        return X

    def _refined(self, Y: Array, X: Array | None) -> Array | None:
        """Iterative refinement with single-precision factors, from X if given; None if it does not converge."""
        operator, gram = self._part
        near = X is not None  # computed with the same factors, so its residual shows the gain of a step
        X, left = (np.zeros_like(Y), Y) if X is None else (X, Y - X - operator.apply(_symmetric_times(gram, X)))
        goal, size = self.accuracy * np.linalg.norm(Y, axis=0), np.linalg.norm(left, axis=0)
        gain = np.divide(size, np.linalg.norm(Y, axis=0), out=np.ones_like(size), where=size > 0)
        foreseen = FORESEEN * gain * size if near else np.full(Y.shape[1], np.inf)
        for _ in range(REFINEMENTS):
            if np.all(size <= goal):
                return np.asarray(X)
            X = X + _lu_solved(self._single, left.astype(np.float32))
            if np.all(foreseen <= goal):
                return np.asarray(X)
            left = Y - X - operator.apply(_symmetric_times(gram, X))
            was, size = size, np.linalg.norm(left, axis=0)
            if not np.all(size <= np.maximum(0.5 * was, goal)):
                return None
            gain = np.divide(size, was, out=np.ones_like(size), where=was > 0)
            foreseen = FORESEEN * gain * size
        return np.asarray(X) if np.all(size <= goal) else None
