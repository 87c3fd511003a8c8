"""A kernel problem with graph terms as an equivalent problem on the labelled rows.

    minimize  loss(f_l) + lam1 ||h||^2 + graph terms of h and of f = h + b

has the same minimum as  loss(Q a + u b) + lam1 (a'Qa + s b^2)  over l + 1 numbers, where Q is the warped kernel between
the labelled rows. Without a graph on f, the intercept is free (u = 1, s = 0). A graph on f in which constants have a
cost (one with dissimilarity edges) penalises the intercept: u = 1 - gram' m and s = 1'm - m'gram' m with m = M_f 1.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.function_norm import squared_norm
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.solvers.kernels.warp import GraphOperator, Warp
from cvxstructreg.solvers.needs import FunctionNorm, KernelModel, OneLoss, Outputs

#: What the reduction to the labelled rows requires of a problem.
NEEDS = (KernelModel(), FunctionNorm(), OneLoss(forms=True), Outputs(most=1))

#: A single-precision warped kernel with a larger relative asymmetry is discarded rather than corrected.
ASYMMETRY = 1e-3
#: So is one that none of these shifts, relative to its largest diagonal entry, makes positive definite.
ROUGH_SHIFTS = (0.0, 1e-7, 1e-6, 1e-5)


class ReducedKernel:
    """Q, u and s of a problem, and the map back to the weights; ``accuracy`` is the allowed relative residual.

    With ``rough``, this accuracy holds for the weights, u and s, but Q has the accuracy of single precision. Refining
    one right-hand side is cheap; refining one for each label costs as much as the factorisation.
    """

    def __init__(self, problem: Problem, accuracy: float = 0.0, rough: bool = False) -> None:
        model, parts = problem.model.kernel, problem.normal_form
        assert model is not None
        self.piece: Piece = parts.score_pieces[0]
        assert parts.function_norm is not None
        self.norm = parts.function_norm
        loss = self.piece.atom
        assert isinstance(loss, Loss)
        n = model.n_rows
        self.rows = np.arange(n) if loss.rows is None else loss.rows
        self.n, gram = n, model.design
        on_scores = self.norm.relative(parts.score_forms)
        on_values = self.norm.relative(parts.function_forms)
        self.operator = GraphOperator(on_scores + on_values, n)
        self.intercept, self.accuracy, self.is_rough = model.intercept, accuracy, False
        self.rough, self.last = rough, (np.zeros(len(self.rows)), np.zeros((n, 1)))
        self.pull: Array | None = None  # m = M_f 1, or None if it is zero
        if self.intercept and on_scores:
            m = GraphOperator(on_scores, n).apply(np.ones((n, 1)))
            if np.abs(m).max() > 1e-12 / n * sum(c * form.trace_bound for c, form in on_scores):
                self.pull = m
        self._solve(gram, on_scores)

    def _solve(self, gram: Array, on_scores: list[tuple[float, QuadraticForm]]) -> None:
        count, solved = len(self.rows), None
        self.columns: Array | None = None
        if self.operator.is_zero:
            self.rough, self.Q = False, gram if count == self.n else gram[np.ix_(self.rows, self.rows)]
        else:
            self.warp = Warp(gram, self.operator, self.accuracy)
            right = np.zeros((self.n, count + (self.pull is not None)), order="F")
            right[self.rows, np.arange(count)] = 1.0
            if self.pull is not None:
                right[:, count:] = self.pull
            solved = self._solved(right, gram[self.rows])
            self.is_rough = self.rough or self.warp.is_rough
            self.columns = solved[:, :count]
        self.u, self.s = np.ones(count), 0.0
        if self.pull is not None and solved is not None:
            self.shift = solved[:, count:]
            values = -(gram @ self.shift)  # the optimal h for b = 1 and a = 0
            self.u = 1.0 + values[self.rows, 0]
            # s as a sum of nonnegative terms rather than a difference, to avoid cancellation
            with_constant = 1.0 + values
            self.s = squared_norm(self.shift, -values)
            self.s += float(np.sum(with_constant * GraphOperator(on_scores, self.n).apply(with_constant)))
            others = self.operator.apply(values) - GraphOperator(on_scores, self.n).apply(values)
            self.s += max(0.0, float(np.sum(values * others)))

    def _solved(self, right: Array, rows: Array) -> Array:
        """Solve for all columns and set Q; in single precision, except for the intercept, if that is good enough."""
        count, self.rough = len(self.rows), self.rough and self.warp.can_be_rough
        definite: Array | None = None
        if self.rough:
            solved = self.warp.rough(right)
            Q = rows @ solved[:, :count]
            symmetric = float(np.abs(Q - Q.T).max()) <= ASYMMETRY * float(np.abs(Q).max())
            definite = _shifted((Q + Q.T) / 2) if symmetric else None
            self.rough = definite is not None
        if not self.rough:
            solved = self.warp.solve(right)
            Q = rows @ solved[:, :count]
            self.Q = (Q + Q.T) / 2
            return solved
        self.Q = definite
        if self.pull is not None:
            solved[:, count:] = self.warp.improved(solved[:, count:], self.pull)
        return solved

    def expand(self, a: Array, b: float) -> tuple[Array, Array]:
        """The weights and the intercept for (a, b)."""
        theta = np.zeros((self.n, 1))
        if self.columns is None:
            theta[self.rows, 0] = a
        elif not self.rough:
            theta[:, 0] = self.columns @ a
        else:
            theta = self._improved(a)
        if self.pull is not None:
            theta = theta - b * self.shift
        return theta, np.array([b if self.intercept else 0.0])

    def _improved(self, a: Array) -> Array:
        """The weights for a: the rough weights plus the correction found for an earlier a, refined if necessary."""
        assert self.columns is not None
        near, (last, error) = (self.columns @ a)[:, None], self.last
        # an estimate of the error due to the change of a since the last correction
        added = float(np.linalg.norm(error)) * float(np.linalg.norm(a - last))
        if not last.any() or added > self.accuracy * float(np.linalg.norm(near)) * float(np.linalg.norm(last)):
            right = np.zeros((self.n, 1))
            right[self.rows, 0] = a
            error = self.warp.improved(near + error, right) - near
            self.last = a, error
        return np.asarray(near + error)

    def image(self, h: Array, b: float) -> Array:
        """Q a, computed from the function h = gram theta of (a, b)."""
        return np.asarray(h[self.rows] - b * (self.u - 1.0))


def _shifted(Q: Array) -> Array | None:
    """Q with the smallest shift that makes it positive definite; None if none does.

    Single-precision round-off may make small eigenvalues negative. The later correction removes the effect of a shift
    too.
    """
    top = float(Q.diagonal().max(initial=0.0))
    for shift in ROUGH_SHIFTS:
        trial = Q if shift == 0.0 else Q + shift * top * np.eye(len(Q))
        if top > 0.0 and scipy.linalg.lapack.dpotrf(trial, lower=1, clean=0)[1] == 0:
            return trial
    return None
