"""The objective of the second-order solvers: smooth terms of the scores plus quadratic terms of the weights.

    P(theta, b) = phi(F) + <theta, M theta>,   F = X theta + 1 b'

A :class:`State` keeps F and M theta with the point, so that moving along directions whose images are known costs no
product with X or M.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Array
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.normal_form import NormalForm, Piece
from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers.iterate import Refusal

#: From this many stored entries on, compiled products pay for loading the compiler.
COMPILE_FROM = 50_000
#: The diagonal of the curvature is exact up to this many outputs, and estimated from random signs beyond.
EXACT_OUTPUTS = 4


def refusal(problem: Problem) -> Refusal | None:
    """Why a problem is not of this form, in words; None if it is."""
    linear = problem.linear()
    parts = linear.normal_form
    for piece in parts.score_pieces:
        if not piece.atom.can("grad", "hessp"):
            return Refusal(f"{piece.atom!r} has no second derivatives")
    if parts.separable is not None:
        return Refusal("absolute values or bounds on the weights have no gradient")
    if parts.weight_pieces:
        name = type(linear.terms[parts.weight_pieces[0].number].atom).__name__
        return Refusal(f"{name} is not a quadratic function of the weights")
    return None


@dataclass(frozen=True, eq=False)
class State:
    """A point, or a direction, with its images: F = X theta + 1 b' and M theta."""

    theta: Array
    b: Array
    scores: Array
    pulled: Array

    def moved(self, directions: Sequence[State], lengths: Array) -> State:
        """The point plus a combination of directions."""
        theta, b, scores, pulled = (x.copy() for x in (self.theta, self.b, self.scores, self.pulled))
        for direction, length in zip(directions, lengths, strict=True):
            theta += length * direction.theta
            b += length * direction.b
            scores += length * direction.scores
            pulled += length * direction.pulled
        return State(theta, b, scores, pulled)


class SmoothObjective:
    """Values, gradients and Hessian products of P."""

    def __init__(self, problem: Problem) -> None:
        self.parts: NormalForm = problem.normal_form
        self.design = problem.model.design
        self.intercept = problem.model.intercept
        self.shape = (problem.model.n_weights, problem.n_outputs)
        self.quadratic = QuadraticPart(self.parts)
        self.adjoint = sp.csr_array(self.design.T) if sp.issparse(self.design) and self.shape[1] > 1 else self.design.T
        self.squares = self.design.copy() if sp.issparse(self.design) else self.design**2
        if sp.issparse(self.design):
            self.squares.data **= 2
        self.rowwise = self.shape[1] == 1 and all(_is_rowwise(piece) for piece in self.parts.score_pieces)
        self.rowwise &= all(scaled.form.diagonal is not None for scaled in self.parts.score_forms)
        self._compiled = CompiledCSR.of(self.design, self.quadratic.size) if self.rowwise else None

    def state(self, theta: Array, b: Array) -> State:
        """The point with its images."""
        return State(theta, b, np.asarray(self.design @ theta) + b, self.quadratic.apply(theta))

    def score_value(self, scores: Array) -> float:
        """phi(F)."""
        total = sum(piece.value(scores) for piece in self.parts.score_pieces)
        return float(total + sum(form.value(scores) for form in self.parts.score_forms))

    def value(self, at: State) -> float:
        """P."""
        return self.score_value(at.scores) + float(np.vdot(at.theta, at.pulled))

    def gradient(self, at: State) -> tuple[Array, Array]:
        """(X' phi'(F) + 2 M theta, 1' phi'(F)); the second part is zero without intercept."""
        slope = self.parts.smooth_score_grad(at.scores)
        grad_b = slope.sum(axis=0) if self.intercept else np.zeros(self.shape[1])
        return np.asarray(self.adjoint @ slope) + 2.0 * at.pulled, grad_b

    def curvature(self, at: State) -> Curvature:
        """The Hessian at a point."""
        return Curvature(self, at)


class Curvature:
    """The Hessian X' phi''(F) X + 2 M at a point, with the intercepts as further variables."""

    def __init__(self, objective: SmoothObjective, at: State) -> None:
        self.objective, self.scores = objective, at.scores
        self.rows = score_diagonal(objective.parts, at.scores)

    def diagonal(self) -> tuple[Array, Array]:
        """Its diagonal, up to entries off the diagonal of phi''."""
        squares = self.objective.squares
        quadratic = 2.0 * self.objective.quadratic.diagonal[:, None]
        return np.asarray(squares.T @ self.rows) + quadratic, self.rows.sum(axis=0)

    def times(self, p: Array, pb: Array) -> tuple[Array, Array]:
        """The Hessian times (p, pb)."""
        objective = self.objective
        if objective._compiled is not None:
            out = np.zeros_like(p)
            total = objective._compiled.add_gram(self.rows, p, float(pb[0]), out)
            objective.quadratic.add(p, 2.0, out)
            return out, np.array([total if objective.intercept else 0.0])
        scores = np.asarray(objective.design @ p) + pb
        bent = self.rows * scores if objective.rowwise else objective.parts.smooth_score_hessp(self.scores, scores)
        out = np.asarray(objective.adjoint @ bent)
        objective.quadratic.add(p, 2.0, out)
        return out, bent.sum(axis=0) if objective.intercept else np.zeros_like(pb)


class QuadraticPart:
    """M as one sparse factor N (its rows scaled), a diagonal, and the forms that are neither: M = N'N + diag + ..."""

    def __init__(self, parts: NormalForm) -> None:
        d = parts.model.n_weights
        self.weights, factors, self.others = np.zeros(d), [], []
        self.diagonal = np.zeros(d)
        for scaled in parts.weight_forms:
            form = scaled.form
            if form.factor is None and form.diagonal is not None:
                self.weights += scaled.scale * form.diagonal
            elif sp.issparse(form.factor) and not form.is_operator:
                factors.append(np.sqrt(scaled.scale) * form.factor)
            else:
                self.others.append(scaled)
            base = form.factor if form.factor is not None else form.matrix
            # with eliminated variables this is an upper bound, which is as good for a preconditioner
            squares = base.diagonal() if form.factor is None else column_squares(base)
            self.diagonal += scaled.scale * squares
        self.factor = sp.csr_array(sp.vstack(factors)) if factors else None
        self.size = int(self.factor.nnz) if self.factor is not None else 0
        self._transposed = sp.csr_array(self.factor.T) if self.factor is not None else None
        self._compiled = CompiledCSR.of(self.factor, 0) if self.factor is not None else None

    def apply(self, p: Array) -> Array:
        """M p."""
        out = np.zeros_like(p)
        self.add(p, 1.0, out)
        return out

    def add(self, p: Array, scale: float, out: Array) -> None:
        """out += scale * M p."""
        out += (scale * self.weights)[:, None] * p
        if self._compiled is not None and p.shape[1] == 1:
            self._compiled.add_gram(np.full((self._compiled.n_rows, 1), scale), p, 0.0, out)
        elif self.factor is not None:
            out += scale * (self._transposed @ (self.factor @ p))
        for scaled in self.others:
            out += (scale * scaled.scale) * scaled.form.apply(p)


class CompiledCSR:
    """A CSR matrix with the compiled product A' diag(u) A p."""

    def __init__(self, matrix: Any) -> None:
        from cvxstructreg.solvers.kernels_newton import add_gram_product

        self._kernel = add_gram_product
        self.n_rows = int(matrix.shape[0])
        self._arrays = (
            np.ascontiguousarray(matrix.indptr, dtype=np.uint32),
            np.ascontiguousarray(matrix.indices, dtype=np.int32).view(np.uint32),
            np.ascontiguousarray(matrix.data, dtype=np.float64),
        )

    @classmethod
    def of(cls, matrix: Any, more: int) -> CompiledCSR | None:
        """The compiled matrix, or None for one that is dense, or small, or too large for 32-bit indices."""
        if not sp.issparse(matrix) or matrix.nnz >= 2**31:
            return None
        if matrix.nnz + more < COMPILE_FROM and "cvxstructreg.solvers.kernels_newton" not in sys.modules:
            return None
        return cls(matrix)

    def add_gram(self, weights: Array, p: Array, shift: float, out: Array) -> float:
        """out += A'u, u = weights * (A p + shift), in one pass over A; returns the sum of u."""
        contiguous = np.ascontiguousarray(p[:, 0])
        return float(self._kernel(*self._arrays, np.ascontiguousarray(weights[:, 0]), contiguous, shift, out[:, 0]))


def score_diagonal(parts: NormalForm, scores: Array) -> Array:
    """The diagonal of phi'' at F, n x k; entries that a map K mixes are taken as if they were not."""
    total = np.zeros_like(scores)
    for scaled in parts.score_forms:
        form = scaled.form
        squares = column_squares(form.factor) if form.factor is not None else form.matrix.diagonal()
        total += 2.0 * scaled.scale * squares[:, None]
    for piece in parts.score_pieces:
        diagonal = piece.scale * _atom_diagonal(piece, piece.forward(scores))
        if piece.K is not None:
            squares = piece.K.multiply(piece.K) if sp.issparse(piece.K) else piece.K**2
            diagonal = np.asarray(squares.T @ diagonal)
        total += diagonal
    return total


def _atom_diagonal(piece: Piece, z: Array) -> Array:
    """The diagonal of the atom's Hessian, for atoms that are sums over rows."""
    k = z.shape[1]
    if k <= EXACT_OUTPUTS:
        columns = []
        for j in range(k):
            p = np.zeros_like(z)
            p[:, j] = 1.0
            columns.append(piece.atom.hessp(z, p)[:, j])
        return np.maximum(np.column_stack(columns), 0.0)
    # r * (H r) has the diagonal of H as its mean over random signs r
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=z.shape)
    return np.maximum(signs * piece.atom.hessp(z, signs), 0.0)


def _is_rowwise(piece: Piece) -> bool:
    """Whether the piece is a sum over rows of functions of the score of one row."""
    picks = piece.K is None or (sp.issparse(piece.K) and np.all(np.diff(sp.csr_array(piece.K).indptr) <= 1))
    return isinstance(piece.atom, Loss) and bool(picks)


def column_squares(matrix: Any) -> Array:
    """The squared norms of the columns."""
    if sp.issparse(matrix):
        csr = sp.csr_array(matrix)
        return np.bincount(csr.indices, weights=csr.data**2, minlength=csr.shape[1])
    return np.asarray(np.sum(matrix**2, axis=0))
