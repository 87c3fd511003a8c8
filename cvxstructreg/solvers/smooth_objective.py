"""The objective of the second-order solvers: smooth terms of the scores plus quadratic terms of the weights.

    P(theta, b) = phi(F) + <theta, M theta>,   F = X theta + 1 b'

A :class:`State` keeps F and M theta with the point, so that moving along directions whose images are known costs no
product with X or M.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Array
from cvxstructreg.core.normal_form import NormalForm, ScaledForm
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.quadratic_form import QuadraticForm, squared_columns
from cvxstructreg.solvers.coordinates import LEAST_SHARE, PivotedRows
from cvxstructreg.solvers.iterate import Refusal
from cvxstructreg.solvers.score_curvature import ScoreCurvature, is_rowwise

#: From this many stored entries on, compiled products pay for loading the compiler.
COMPILE_FROM = 50_000
_PIVOTED: WeakKeyDictionary[QuadraticForm, PivotedRows] = WeakKeyDictionary()


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

    def to(self, other: State) -> State:
        """The direction from here to there."""
        return State(other.theta - self.theta, other.b - self.b, other.scores - self.scores, other.pulled - self.pulled)


class SmoothObjective:
    """Values, gradients and Hessian products of P."""

    def __init__(self, problem: Problem) -> None:
        self.parts: NormalForm = problem.normal_form
        self.design = problem.model.design
        self.intercept = problem.model.intercept
        self.shape = (problem.model.n_weights, problem.n_outputs)
        self.quadratic = QuadraticPart(self.parts)
        self.forward = Product(self.design)
        self.adjoint = Product(self.design.T if self.shape[1] == 1 else _by_rows(self.design.T))
        self.squares = Product(_squared(self.adjoint.matrix))
        self.rowwise = (
            self.shape[1] == 1
            and all(is_rowwise(piece) for piece in self.parts.score_pieces)
            and all(scaled.form.diagonal is not None for scaled in self.parts.score_forms)
        )
        self.compiled = self.forward.compiled if self.rowwise else None

    def state(self, theta: Array, b: Array) -> State:
        """The point with its images."""
        return State(theta, b, self.forward.plus(b, theta), self.quadratic.apply(theta))

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
        return self.adjoint.plus(2.0 * at.pulled, slope), grad_b

    def curvature(self, at: State, ahead: float = 0.0) -> Curvature:
        """The Hessian at a point, for sums over rows with their largest curvature within a distance of the scores."""
        return Curvature(self, at, ahead if self.rowwise else 0.0)


def minimise_over(
    objective: SmoothObjective, at: State, value: float, directions: list[State], max_steps: int = 8
) -> tuple[State, float]:
    """The minimum of P over ``at`` plus the span of the directions, and its value, by damped Newton steps.

    It begins with the whole first direction; with images known, a step costs a few passes over the scores.
    """
    linear = 2.0 * np.array([np.vdot(p.theta, at.pulled) for p in directions])
    gram = 2.0 * np.array([[np.vdot(p.theta, q.pulled) for q in directions] for p in directions])
    quadratic = value - objective.score_value(at.scores)
    parts = objective.parts

    def scores_at(c: Array) -> Array:
        return np.asarray(at.scores + sum(x * p.scores for x, p in zip(c, directions, strict=True)))

    def value_at(c: Array) -> float:
        return objective.score_value(scores_at(c)) + quadratic + float(linear @ c + 0.5 * c @ gram @ c)

    c, best = np.zeros(len(directions)), value
    trial = np.eye(len(directions))[0]
    for _ in range(max_steps):
        reached, halvings = value_at(trial), 0
        while not reached < best and halvings < 30:
            trial, halvings = 0.5 * (trial + c), halvings + 1
            reached = value_at(trial)
        if not reached < best:
            break
        gain, c, best = best - reached, trial, reached
        if gain <= 0.01 * (value - best):
            break
        scores = scores_at(c)
        slope = parts.smooth_score_grad(scores)
        gradient = np.array([np.vdot(p.scores, slope) for p in directions]) + linear + gram @ c
        curvature = ScoreCurvature(parts, scores)
        bent = [curvature.times(p.scores) for p in directions]
        hessian = np.array([[np.vdot(p.scores, q) for q in bent] for p in directions]) + gram
        trial = c - np.linalg.lstsq(hessian, gradient, rcond=1e-12)[0]
    return at.moved(directions, c), best


class Curvature:
    """The Hessian X' phi''(F) X + 2 M at a point, with the intercepts as further variables."""

    def __init__(self, objective: SmoothObjective, at: State, ahead: float = 0.0) -> None:
        self.objective = objective
        self.of_scores = ScoreCurvature(objective.parts, at.scores)
        self.rows = self.of_scores.diagonal()
        for shift in (ahead, -ahead) if ahead else ():
            self.rows = np.maximum(self.rows, ScoreCurvature(objective.parts, at.scores + shift).diagonal())

    @cached_property
    def _of_data(self) -> Array:
        return self.objective.squares.plus(np.zeros(1), self.rows)

    @property
    def in_single_precision(self) -> bool:
        """Whether products in single precision are offered, and cheaper: for several outputs and sparse data."""
        return self.objective.shape[1] > 1 and self.objective.forward.compiled is not None

    def diagonal(self, without: PivotedRows | None = None) -> tuple[Array, Array]:
        """Its diagonal, up to entries off the diagonal of phi''; without those rows of the quadratic part."""
        quadratic = self.objective.quadratic
        fixed = quadratic.diagonal if without is None else quadratic.rest_diagonal
        return self._of_data + 2.0 * fixed[:, None], self.rows.sum(axis=0)

    def times(self, p: Array, pb: Array, without: PivotedRows | None = None) -> tuple[Array, Array]:
        """The Hessian times (p, pb); without those rows of the quadratic part."""
        objective = self.objective
        if objective.compiled is not None:
            out = np.zeros_like(p)
            total = objective.compiled.add_gram(self.rows, p, float(pb[0]), out)
            out_b = np.array([total])
        else:
            scores = objective.forward.plus(pb, p)
            bent = self.rows * scores if objective.rowwise else self.of_scores.times(scores)
            out, out_b = objective.adjoint.plus(np.zeros(1), bent), bent.sum(axis=0, dtype=float)
        if without is None:
            objective.quadratic.add(p, 2.0, out)
        else:
            objective.quadratic.add_rest(p, 2.0, out)
        return out, out_b if objective.intercept else np.zeros_like(out_b)


class QuadraticPart:
    """M = N'N + diag(weights) + others: one sparse factor N with scaled rows, a diagonal, and what is neither."""

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
        # with eliminated variables this is an upper bound, which serves a preconditioner as well
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
        """The rows of sqrt(2) N that make triangular coordinates, where that pays."""
        if self.product is None or not self.product.compiled:
            return None
        if len(self.factored) == 1:  # as along a path, where strengths change and the network does not
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
        return np.maximum(without, self.weights)  # round-off may have taken the last digits of a small ridge

    def apply(self, p: Array) -> Array:
        """M p."""
        out = np.zeros_like(p)
        self.add(p, 1.0, out)
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
        out += (scale * self.weights).astype(p.dtype)[:, None] * p
        for scaled in self.others:
            out += (scale * scaled.scale) * scaled.form.apply(p)


class GramProduct:
    """scale * A'A p for a sparse matrix A."""

    def __init__(self, matrix: Any) -> None:
        self.forward = Product(matrix)
        self._weights = np.ones((matrix.shape[0], 1))

    @cached_property
    def _adjoint(self) -> Product:
        return Product(_by_rows(self.forward.matrix.T))

    @property
    def compiled(self) -> bool:
        """Whether compiled products are used."""
        return self.forward.compiled is not None

    def add(self, p: Array, scale: float, out: Array) -> None:
        """out += scale * A'A p."""
        if self.forward.compiled is not None and p.shape[1] == 1:
            self.forward.compiled.add_gram(scale * self._weights, p, 0.0, out)
        else:
            self._adjoint.add(self.forward.plus(np.zeros(1), p), scale, out)


class Product:
    """A p for a matrix A, dense or sparse; compiled where A is sparse and p has several columns."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.compiled = CompiledRows(matrix) if _compile(matrix) else None

    def plus(self, start: Array, p: Array) -> Array:
        """start + A p."""
        if self.compiled is None or p.shape[1] == 1:
            return np.asarray(self.matrix @ p) + start
        out = np.empty((self.matrix.shape[0], p.shape[1]), dtype=p.dtype)
        out[:] = start
        self.compiled.add_product(p, 1.0, out)
        return out

    def add(self, p: Array, scale: float, out: Array) -> None:
        """out += scale * A p."""
        if self.compiled is None or p.shape[1] == 1:
            out += scale * (self.matrix @ p)
        else:
            self.compiled.add_product(p, scale, out)


def _squared(matrix: Any) -> Any:
    """The squares of the entries, of a sparse matrix with the same indices."""
    return matrix._with_data(matrix.data**2, copy=False) if sp.issparse(matrix) else matrix**2


def _by_rows(matrix: Any) -> Any:
    return sp.csr_array(matrix) if sp.issparse(matrix) else matrix


class CompiledRows:
    """A CSR matrix A in the types of the compiled kernels."""

    def __init__(self, matrix: Any) -> None:
        from cvxstructreg.solvers import kernels_newton

        self._kernels = kernels_newton
        self.arrays = (
            np.ascontiguousarray(matrix.indptr, dtype=np.uint32),
            np.ascontiguousarray(matrix.indices, dtype=np.int32).view(np.uint32),
            np.ascontiguousarray(matrix.data, dtype=np.float64),
        )

    def add_gram(self, weights: Array, p: Array, shift: float, out: Array) -> float:
        """out += A'u, u = weights * (A p + shift), in one pass over A, for one column; returns the sum of u."""
        column = np.ascontiguousarray(p[:, 0])
        weight = np.ascontiguousarray(weights[:, 0])
        return float(self._kernels.add_gram_product(*self.arrays, weight, column, shift, out[:, 0]))

    def add_product(self, p: Array, scale: float, out: Array) -> None:
        """out += scale * A p."""
        arrays = self.arrays if p.dtype == np.float64 else self._single
        self._kernels.add_product_block(*arrays, arrays[2].dtype.type(scale), np.ascontiguousarray(p), out)

    @cached_property
    def _single(self) -> tuple[Any, Any, Any]:
        """The arrays with values in single precision."""
        return *self.arrays[:2], self.arrays[2].astype(np.float32)


def _compile(matrix: Any) -> bool:
    """Whether compiled products pay: always once the compiler is there, else for large matrices only."""
    if not sp.issparse(matrix) or matrix.format != "csr" or matrix.nnz >= 2**31:
        return False
    return matrix.nnz >= COMPILE_FROM or "cvxstructreg.solvers.kernels_newton" in sys.modules
