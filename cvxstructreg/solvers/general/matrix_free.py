"""The augmented Lagrangian of a problem with many weights: products instead of matrices.

Newton systems are solved by conjugate gradients. The preconditioner is the exact matrix of the penalties, which is
sparse, plus the diagonal of the rest. Where the penalties are separable, it is a diagonal. Weights tied by differences
move as a whole, and the diagonal knows little of that: the exact system on such regions is added. Beside quadratic
terms that couple bounded weights, only a little of the diagonal is added: rows at kinks are few, and most directions
have the curvature of the quadratic terms only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from cvxstructreg.certificates.quadratic_conjugate import has_bounded_forms
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.regions import Regions, RegionSolver
from cvxstructreg.numerics.sparse_factor import Tridiagonal, factorised
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.solvers.general.dual_sets import Balls
from cvxstructreg.solvers.general.lagrangian import AugmentedLagrangian, State
from cvxstructreg.solvers.general.newton_matrix import Hessians
from cvxstructreg.solvers.general.newton_products import (
    ActiveProduct,
    BallsProduct,
    BlockProduct,
    ByOutput,
    Diagonal,
    RowProduct,
    of_weights,
)

#: Conjugate gradient steps for one Newton step, and the accuracy of its residual: for most steps, and for the last.
MOST_PRODUCTS, ROUGH_ACCURACY, FINE_ACCURACY = 200, 0.05, 1e-6
#: Beside quadratic terms that couple bounded weights: the steps, and the part of the diagonal in the preconditioner.
#: (Chosen on the multiclass hinge with a box and the Laplacian of a chain, sparse data of 5,000 x 20,000, seed 3.)
MORE_PRODUCTS, LITTLE = 600, 1e-4
#: The preconditioner is exact on up to so many regions, once some system has needed more than SLOW steps.
MOST_REGIONS, SLOW = 400, 20
#: The preconditioner is lifted by this part of its diagonal, so that it has a factorisation.
SINGULAR = 1e-13
#: The Newton matrix is regularised by this part of the curvature of all rows.
TINY = 1e-12


class MatrixFreeLagrangian(AugmentedLagrangian):
    """The terms of a problem with sparse or large data."""

    is_dense = False
    slow = False  # whether conjugate gradients have needed many steps
    lifted = 0.0  # how much the last Newton matrix was lifted, in parts of the curvature of all rows

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.coupled = has_bounded_forms(self.parts)

    def _data(self) -> Any:
        X = sp.csr_array(self.problem.model.design)
        return sp.csr_array(sp.hstack([X, np.ones((X.shape[0], 1))])) if self.problem.model.intercept else X

    def _image(self, piece: Piece) -> Any:
        if piece.K is None:
            return self.rows
        K = piece.K.tocsr() if hasattr(piece.K, "tocsr") else sp.csr_array(piece.K)
        return sp.csr_array(K @ self.rows)

    def _weight_rows(self, piece: Piece) -> Any:
        return self._padded(piece.K)

    def _quadratic(self) -> Any:
        return QuadraticProduct(self.parts, self.rows, self.n_weights)

    def newton_matrix(self, state: State) -> tuple[Any, list[Hessians]]:
        """The Hessian as an operator, and the Hessians of the rows of smooth terms."""
        rows = [term.hessians(z) for term, z in zip(self.smooth, state.smooth_scores, strict=True)]
        return NewtonOperator(self, state, rows), rows


class QuadraticProduct:
    """Q of the quadratic terms, by its products with x."""

    def __init__(self, parts: NormalForm, rows: Any, n_weights: int) -> None:
        self.parts, self.rows, self.n_weights = parts, rows, n_weights

    def __matmul__(self, x: Array) -> Array:
        total = np.zeros_like(x)
        total[: self.n_weights] = self.parts.quadratic_grad(x[: self.n_weights])
        if self.parts.score_forms:
            scores = np.asarray(self.rows @ x)
            total += self.rows.T @ sum(scaled.grad(scores) for scaled in self.parts.score_forms)
        return total


class NewtonOperator:
    """The generalised Hessian at a point: products with it, and the solution of Newton systems."""

    def __init__(self, function: MatrixFreeLagrangian, state: State, rows: list[Hessians]) -> None:
        self.function, self.state, self.rows = function, state, rows
        self.shift = TINY * function.capacity[:, None] + np.finfo(float).tiny
        self._inverses: list[Any] | None = None
        self._regions: RegionSolver | None = None

    def lift(self, part: float) -> None:
        """Add this part of the curvature of all rows to the diagonal."""
        if part > 0.0:
            self.shift = self.shift + part * self.function.capacity[:, None]
            self._inverses = None

    def product(self, v: Array) -> Array:
        """H v."""
        function = self.function
        total = function.quadratic @ v + self.shift * v
        for part in self._parts:
            total += part @ v
        return total

    @cached_property
    def _slopes(self) -> list[Array]:
        """sigma times the derivative of each projection, without what couples the entries of a block."""
        pairs = zip(self.function.rough, self.state.arguments, strict=True)
        return [rough.sigma * rough.dual_set.slopes(u)[0] for rough, u in pairs]

    @cached_property
    def _of_weights(self) -> list[Diagonal | ByOutput | None]:
        """K'diag(slopes) K of each nonsmooth term; None for terms of the scores."""
        pairs = zip(self.function.rough, self._slopes, strict=True)
        return [None if rough.of_scores else of_weights(rough, slopes) for rough, slopes in pairs]

    @cached_property
    def _parts(self) -> list[Any]:
        """The parts of H that depend on the point."""
        function = self.function
        parts: list[Any] = []
        for term, h in zip(function.smooth, self.rows, strict=True):
            assert isinstance(h, np.ndarray)
            parts.append(RowProduct(term.rows, h[:, 0]) if h.ndim == 2 else BlockProduct(term.rows, h))
        given = zip(function.rough, self.state.arguments, self._slopes, self._of_weights, strict=True)
        for rough, u, slopes, matrix in given:
            if isinstance(rough.dual_set, Balls):
                parts.append(BallsProduct(rough, rough.dual_set, u))
            elif matrix is not None:
                parts.append(matrix)
            elif function.k == 1:
                parts.append(RowProduct(rough.rows, slopes[:, 0]))
            else:
                parts.append(ActiveProduct(rough.rows, slopes, rough.centred))
        return parts

    def precondition(self, r: Array) -> Array:
        """P^-1 r."""
        if self._inverses is None:
            self._prepare()
        assert self._inverses is not None
        columns = [
            inverse.solve(r[:, a]) if hasattr(inverse, "solve") else inverse * r[:, a]
            for a, inverse in enumerate(self._inverses)
        ]
        z = np.column_stack(columns)
        if self._regions is not None:
            self._regions.add_to(z, r)
        return z

    def _prepare(self) -> None:
        """Make the preconditioner: one for each output, and one for regions that move as a whole."""
        outputs = [self._output(a) for a in range(self.function.k)]
        self._inverses = [_inverse(*output) for output in outputs]
        stiff = not any(isinstance(inverse, np.ndarray | Tridiagonal) for inverse in self._inverses)
        useful = self.function.slow and not self.function.coupled and not self.function.parts.score_forms
        self._regions = self._region_solver(outputs) if stiff and useful else None

    def _output(self, a: int) -> tuple[sp.csr_array, Array, Array]:
        """The preconditioner of one output: a matrix, a diagonal, and the diagonal of the terms of the scores."""
        function, k = self.function, self.function.k
        diagonal, of_scores = self.shift[:, 0].copy(), np.zeros(function.size)
        for term, h in zip(function.smooth, self.rows, strict=True):
            assert isinstance(h, np.ndarray)
            of_scores += term.squares.T @ (h[:, 0] if h.ndim == 2 else h[:, a, a])
        D = function.size
        matrix = sp.csr_array((D, D))
        for rough, slopes, part in zip(function.rough, self._slopes, self._of_weights, strict=True):
            if isinstance(part, Diagonal):
                diagonal += part.entries[:, a]
            elif part is not None:
                matrix = matrix + part.matrices[a]
            else:
                mixing = (np.eye(k) - 1.0 / k)[a] ** 2 if rough.centred else np.eye(k)[a]
                of_scores += rough.squares.T @ (slopes @ mixing)
        if function.coupled:
            of_scores[: function.n_weights] *= LITTLE
        for scaled in function.parts.weight_forms:
            form = scaled.form
            if form.diagonal is None and not form.is_operator and sp.issparse(form.matrix):
                matrix = matrix + _padded(2.0 * scaled.scale * form.matrix, D)
            else:
                diagonal[: function.n_weights] += 2.0 * scaled.scale * form.main_diagonal
        return matrix, diagonal, of_scores

    def _region_solver(self, outputs: list[tuple[sp.csr_array, Array, Array]]) -> RegionSolver | None:
        """The exact system on regions that the terms of the scores hold more than all others; None if too many."""
        parts = [part for part in self._parts if not isinstance(part, Diagonal | ByOutput)]
        if any(isinstance(part, BallsProduct) for part in parts):
            return None
        labels, found, count = np.full((self.function.size, self.function.k), -1), [], 0
        for a, (matrix, diagonal, of_scores) in enumerate(outputs):
            n, own = connected_components(matrix, directed=False)
            held = np.maximum(np.bincount(own, diagonal + matrix.sum(axis=1), minlength=n), 0.0)
            by_scores = np.bincount(own, of_scores, minlength=n)
            loose = np.flatnonzero(held < by_scores)
            numbers = np.full(n, -1)
            numbers[loose] = count + np.arange(len(loose))
            labels[:, a], count = numbers[own], count + len(loose)
            found.append(np.column_stack([held, by_scores])[loose])
        if not 0 < count <= MOST_REGIONS:
            return None
        regions = Regions(labels)
        both = np.concatenate(found)
        curvature = regions.curvature(both[:, 0], [part.row_blocks() for part in parts])
        return RegionSolver(regions, curvature, both.sum(axis=1))

    def solve(self, right: Array, accuracy: float = ROUGH_ACCURACY, start: Array | None = None) -> Array:
        """Conjugate gradients on H x = right, until the residual falls to this part."""
        x = np.zeros_like(right) if start is None else start
        r = right.copy() if start is None else right - self.product(start)
        first = self.precondition(right)
        enough = accuracy**2 * float(np.vdot(right, first))
        z = first if start is None else self.precondition(r)
        p, old = z, float(np.vdot(r, z))
        for count in range(MORE_PRODUCTS if self.function.coupled else MOST_PRODUCTS):
            if not old > enough or deadline.passed():
                break
            if count == SLOW:
                self.function.slow = True
            product = self.product(p)
            curvature = float(np.vdot(p, product))
            if not curvature > 0.0:
                break
            step = old / curvature
            x, r = x + step * p, r - step * product
            z = self.precondition(r)
            new = float(np.vdot(r, z))
            p, old = z + (new / old) * p, new
        return x


def _inverse(matrix: sp.csr_array, diagonal: Array, of_scores: Array) -> Any:
    """The inverse for one output: a diagonal, or a sparse factorisation."""
    diagonal = diagonal + of_scores
    if matrix.nnz == 0:
        return 1.0 / diagonal
    lifted = diagonal + SINGULAR * (matrix.diagonal() + diagonal)  # the diagonal may be below the round-off
    return factorised(sp.csr_array(matrix + sp.diags_array(lifted)))


def _padded(matrix: Any, size: int) -> sp.csr_array:
    rows = sp.csr_array(matrix)
    indptr = np.concatenate([rows.indptr, np.full(size - rows.shape[0], rows.indptr[-1])])
    return sp.csr_array((rows.data, rows.indices, indptr), shape=(size, size))
