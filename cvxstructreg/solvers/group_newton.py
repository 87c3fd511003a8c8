"""Overlapping groups: a working set of features, augmented Lagrangian and semismooth Newton inside, dual repair outside.

    minimize over (w, b)   loss(Xw + b) + w'Mw + sum_j lam_j |w_j| + sum_g c_g ||w_g||

A point is optimal if what the loss pulls, e = -X'loss'(Xw + b) - 2Mw, is K'q + s with ||q_g|| <= c_g and |s_j| <= lam_j that
attain the norms. Features outside the working set are at zero, where it is enough that such q and s exist: sweeps over the
groups look for them, with what the working set uses held (see :func:`kernels_groups.repair`). The features for which
they find none join the working set, and the q they do find prove the bound. The problem on the working set is
:mod:`group_subproblem`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Array
from cvxstructreg.core.dual import ScoreDual
from cvxstructreg.core.free_directions import refit
from cvxstructreg.core.normal_form import NormalForm, Piece
from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers.group_subproblem import Restricted, Stack, Subproblem, Widths, minimise
from cvxstructreg.solvers.iterate import Iterate, Refusal

NAME = "group_newton"
ITERATES = True

#: Rounds without a yield; sweeps of the repair; the least number of features that may join the working set.
QUIET_ROUNDS, SWEEPS, LEAST_GROWTH = 5, 5, 100


def accepts(problem: Problem) -> Refusal | None:
    """Smooth losses, absolute values, quadratic terms, and norms of groups of weights (at least one)."""
    parts = problem.linear().normal_form
    if not parts.scores_are_smooth:
        return Refusal("a term of the scores has no Hessian")
    if parts.separable is not None:
        part = parts.separable
        if np.any(np.isfinite(part.lower)) or np.any(np.isfinite(part.upper)):
            return Refusal("there are bounds on the weights")
    if not parts.weight_pieces:
        return Refusal("there are no groups")
    for piece in parts.weight_pieces:
        if not piece.atom.can("blocks") or not _picks(piece):
            return Refusal(f"{piece.atom!r} is not a sum of norms of groups of weights")
    return None


def _picks(piece: Piece) -> bool:
    """Whether each row of K is a row of the identity."""
    K = piece.K
    if not sp.issparse(K) or K.format != "csr" or K.nnz != K.shape[0]:
        return K is None
    return bool(np.all(K.data == 1.0) and np.all(K.indptr[1:] - K.indptr[:-1] == 1))


def stacked(parts: NormalForm) -> Stack:
    """The groups of all pieces, with the strengths in the radii."""
    starts, indices, radii, offset = [np.zeros(1, dtype=np.int64)], [], [], 0
    for piece in parts.weight_pieces:
        indptr, weights = piece.atom.blocks()
        starts.append(indptr[1:] + offset)
        offset += int(indptr[-1])
        columns = np.arange(parts.model.n_weights) if piece.K is None else piece.K.indices
        # unsigned: see the kernels
        indices.append(columns.view(np.uint32) if columns.dtype == np.int32 else columns.astype(np.uint32))
        radii.append(piece.scale * weights)
    joined = indices[0] if len(indices) == 1 else np.concatenate(indices)
    return Stack(np.concatenate(starts), joined, np.concatenate(radii))


def absolute_values(parts: NormalForm) -> Array:
    """The lam_j, zero where there are none."""
    weights = 0.0 if parts.separable is None else parts.separable.weights
    return np.ascontiguousarray(np.broadcast_to(weights, parts.shape), dtype=float)


class _State:
    """The point, the dual point and the working set."""

    def __init__(self, problem: Problem, start: Iterate) -> None:
        from cvxstructreg.solvers import kernels_groups as kernels

        self.problem, self.kernels = problem, kernels
        self.parts = parts = problem.normal_form
        self.stack = stacked(parts)
        self.lam = absolute_values(parts)
        design = problem.model.design
        self.Xt = design.T.tocsr() if sp.issparse(design) else np.ascontiguousarray(design.T)
        self.theta, self.b = start.theta.copy(), start.b.copy()
        self.q = self._start_q(start)
        self.widths = Widths()
        held = np.zeros(parts.shape[0])
        kernels.add_counts(self.stack.indptr, self.stack.indices, self.stack.radii, held)
        slope = parts.smooth_score_grad(problem.model.scores(self.theta, self.b))
        pull = float(np.abs(self.Xt @ slope).max())
        # what a violation is compared with: scaling the dual point down by violation / radius would repair it
        radius = np.where(self.lam > 0, self.lam, held[:, None])
        self.free = (radius <= 0).any(axis=1) & (parts.ridge <= 0)
        self.radius = np.where(radius > 0, radius, max(pull, 1e-300))
        self.inside = self.theta.any(axis=1) | self.free
        self.rounded = self.theta

    def _start_q(self, start: Iterate) -> Array:
        given = [start.dual.get(piece.number) for piece in self.parts.weight_pieces]
        q = np.zeros((len(self.stack.indices), self.parts.n_outputs))
        offset = 0
        for piece, u in zip(self.parts.weight_pieces, given, strict=True):
            size = int(piece.atom.blocks()[0][-1])
            if u is not None and u.shape == (size, q.shape[1]):
                q[offset : offset + size] = u
            offset += size
        self.kernels.shrink(self.stack.indptr, self.stack.radii, q)
        return q

    def improve(self, target: float) -> None:
        """Minimise over the working set, to about that gap."""
        chosen = np.flatnonzero(self.inside)
        self.rounded = self.theta
        if not len(chosen):
            return
        norms = Restricted(self.stack, chosen, len(self.inside), self.q)
        sub = Subproblem(self.parts, self.Xt, chosen, self.lam[chosen], norms)
        w, b, zero, _ = minimise(sub, self.theta[chosen], self.b, self.radius[chosen], target, self.widths)
        self.theta, self.b = sub.embedded(w), b
        # the copy v_g of a group inside its ball is zero: so are its weights
        self.rounded = sub.embedded(np.where(zero[:, None], 0.0, w))
        self.sub = sub

    def repair(self) -> tuple[float, Array]:
        """A dual point for the rounded weights: the gap that it proves, and what of the pull nothing takes."""
        parts, stack, kernels = self.parts, self.stack, self.kernels
        if parts.model.intercept:
            _, self.b = refit(parts, self.rounded, self.b, np.zeros((parts.shape[0], 0)))
        scores = parts.model.scores(self.rounded, self.b)
        slope = parts.smooth_score_grad(scores)
        left = -np.asarray(self.Xt @ slope) - parts.quadratic_grad(self.rounded)
        if self.inside.any():
            chosen, norms = self.sub.chosen, self.sub.norms
            taken = np.zeros((len(chosen), left.shape[1]))
            kernels.add_adjoint(norms.indices, norms.y, taken, 1.0)
            norms.hand_back(left[chosen] - taken, self.lam[chosen], self.q)
            kernels.make_room(stack.indptr, stack.indices, stack.radii, self.q, self.inside.view(np.uint8))
        kernels.add_adjoint(stack.indices, self.q, left, -1.0)
        fixed = self.inside.view(np.uint8)
        kernels.repair(stack.indptr, stack.indices, stack.radii, self.q, left, self.lam, fixed, SWEEPS)
        missing = np.abs(left) - self.lam
        np.maximum(missing, 0.0, out=missing)
        missing[self.inside] = 0.0
        none = np.zeros(len(fixed), dtype=np.uint8)
        kernels.repair(stack.indptr, stack.indices, stack.radii, self.q, left, self.lam, none, SWEEPS)
        return self._gap(scores, left), missing

    def _gap(self, scores: Array, left: Array) -> float:
        """The objective minus the bound that the dual point proves when it is scaled to be feasible."""
        parts = self.parts
        excess = np.maximum(np.abs(left) - self.lam, 0.0)
        held = np.broadcast_to(parts.ridge[:, None] > 0, excess.shape)
        s = 1.0 / (1.0 + float(np.max(np.where(held, 0.0, excess) / self.radius, initial=0.0)))
        points = tuple(piece.grad(piece.forward(scores)) for piece in parts.score_pieces)
        cost = ScoreDual(self.rounded, scores, points, scores).cost(parts, s)
        cost += s**2 * parts.quadratic_value(self.rounded)
        ridge = np.broadcast_to(parts.ridge[:, None], excess.shape)
        cost += float(np.sum(excess[held] ** 2 / (4.0 * ridge[held])))
        self.objective = self.problem.value_at(self.rounded, self.b)
        return self.objective + cost

    def grow(self, missing: Array, least: float) -> int:
        """The features with the largest part that nothing takes join the working set; how many."""
        worst = (missing / self.radius).max(axis=1)
        candidates = np.flatnonzero(worst > least)
        room = max(LEAST_GROWTH, int(self.inside.sum()))
        if len(candidates) > room:
            gain = missing[candidates].max(axis=1) / self.parts.column_norms[candidates]
            order = np.argpartition(-gain, room)[:room]
            candidates = candidates[order]
        self.inside[candidates] = True
        return len(candidates)

    def iterate(self, exhausted: bool = False) -> Iterate:
        """The rounded weights with the dual point."""
        dual, offset = {}, 0
        for piece in self.parts.weight_pieces:
            size = int(piece.atom.blocks()[0][-1])
            dual[piece.number] = self.q[offset : offset + size].copy()
            offset += size
        return Iterate(self.rounded.copy(), self.b.copy(), dual, exhausted)


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Rounds of: minimise over the working set, repair the dual point, let features join."""
    state = _State(problem, start)
    aim, gap, missing = tol, np.inf, None
    quiet, stalled, best = 0, 0, np.inf
    gap, missing = (state.repair() if not state.inside.any() else (np.inf, None))
    while True:
        relative = gap / max(abs(state.objective), 1e-300) if missing is not None else 1.0
        added = state.grow(missing, 0.1 * min(relative, 1.0) * 0.1) if missing is not None else 0
        scale = state.objective if missing is not None else 1.0
        state.improve(max(0.1 * min(gap, scale), 0.3 * aim * scale))
        gap, missing = state.repair()
        quiet += 1
        if gap <= aim * state.objective:
            yield state.iterate()
            aim, quiet = 0.1 * aim, 0
        elif quiet >= QUIET_ROUNDS:
            yield state.iterate()
            quiet = 0
