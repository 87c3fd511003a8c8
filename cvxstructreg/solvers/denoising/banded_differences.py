"""Trend filtering and other banded differences: squared loss, a diagonal X, and absolute values after banded maps.

    minimize  1/2 sum_i s_i (w_i - y_i)^2 + sum_t lam_t ||K_t w||_1

with all K_t stacked, and L1 of the weights as K = I among them. A ridge changes s and y. A primal-dual interior point
method (:mod:`~cvxstructreg.solvers.denoising.interior_point`) takes time linear in n for each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.model import Model
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.denoising.banded_systems import ends
from cvxstructreg.solvers.denoising.interior_point import InteriorPoint
from cvxstructreg.solvers.denoising.total_variation import SquaredLoss
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import Need, OneLoss
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: The largest distance of two weights in a row of K.
WIDEST = 12
#: Steps at the most, and steps between two iterates if the gap is large.
MOST_STEPS, SHOWN = 100, 10
#: Row sums of K below this part of the absolute row sum are round-off.
NO_SUM = 1e-14


@dataclass(frozen=True)
class DiagonalDesign(Need):
    """A diagonal X without zeros: each score is a multiple of one weight."""

    def __str__(self) -> str:
        return "a diagonal X"

    def missing(self, problem: Problem) -> str | None:
        """Another design matrix, or an intercept that the penalty does not make superfluous."""
        diagonal = diagonal_of(problem.given) if problem.given.kernel is None else None
        if diagonal is None:
            return "only a diagonal design matrix without zeros is supported"
        if problem.given.intercept and not (np.all(diagonal == diagonal[0]) and _ignores_constants(problem)):
            return "an intercept is supported only beside differences and X = I; pass intercept=False"
        return None


@dataclass(frozen=True)
class BandedDifferences(Need):
    """Absolute values after maps that take only neighbouring weights, L1 and a ridge."""

    def __str__(self) -> str:
        return f"absolute values of differences of weights at most {WIDEST} places apart, L1 and a ridge"

    def missing(self, problem: Problem) -> str | None:
        """Other terms, or maps of distant weights."""
        parts = problem.normal_form
        if not parts.weight_pieces or not all(_is_absolute(piece) for piece in parts.weight_pieces):
            return f"{self}: there is no other term"
        if any(_width(piece) > WIDEST for piece in parts.weight_pieces):
            return f"a map takes weights more than {WIDEST} places apart"
        if any(scaled.form.diagonal is None for scaled in parts.weight_forms):
            return "only a ridge is supported beside the differences"
        if parts.separable is not None and parts.separable.bounded:
            return "bounds on the weights are not supported"
        return None


def diagonal_of(model: Model) -> Array | None:
    """The diagonal of the design matrix; None if it has zeros, or if there are other entries. Kept with the model."""
    known = model.__dict__
    if "_diagonal" not in known:
        X: Any = model.design
        known["_diagonal"] = None
        if X.shape[0] == X.shape[1]:
            diagonal = np.asarray(X.diagonal(), dtype=float)
            count = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
            if np.all(diagonal != 0.0) and count == len(diagonal):
                known["_diagonal"] = diagonal
    found: Array | None = known["_diagonal"]
    return found


def _ignores_constants(problem: Problem) -> bool:
    """Whether all terms on the weights are differences, so that constant weights do what the intercept does."""
    parts = problem.normal_form
    if parts.separable is not None or parts.weight_forms:
        return False
    maps = [sp.csr_array(piece.K) for piece in parts.weight_pieces if sp.issparse(piece.K)]
    sums = [(np.abs(K.sum(axis=1)), abs(K).sum(axis=1)) for K in maps]
    return len(maps) == len(parts.weight_pieces) and all(np.all(net <= NO_SUM * size) for net, size in sums)


def _is_absolute(piece: Piece) -> bool:
    unbounded = piece.atom.can("separable") and not piece.atom.separable().bounded
    return unbounded and sp.issparse(piece.K) and piece.K.shape[0] > 0


def _width(piece: Piece) -> int:
    """The largest distance of two weights in a row, kept with the piece."""
    if "_width" not in piece.__dict__:
        K = _stored(piece.K)
        K = K[np.flatnonzero(np.diff(K.indptr))]
        first, last = ends(K)
        object.__setattr__(piece, "_width", int(np.max(last - first, initial=0)))
    return int(piece.__dict__["_width"])


def _stored(K: Any) -> Any:
    """K as CSR with sorted indices and without stored zeros."""
    K = sp.csr_array(K)
    if K.has_canonical_format and np.all(K.data != 0.0):
        return K
    K = K.copy()
    K.sum_duplicates()
    K.eliminate_zeros()
    return K


class Columns:
    """The problem of each output: curvatures, targets with a ridge folded in, and all maps as one, in units of lam."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.parts = problem, problem.normal_form
        parts, diagonal = self.parts, diagonal_of(problem.given)
        assert diagonal is not None
        self.x = diagonal
        self.loss = parts.score_pieces[0]
        zero = np.zeros(parts.shape)
        s = self.loss.scale * self.loss.atom.hess_diag(zero) * self.x[:, None] ** 2
        for scaled in parts.weight_forms:
            s = s + 2.0 * scaled.scale * np.broadcast_to(np.asarray(scaled.form.diagonal), (len(zero),))[:, None]
        y = -self.x[:, None] * self.loss.grad(zero) / s
        self.solved = []
        for column in range(parts.n_outputs):
            K, sources, strengths = _stacked(parts, column)
            its_s, its_y = np.ascontiguousarray(s[:, column]), np.ascontiguousarray(y[:, column])
            self.solved.append((InteriorPoint(K, its_s, its_y, tol), sources, strengths))

    @property
    def done(self) -> bool:
        """Whether the gaps of all outputs are small."""
        return all(method.done for method, *_ in self.solved)

    def iterate(self, last: bool) -> Iterate:
        """The best weights with the best dual points, of the loss so that all are in balance."""
        parts = self.parts
        x, b = np.column_stack([method.best for method, *_ in self.solved]), np.zeros(parts.n_outputs)
        sizes = [piece.K.shape[0] for piece in parts.weight_pieces]
        q = np.zeros((sum(sizes) + len(x), parts.n_outputs))  # those of L1 come last
        for column, (method, sources, strengths) in enumerate(self.solved):
            q[sources, column] = strengths * method.dual
        *points, of_l1 = np.split(q, np.cumsum(sizes))
        total = of_l1 + parts.quadratic_grad(x)
        dual = {}
        for piece, its in zip(parts.weight_pieces, points, strict=True):
            dual[piece.number] = its
            total = total + piece.adjoint(its)
        dual[self.loss.number] = -total / self.x[:, None]
        return Iterate(x, b, dual, exhausted=last, promising=self.done)


def _stacked(parts: NormalForm, column: int) -> tuple[Any, np.ndarray, Array]:
    """All maps of one output with their strengths, sorted by place; where each row comes from, and its strength."""
    maps, strengths = [], []
    for piece in parts.weight_pieces:
        maps.append(_stored(piece.K))
        strengths.append(_column(piece.scale * piece.atom.separable().weights, piece.K.shape[0], column))
    if parts.separable is not None:
        maps.append(sp.eye_array(parts.shape[0], format="csr"))
        strengths.append(_column(parts.separable.weights, parts.shape[0], column))
    K, strength = maps[0] if len(maps) == 1 else sp.vstack(maps, format="csr"), np.concatenate(strengths)
    used = np.flatnonzero((np.diff(K.indptr) > 0) & (strength > 0))
    K = K if len(used) == K.shape[0] else K[used]
    first, last = ends(K)
    order = np.argsort(first + last, kind="stable")
    if np.any(np.diff(order) != 1):
        K, used = K[order], used[order]
    strength = strength[used]
    data = K.data * np.repeat(strength, np.diff(K.indptr))
    return sp.csr_array((data, K.indices, K.indptr), shape=K.shape), used, strength


def _column(weights: Array, rows: int, column: int) -> Array:
    weights = np.asarray(weights)
    shaped = np.broadcast_to(weights, (rows, max(column + 1, weights.shape[1] if weights.ndim == 2 else 1)))
    return np.asarray(shaped[:, column], dtype=float)


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Steps of all outputs until each is done or stalled."""
    columns = Columns(problem, tol)
    active = [method for method, *_ in columns.solved if method.K.shape[0]]
    for count in range(1, MOST_STEPS + 1):
        for method in [method for method in active if not method.done] or active:
            deadline.check()
            if not method.step():
                active = [other for other in active if other is not method]
        last = not active or count == MOST_STEPS
        if last or count % SHOWN == 0 or columns.done:
            yield columns.iterate(last)
        if last:
            return


NEEDS = (DiagonalDesign(), SquaredLoss(), OneLoss(), BandedDifferences())
SOLVER = Solver("banded_interior_point", run, NEEDS, AS_GIVEN)
