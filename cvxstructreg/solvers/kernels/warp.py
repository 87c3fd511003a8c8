"""Solves with I + M gram, where M is a sum of quadratic forms: what a graph does to a kernel.

A graph term lam2 h'Mh beside the norm lam1 ||h||^2 is the norm of another kernel, gram' = gram (I + M gram)^-1 with
M = (lam2 / lam1) M. It is computed in this form, from a few right-hand sides, and never as gram minus something: that
difference loses as many digits as M has, and is then no longer positive semidefinite.
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

#: From this many rows on, the factors are made in single precision and the solutions refined in double precision; and
#: from fewer on, where a solution of single precision is enough at first.
SINGLE_FROM, ROUGH_FROM = 800, 400
#: Refinement ends at this relative residual (or at a larger one that is asked for), or when a step gains less than a
#: factor of two.
REFINED, REFINEMENTS = 1e-11, 8
#: A step gains what the first one gained. With this many times the residual that so follows, it need not be computed.
FORESEEN = 10.0
#: trace(M gram) / n from which on the solution is refined with residuals from the edges.
STRONG = 1e4
#: Columns of a large dense matrix that are multiplied at once by a sparse one: so many of all rows stay in the cache.
COLUMNS, LARGE = 128, 1_000_000
#: From this many rows on, the compiled product with a square matrix is worth loading it.
COMPILE_FROM = 500


class GraphOperator:
    """M = sum of c_t M_t for quadratic forms M_t, as products, and what can be had of its sparse structure."""

    def __init__(self, scaled: Sequence[tuple[float, QuadraticForm]], n: int) -> None:
        self.n = n
        kept = [(c, form) for c, form in scaled if c > 0]
        self.operators = [(c, form) for c, form in kept if form.is_operator]
        self.plain = [(c, form) for c, form in kept if not form.is_operator]

    @property
    def is_zero(self) -> bool:
        """Whether there is no form at all."""
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
        """c M_t; of a form of edges compiled, which takes a tenth of the time of a product of sparse matrices."""
        N = form.factor
        compiled = self.n >= COMPILE_FROM and "matrix" not in form.__dict__
        if compiled and sp.issparse(N) and N.format == "csr" and np.all(np.diff(N.indptr) == 2):
            from cvxstructreg.solvers.kernels.compiled_warp import of_edges

            return of_edges(N, c)
        return c * form.matrix

    @property
    def n_edges(self) -> float:
        """Rows of :attr:`factor`; infinite if there is none."""
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
        """The rows that are not zero; all of them unless M is a sparse matrix."""
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
        """M V as N'(N V): differences first, which a matrix with large entries would lose to round-off."""
        total = np.zeros_like(V)
        for c, form in (*self.plain, *self.operators):
            total += c * form.apply(V)
        return total

    def trace_bound(self, gram: Array) -> float:
        """An upper bound of trace(M gram) for sums of (w_i - s w_j)^2 and their powers, from the diagonals alone."""
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
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(self.n, 8)) if self.operators else None
        for c, form in self.operators:  # an estimate: the mean of r'M gram r over random signs r
            assert signs is not None
            total += c * float(np.sum(form.apply(signs) * (gram @ signs))) / signs.shape[1]
        return total


def _symmetric_times(gram: Array, V: Array) -> Array:
    """gram V, of a single column in half the time."""
    if V.shape[1] > 1:
        return np.asarray(gram @ V)
    fortran = gram if gram.flags.f_contiguous else gram.T
    return np.asarray(scipy.linalg.blas.dsymv(1.0, fortran, np.ascontiguousarray(V[:, 0])))[:, None]


def _times(matrix: Any, V: Array) -> Array:
    """A sparse (or dense) matrix times a wide dense one, a few columns at a time."""
    if not sp.issparse(matrix) or V.size <= LARGE:
        return np.asarray(matrix @ V)
    out = np.empty((matrix.shape[0], V.shape[1]), dtype=V.dtype)
    for first in range(0, V.shape[1], COLUMNS):
        out[:, first : first + COLUMNS] = matrix @ np.ascontiguousarray(V[:, first : first + COLUMNS])
    return out


def _lu_solved(factors: tuple[Array, np.ndarray], Y: Array) -> Array:
    """The solution of A'X = Y by the LU factors of A, in their precision.

    SciPy's ``getrs`` adds one to the pivots it is given and takes it off again, without holding the interpreter's lock:
    threads that share the pivots would read wrong ones, and so each call has its own.
    """
    lu, pivots = factors
    getrs = scipy.linalg.lapack.sgetrs if lu.dtype == np.float32 else scipy.linalg.lapack.dgetrs
    return np.asarray(getrs(lu, pivots.copy(), Y, trans=1)[0])


class Warp:
    """X = (I + M gram)^-1 Y, with one factorisation: in the space of the edges if they are few, else of the nodes."""

    def __init__(self, gram: Array, operator: GraphOperator, accuracy: float = REFINED) -> None:
        self.gram, self.operator, self.accuracy = gram, operator, max(accuracy, REFINED)
        self.is_rough = False  # whether a solution was refined to ``accuracy`` only, and more could be had
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
        """X."""
        return self._by(self._solve_nodes, Y)

    @property
    def can_be_rough(self) -> bool:
        """Whether :meth:`rough` is faster than :meth:`solve`."""
        return not self.changes_nothing and not self.by_edges and len(self.nodes) >= ROUGH_FROM

    def rough(self, Y: Array) -> Array:
        """X up to single precision, which :meth:`improved` makes good."""
        return self._by(self._solve_roughly, Y)

    def improved(self, X: Array, Y: Array) -> Array:
        """The solution from X near it, as accurate as that of :meth:`solve`."""
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
        # rows that M does not touch stay as they are
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
        # the transposed view is in Fortran order, and the factors of the transposed matrix serve as well
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
        """The solution, from X if that is near it, by factors of single precision; None if that does not converge."""
        operator, gram = self._part
        near = X is not None  # by the same factors, so that its residual shows what a step gains
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
