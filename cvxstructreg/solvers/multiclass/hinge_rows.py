"""All centred hinges of a problem as one stack of rows, and the kernel between them from its quadratic terms.

A problem whose score terms are centred hinges and quadratic forms, with quadratic terms on the weights, is

    minimize over (A, b)   sum_ij c_ij (Z_ij - tau_i)_+^p_i  +  1/2 <A, K A>,     Z = K A + q b',  A 1 = 0,  1'b = 0

with one row for each labelled example and each pair. The zero sums are no restriction: centring A and b does not change
the hinges and does not increase the norm. The dual is  maximize  -<tau, U> - 1/2 <A, K A> - sum_(p = 2) U^2 / (4c)
with A = -U centred, 0 <= U (<= c where p = 1), and q'A = 0 if b is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms import centred_hinge
from cvxstructreg.forms.function_norm import squared_norm
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.quadratic_form import to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.memory import require_memory
from cvxstructreg.solvers.kernels.warp import GraphOperator, Warp
from cvxstructreg.solvers.needs import Factorisable, FunctionNorm, HoldsEveryWeight, Outputs, Quadratic, ScoresCan

#: Quadratic terms that are not diagonal are factorised up to this many weights.
FACTORISE = 3000
#: A graph has no effect on the intercept if its products with constants are below this, relative to its entries.
NO_PULL = 1e-12
#: What solvers for this form require of a problem.
NEEDS = (
    Outputs(least=2),
    ScoresCan((("centred_hinges",),), "hinges of centred scores"),
    Quadratic(),
    FunctionNorm(),
    HoldsEveryWeight(),
    Factorisable(FACTORISE),
)


@dataclass(frozen=True, eq=False)
class HingeRows:
    """The hinges of all rows, functions of Z = R F for the scores F of the model."""

    R: Any  # m x n, sparse
    costs: Array  # m x k
    tau: Array
    squared: np.ndarray  # whether p = 2
    spans: tuple[tuple[int, int, int], ...]  # (number of the term, first row, last row + 1)

    @classmethod
    def of(cls, problem: Problem) -> HingeRows:
        """The rows of a problem."""
        n, k = problem.model.n_rows, problem.n_outputs
        maps, costs, tau, squared, spans, first = [], [], [], [], [], 0
        for piece in problem.normal_form.score_pieces:
            hinges = piece.atom.centred_hinges(k)
            m = len(hinges.costs)
            maps.append(sp.eye_array(n, format="csr") if piece.K is None else sp.csr_array(piece.K))
            costs.append(piece.scale * hinges.costs)
            tau.append(np.full(m, hinges.tau))
            squared.append(np.full(m, hinges.power == 2))
            spans.append((piece.number, first, first + m))
            first += m
        R = sp.csr_array(sp.vstack(maps)) if len(maps) > 1 else maps[0]
        return cls(R, np.vstack(costs), np.concatenate(tau), np.concatenate(squared), tuple(spans))

    def dual_points(self, U: Array) -> dict[int, Array]:
        """The dual points of the terms: the rows of U, centred."""
        centred = centred_hinge.centred(U)
        return {number: centred[first:last] for number, first, last in self.spans}

    def multipliers(self, dual: Mapping[int, Array]) -> Array:
        """U for given dual points, zero for terms without one."""
        U = np.zeros_like(self.costs)
        for number, first, last in self.spans:
            if number in dual and dual[number].shape == U[first:last].shape:
                U[first:last] = centred_hinge.multipliers(dual[number], self.costs[first:last])
        return U

    def value_at_zero(self) -> float:
        """The objective at zero weights."""
        below = np.maximum(0.0, -self.tau)[:, None]
        return float(np.sum(self.costs * np.where(self.squared[:, None], below**2, below)))


class KernelGeometry:
    """K = R gram' R' / (2 lam), where gram' is gram, or the warped kernel if there is a graph on the scores.

    If constants have a cost in the graph (one with dissimilarity edges), it determines the intercept as well. Then u u'
    / (2 lam s) is added to K, where u are the optimal scores of the rows for b = 1, and s is the cost of these scores.
    """

    def __init__(self, problem: Problem, rows: HingeRows) -> None:
        self.rows, self.parts, self.gram = rows, problem.normal_form, problem.model.design
        assert self.parts.function_norm is not None
        norm = self.parts.function_norm
        self.unit = norm.curvature
        self.free_intercept = problem.model.intercept
        self.answer: tuple[Array, Array, float] | None = None
        self._last: tuple[np.ndarray, Any] | None = None
        forms = norm.relative(self.parts.score_forms)
        operator = GraphOperator(forms + norm.relative(self.parts.function_forms), len(self.gram))
        self.warp = None if operator.is_zero else Warp(self.gram, operator)
        self.is_warped = self.warp is not None
        if forms and problem.model.intercept:
            self._hold_intercept(GraphOperator(forms, len(self.gram)))

    def _hold_intercept(self, graph: GraphOperator) -> None:
        assert self.warp is not None
        ones = np.ones((len(self.gram), 1))
        pull = graph.apply(ones)
        size = sum(c * float(form.main_diagonal.max()) for c, form in graph.plain)
        size += sum(c * form.trace_bound for c, form in graph.operators)
        if np.abs(pull).max() <= NO_PULL * size:
            return
        shift = self.warp.solve(pull)  # minus theta of the optimal function for b = 1
        values = ones - self.gram @ shift
        held = squared_norm(shift, self.gram @ shift) + float(np.sum(values * graph.apply(values)))
        held += float(np.sum((values - ones) * (self.warp.operator.apply(values - ones) - graph.apply(values - ones))))
        self.answer, self.free_intercept = (shift, self.rows.R @ values, held), False

    def _picked(self, W: np.ndarray) -> Any:
        """R[W], cached while W is the same: selecting rows takes longer than a product with them."""
        if self._last is None or self._last[0] is not W:
            self._last = W, self.rows.R[W]
        return self._last[1]

    def columns(self, W: np.ndarray) -> Array:
        """K[:, W]."""
        R = self.rows.R
        require_memory(
            8.0 * len(W) * (sum(R.shape) + len(W)),
            f"the kernel between {len(W):,} labelled rows or pairs and all {R.shape[0]:,}",
            "use fewer pairs or labelled rows, or a linear model",
        )
        # gram is symmetric
        reached = self._picked(W) @ self.gram if self.warp is None else (self.gram @ self._solved(W)).T
        K = np.asarray(R @ np.ascontiguousarray(reached.T)) / self.unit
        if self.answer is not None:
            _, u, held = self.answer
            K += (u @ u[W].T) / (self.unit * held)
        return K

    def _solved(self, W: np.ndarray) -> Array:
        assert self.warp is not None
        return self.warp.solve(self._picked(W).toarray().T)

    def lift(self, W: np.ndarray, A: Array, b: Array) -> tuple[Array, Array]:
        """(theta, b) of A on the rows W."""
        right = np.asarray(self._picked(W).T @ A) / self.unit
        theta = right if self.warp is None else self.warp.solve(right)
        if self.answer is not None:
            shift, u, held = self.answer
            b = (u[W].T @ A)[0] / (self.unit * held)
            theta = theta - shift @ b[None]
        return theta, b


class LinearGeometry:
    """K = Phi Phi' with Phi = R X H^-1/2 / sqrt(2), where H is the quadratic form of all terms on the weights."""

    def __init__(self, problem: Problem, rows: HingeRows) -> None:
        parts, self.rows, self.unit = problem.normal_form, rows, 1.0
        self.is_warped = False
        self.design = rows.R @ problem.model.design
        self.free_intercept, self.holds_intercept = problem.model.intercept, False
        self.inverse_root: Array | None = None
        self.factor: Array | None = None
        diagonals = [scaled.form.diagonal for scaled in parts.weight_forms]
        if not parts.score_forms and all(diagonal is not None for diagonal in diagonals):
            self.inverse_root = 1.0 / np.sqrt(2.0 * parts.ridge)
        else:
            H = self._form(parts, problem.model.design)
            self.factor = scipy.linalg.cholesky(2.0 * H, lower=True)

    def _form(self, parts: NormalForm, X: Any) -> Array:
        d = X.shape[1]
        H = np.zeros((d, d))
        for scaled in parts.weight_forms:
            H += scaled.scale * to_dense(scaled.form.matrix)
        ones, pull, held = np.ones((X.shape[0], 1)), np.zeros((d, 1)), 0.0
        dense = to_dense(X)
        for scaled in parts.score_forms:
            H += scaled.scale * (dense.T @ scaled.form.apply(dense))
            pull += scaled.scale * (dense.T @ scaled.form.apply(ones))
            held += scaled.scale * scaled.form.value(ones)
        if self.free_intercept and held > NO_PULL * sum(x.scale * x.form.trace_bound for x in parts.score_forms):
            H = np.block([[H, pull], [pull.T, np.full((1, 1), held)]])
            self.design = np.hstack([to_dense(self.design), np.asarray(self.rows.R.sum(axis=1)).reshape(-1, 1)])
            self.free_intercept, self.holds_intercept = False, True
        return (H + H.T) / 2

    @cached_property
    def features(self) -> Any:
        """Phi: sparse if X is sparse and H is diagonal, else dense."""
        if self.factor is not None:
            dense = to_dense(self.design)
            return np.asarray(scipy.linalg.solve_triangular(self.factor, dense.T, lower=True).T)
        if sp.issparse(self.design):
            return sp.csr_array(self.design @ sp.diags_array(self.inverse_root))
        return self.design * self.inverse_root

    @property
    def rank(self) -> int:
        """The number of features."""
        return int(self.features.shape[1])

    def columns(self, W: np.ndarray) -> Array:
        """K[:, W]."""
        m = self.rows.R.shape[0]
        require_memory(
            8.0 * len(W) * (m + len(W)),
            f"the kernel between {len(W):,} labelled rows or pairs and all {m:,}",
            "use fewer pairs or labelled rows, or few enough features for the solver hinge_newton",
        )
        return to_dense(self.features @ self.features[W].T)

    def to_weights(self, w: Array, b: Array) -> tuple[Array, Array]:
        """(theta, b) for weights w of the features Phi."""
        if self.factor is None:
            assert self.inverse_root is not None
            return self.inverse_root[:, None] * w, b
        theta = np.asarray(scipy.linalg.solve_triangular(self.factor, w, lower=True, trans=1))
        return (theta[:-1], theta[-1].copy()) if self.holds_intercept else (theta, b)

    def lift(self, W: np.ndarray, A: Array, b: Array) -> tuple[Array, Array]:
        """(theta, b) of A on the rows W."""
        return self.to_weights(np.asarray(self.features[W].T @ A), b)


def geometry(problem: Problem, rows: HingeRows) -> KernelGeometry | LinearGeometry:
    """The kernel between the rows of a problem, from its quadratic terms."""
    return (KernelGeometry if problem.given.kernel is not None else LinearGeometry)(problem, rows)
