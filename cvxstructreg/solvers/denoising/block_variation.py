"""Isotropic total variation denoising: squared loss, X = I, and norms of blocks of differences.

The dual problem is

    minimize  1/2 sum_i ((K'q)_i - s_i y_i)^2 / s_i      over all q with ||q_g|| <= lam c_g for each block g

and the weights are w = y - K'q / s. Gradient steps, each followed by the projection onto the balls, have momentum,
which starts anew where it points uphill (Beck and Teboulle 2009). A ridge changes s and y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.momentum import Momentum
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.denoising.total_variation import Identity, SquaredLoss
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import Need, OneLoss
from cvxstructreg.solvers.solver import AS_GIVEN, Solver

#: Steps between two iterates, and iterates at the most.
STEPS, MOST_ITERATES = 20, 5_000


@dataclass(frozen=True)
class BlocksOfDifferences(Need):
    """One term of norms after a sparse map, and perhaps a ridge."""

    def __str__(self) -> str:
        return "norms of blocks of differences, with a ridge"

    def missing(self, problem: Problem) -> str | None:
        """Other terms, or a map that is not sparse."""
        parts = problem.normal_form
        piece = parts.weight_pieces[0] if len(parts.weight_pieces) == 1 else None
        norms = piece is not None and piece.atom.can("dual_norm", "prox") and not piece.atom.can("separable")
        if piece is None or not norms or not sp.issparse(piece.K) or parts.separable is not None:
            return f"{self}: there is no other term"
        if np.any(np.diff(sp.csr_array(piece.K).indptr) == 1):  # groups of weights have faster solvers
            return f"{self}: a row of the map takes a single weight"
        if any(scaled.form.diagonal is None for scaled in parts.weight_forms):
            return "only a ridge is supported beside the differences"
        return None


class Dual:
    """The dual problem: curvatures s and targets y with a ridge folded in, and the length of a step."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.parts = problem, problem.normal_form
        self.loss, self.blocks = self.parts.score_pieces[0], self.parts.weight_pieces[0]
        zero = np.zeros(self.parts.shape)
        self.s = np.broadcast_to(self.loss.scale * self.loss.atom.hess_diag(zero), zero.shape)
        for scaled in self.parts.weight_forms:
            assert scaled.form.diagonal is not None
            self.s = self.s + 2.0 * scaled.scale * np.broadcast_to(scaled.form.diagonal, (len(zero),))[:, None]
        self.y = -self.loss.grad(zero) / self.s
        K = abs(sp.csr_array(self.blocks.K) @ sp.diags_array(1.0 / np.sqrt(self.s.min(axis=1))))
        self.length = 1.0 / max(float(K.sum(axis=0).max()) * float(K.sum(axis=1).max()), np.finfo(float).tiny)

    def weights(self, q: Array) -> Array:
        """y - K'q / s."""
        return np.asarray(self.y - self.blocks.adjoint(q) / self.s)

    def step(self, q: Array) -> Array:
        """A gradient step, and the projection, which is what the prox of the norms leaves."""
        ahead = q + self.length * self.blocks.forward(self.weights(q))
        return np.asarray(ahead - self.blocks.atom.prox(ahead, self.blocks.scale))

    def iterate(self, q: Array, tol: float, last: bool) -> Iterate:
        """The weights of a dual point, which both terms have in balance; promising if their gap is small."""
        x, b = self.weights(q), np.zeros(q.shape[1])
        quadratic, slope = self.parts.quadratic_value_and_grad(x)
        u = -(self.blocks.adjoint(q) + slope)
        value = self.problem.value_at(x, b)
        gap = value + self.loss.conj(u) + quadratic
        dual = {self.loss.number: u, self.blocks.number: q}
        return Iterate(x, b, dual, exhausted=last, promising=gap <= tol * abs(value))


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Accelerated projected gradient steps on the dual problem."""
    dual = Dual(problem)
    given = start.dual.get(dual.blocks.number)
    rows = dual.blocks.K.shape[0]
    q = np.zeros((rows, problem.n_outputs)) if given is None or len(given) != rows else given.copy()
    momentum, trial = Momentum([q]), [q]
    for number in range(MOST_ITERATES):
        for _ in range(STEPS):
            deadline.check()
            trial = momentum.ahead(trial, [dual.step(trial[0])])
        yield dual.iterate(momentum.points[0], tol, last=number == MOST_ITERATES - 1)


NEEDS = (Identity(), SquaredLoss(), OneLoss(), BlocksOfDifferences())
SOLVER = Solver("block_variation", run, NEEDS, AS_GIVEN)
