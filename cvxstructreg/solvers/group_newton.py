"""Overlapping groups: a working set of features, semismooth Newton on an augmented Lagrangian, repair of the dual.

    minimize over (w, b)   loss(Xw + b) + w'Mw + sum_j lam_j |w_j| + sum_g c_g ||w_g||

A point is optimal if what the loss pulls, e = -X'loss'(Xw + b) - 2Mw, is K'q + s with ||q_g|| <= c_g and
|s_j| <= lam_j that attain the norms. Features outside the working set are at zero, where it is enough that such q and s
exist: sweeps over the groups look for them, with what the working set uses held (see :func:`kernels_groups.repair`).
The features for which they find none join the working set, and the q they do find prove the bound. The problem on the
working set is :mod:`group_subproblem`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cvxstructreg.core.atom import Array
from cvxstructreg.core.certificate import objective_scale
from cvxstructreg.core.dual import ScoreDual
from cvxstructreg.core.free_directions import refit
from cvxstructreg.core.normal_form import NormalForm, Piece
from cvxstructreg.core.problem import Problem
from cvxstructreg.core.selection import Selection
from cvxstructreg.solvers.group_subproblem import Design, Ints, Restricted, Stack, Subproblem, Widths, minimise
from cvxstructreg.solvers.iterate import Iterate, Refusal

NAME = "group_newton"
ITERATES = True
ROUGH_ZEROS = True

#: Sweeps of the repair; the least number of features that may join the working set.
SWEEPS, LEAST_GROWTH = 5, 400
#: The relative gap to which the problem on a working set is solved while that grows by many features, or by some; how
#: large a share of it are many, and some.
ROUGH, MIDDLE = 1e-1, 1e-3
MANY, FEW = 0.05, 0.01
#: Nothing more is to be had beyond this accuracy.
FINEST = 1e-14


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
            # with a map that mixes weights, features at zero are not apart from the others, as a working set needs
            return Refusal(f"{piece.atom!r} is not a sum of norms of groups of weights")
    return None


def _picks(piece: Piece) -> bool:
    """Whether each row of K is a row of the identity."""
    return piece.K is None or isinstance(piece.K, Selection)


def stacked(parts: NormalForm) -> Stack:
    """The groups of all pieces on the flat weights, with the strengths in the radii."""
    k = parts.n_outputs
    starts, indices, radii, offset = [np.zeros(1, dtype=np.int64)], [], [], 0
    for piece in parts.weight_pieces:
        indptr, weights = piece.atom.blocks()
        starts.append(indptr[1:] * k + offset)
        offset += int(indptr[-1]) * k
        columns = np.arange(parts.model.n_weights, dtype=np.uint32) if piece.K is None else piece.K.indices
        if k > 1:
            columns = (columns[:, None].astype(np.int64) * k + np.arange(k)).ravel()
        indices.append(columns.astype(np.uint32, copy=False))
        radii.append(piece.scale * weights)
    joined = indices[0] if len(indices) == 1 else np.concatenate(indices)
    return Stack(np.concatenate(starts), joined, np.concatenate(radii), parts.shape[0] * k)


def absolute_values(parts: NormalForm) -> Array:
    """The lam_j of the flat weights, zero where there are none."""
    weights = 0.0 if parts.separable is None else parts.separable.weights
    return np.array(np.broadcast_to(weights, parts.shape), dtype=float).ravel()


class _State:
    """The point, the dual point and the working set."""

    def __init__(self, problem: Problem, start: Iterate) -> None:
        from cvxstructreg.core import kernels_groups as kernels

        self.problem, self.kernels = problem, kernels
        self.parts = parts = problem.normal_form
        self.stack, self.lam = stacked(parts), absolute_values(parts)
        self.X = Design(parts)
        self.b, self.q = start.b.copy(), self._start_q(start)
        self.theta = self.rounded = self.sparsest = start.theta.copy()
        self.sweeps = 1
        held = np.zeros_like(self.lam)
        kernels.add_radii(self.stack.indptr, self.stack.indices, self.stack.radii, held)
        # what a violation is compared with: scaling the dual point down by violation / radius would repair it
        radius = np.where(self.lam > 0, self.lam, held)
        scores = problem.model.scores(self.theta, self.b)
        pull = np.abs(self.X.pull(parts.smooth_score_grad(scores)))
        self.radius = np.where(radius > 0, radius, max(float(pull.max()), 1e-300))
        self.widths = Widths(self._typical_weight(scores, pull))
        self.ridge = np.repeat(parts.ridge, parts.n_outputs)
        unpenalised = ((radius <= 0) & (self.ridge <= 0)).reshape(parts.shape).any(axis=1)
        self.inside: Ints = np.asarray(self.theta.any(axis=1) | unpenalised)
        self.scale = objective_scale(problem, problem.value_at(self.theta, self.b))
        self.sub: Subproblem | None = None

    def _typical_weight(self, scores: Array, pull: Array) -> float:
        """The mean size of a Newton step in one weight alone."""
        unit = np.zeros_like(scores)
        unit[:, 0] = 1.0
        curvature = float(np.mean(np.abs(self.parts.smooth_score_hessp(scores, unit)[:, 0])))
        second = curvature * self.parts.column_norms**2 + 2.0 * self.parts.ridge
        steps = pull.max(axis=1)[second > 0] / second[second > 0]
        return float(steps.mean()) if steps.any() else 1.0

    def _start_q(self, start: Iterate) -> Array:
        k, offset = self.parts.n_outputs, 0
        q = np.zeros(len(self.stack.indices))
        for piece in self.parts.weight_pieces:
            size, u = int(piece.atom.blocks()[0][-1]), start.dual.get(piece.number)
            if u is not None and u.shape == (size, k):
                q[offset : offset + size * k] = u.ravel()
            offset += size * k
        self.kernels.shrink(self.stack.indptr, self.stack.radii, q)
        return q

    def _flat(self, features: Ints) -> Ints:
        """The flat coordinates of the weights of some features."""
        k = self.parts.n_outputs
        return (features[:, None] * k + np.arange(k)).ravel()

    def improve(self, target: float) -> None:
        """Minimise over the working set, to about that relative gap."""
        features = np.flatnonzero(self.inside)
        if not len(features):
            return
        chosen, self.sub = self._flat(features), None  # the old one is as large as the new one
        norms = Restricted(self.stack, chosen, self.q, join_singles=self.parts.n_outputs == 1)
        self.sub = Subproblem(self.parts, self.X, features, self.lam[chosen], norms)
        start = self.theta[features].ravel(), self.b
        w, self.b, some, all_zeros = minimise(self.sub, *start, self.radius[chosen], target, self.scale, self.widths)
        self.theta, self.rounded = self.sub.embedded(w), self.sub.embedded(some)
        self.sparsest = self.sub.embedded(all_zeros)

    def repair(self, prove: bool = True) -> tuple[float, Array]:
        """A dual point for the rounded weights: the relative gap that it proves, and what of the pull nothing takes.

        The gap is infinite if it is not to be proved.
        """
        parts, stack, kernels = self.parts, self.stack, self.kernels
        groups = (stack.indptr, stack.indices, stack.radii)
        scores = parts.model.scores(self.rounded, self.b)
        if parts.model.intercept and prove:
            _, self.b, scores = refit(parts, self.rounded, self.b, scores, np.zeros((parts.shape[0], 0)))
        left = -self.X.pull(parts.smooth_score_grad(scores)) - parts.quadratic_grad(self.rounded)
        left = left.ravel()
        fixed = np.repeat(self.inside, parts.n_outputs).view(np.uint8)
        if self.sub is not None:
            self.sub.norms.hand_back(left, self.lam[self._flat(self.sub.features)], self.q)
        else:
            kernels.add_adjoint(stack.indices, self.q, left, -1.0)
        kernels.repair(*groups, self.q, left, self.lam, fixed, self.sweeps)
        missing = np.maximum(np.abs(left) - self.lam, 0.0)
        missing[fixed != 0] = 0.0
        settled = np.count_nonzero(missing) < 0.05 * np.count_nonzero(fixed)
        self.sweeps = SWEEPS if settled else 1
        if settled and prove:
            kernels.repair(*groups, self.q, left, self.lam, np.zeros_like(fixed), SWEEPS)
        return self._gap(scores, left) if prove else np.inf, missing

    def round_all(self, aim: float) -> bool:
        """All zeros of the copies in the weights, if the gap stays within ``aim``; whether it does."""
        if np.array_equal(self.rounded, self.sparsest):
            return True
        before = self.rounded, self.b, self.q.copy()
        self.rounded = self.sparsest
        stays = self.repair()[0] <= aim
        if not stays:
            self.rounded, self.b, self.q = before
        return stays

    def _gap(self, scores: Array, left: Array) -> float:
        """The gap that the dual point proves when it is scaled to be feasible."""
        parts, held = self.parts, self.ridge > 0
        excess = np.maximum(np.abs(left) - self.lam, 0.0)
        s = 1.0 / (1.0 + float(np.max(excess[~held] / self.radius[~held], initial=0.0)))
        points = tuple(piece.grad(piece.forward(scores)) for piece in parts.score_pieces)
        cost = ScoreDual(self.rounded, scores, points, scores).cost(parts, s)
        cost += s**2 * parts.quadratic_value(self.rounded)
        cost += float(np.sum(excess[held] ** 2 / (4.0 * self.ridge[held])))
        objective = self._value(scores)
        self.scale = objective_scale(self.problem, objective)
        return (objective + cost) / self.scale

    def _value(self, scores: Array) -> float:
        """The objective at the rounded weights."""
        parts, stack, w = self.parts, self.stack, self.rounded.ravel()
        value = sum(piece.value(scores) for piece in parts.score_pieces) + parts.quadratic_value(self.rounded)
        value += sum(form.value(scores) for form in parts.score_forms) + float(self.lam @ np.abs(w))
        return float(value + self.kernels.norm_sum(stack.indptr, stack.indices, stack.radii, w))

    def grow(self, missing: Array, least: float) -> float:
        """The features with the largest part that nothing takes join the working set; which share of it they are."""
        shape = self.parts.shape
        worst = (missing / self.radius).reshape(shape).max(axis=1)
        candidates = np.flatnonzero(worst > least)
        room = max(LEAST_GROWTH + shape[0] // 30, int(self.inside.sum()))
        if len(candidates) > room:
            # by the decrease that a Newton step in the weight alone would bring
            gain = missing.reshape(shape).max(axis=1)[candidates] / self.parts.column_norms[candidates]
            candidates = candidates[np.argpartition(-gain, room)[:room]]
        self.inside[candidates] = True
        return len(candidates) / max(1, int(self.inside.sum()))

    def iterate(self, exhausted: bool, promising: bool) -> Iterate:
        """The rounded weights with the dual point."""
        dual, offset, k = {}, 0, self.parts.n_outputs
        for piece in self.parts.weight_pieces:
            size = int(piece.atom.blocks()[0][-1]) * k
            dual[piece.number] = self.q[offset : offset + size].reshape(-1, k)
            offset += size
        return Iterate(self.rounded.copy(), self.b.copy(), dual, exhausted, promising)


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Rounds of: minimise over the working set, repair the dual point, let features join."""
    state = _State(problem, start)
    again = False
    aim, fine, joined = tol, tol, 0.0  # the gap aimed at, the one asked of the subproblem, the share of new features
    if not state.inside.any():
        _, missing = state.repair()
        joined = state.grow(missing, 0.0)
    while True:
        target = ROUGH if joined > MANY else max(MIDDLE, fine) if joined > FEW else fine
        state.improve(target)
        gap, missing = state.repair(prove=joined <= MANY)
        joined = state.grow(missing, 0.01 * aim)
        # once more for the sake of the zeros, if they cannot be had yet
        good = gap <= aim
        again = good and not state.round_all(aim) and not again
        yield state.iterate(exhausted=fine < FINEST, promising=bool(good and not again))
        state.q = state.q.copy()  # what was handed out stays as it is
        if good and not again:
            aim = fine = 0.1 * aim  # the driver's own certificate was not content
        elif target <= fine and joined == 0.0 and not again:
            fine *= 0.1
