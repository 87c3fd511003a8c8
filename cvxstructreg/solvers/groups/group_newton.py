"""Overlapping groups: a working set of features, semismooth Newton on an augmented Lagrangian, repair of the dual.

    minimize over (w, b)   loss(Xw + b) + w'Mw + sum_j lam_j |w_j| + sum_g c_g ||w_g||

A point is optimal if the pull of the smooth terms, e = -X'loss'(Xw + b) - 2Mw, equals K'q + s with ||q_g|| <= c_g and
|s_j| <= lam_j, where q and s attain the norms. Features outside the working set have zero weights, so there any
feasible q and s will do. Sweeps over the groups search for them, with the part used by the working set fixed (see
:func:`compiled_groups.repair`). Features for which the sweeps fail are added to the working set, and the q found by the
sweeps prove the bound. :mod:`group_subproblem` is the problem on the working set.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from cvxstructreg.certificates.certificate import objective_scale
from cvxstructreg.certificates.directions.free_directions import refit
from cvxstructreg.certificates.score_dual import ScoreDual
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline
from cvxstructreg.solvers.groups.group_subproblem import (
    Design,
    Ints,
    Restricted,
    Stack,
    Subproblem,
    Widths,
    column_curvature,
    minimise,
)
from cvxstructreg.solvers.groups.large_groups import ManyDataOrSmallGroups, large_group
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import GroupNorms, NoBounds, ScoresCan
from cvxstructreg.solvers.solver import COPIED, Solver

#: What the solvers for overlapping groups require of a problem.
NEEDS = (ScoresCan((("grad", "hessp"),), "second derivatives"), NoBounds(), GroupNorms())


#: The largest number of sweeps that repair the dual point.
SWEEPS = 5
#: The number of features that may join the working set at a time is limited, to LEAST_GROWTH or more (for a dense
#: design, whose features cost more: LEAST_DENSE), if the design matrix has more than SMALL entries. Below that, rounds
#: cost more than features.
LEAST_GROWTH, LEAST_DENSE, SMALL = 400, 40, 100_000
#: All of them join at once if a group is large and there is no L1: its features are zero or nonzero together.
#: All of them join a dense design at once if the median of their missing parts is this part of what the penalty holds.
STRONG = 0.1
#: More than one sweep is made only if fewer features are missing than this part of the working set.
FEW_MISSING = 0.05
#: The sweeps end with one that leaves more than this part of the (squared) excess.
HALVED = 0.5
#: The relative gap to which the subproblem is solved if more than MANY, or more than FEW, of the features in the
#: working set are new.
ROUGH, MIDDLE = 1e-1, 1e-3
MANY, FEW = 0.05, 0.01
#: When the working set is nearly complete, features within a margin of their L1 threshold join too; a warm start may
#: increase this margin.
MARGIN, MOST_MARGIN = 0.2, 0.3
#: The accuracy of the gradient of a subproblem, relative to the target gap: loose at first, because sweeps over the
#: groups repair the dual point, and strict if they do not suffice.
EASE, NO_EASE = 30.0, 0.4
#: No accuracy beyond this can be reached in double precision.
FINEST = 1e-14
#: Weights of at most this size, relative to the largest weight, are tried as zeros; infinity sets all weights to zero.
ROUNDED = (np.inf, 1e-4, 1e-6, 1e-8)


def _picks(piece: Piece) -> bool:
    """Whether each row of K is a row of the identity."""
    return piece.K is None or isinstance(piece.K, Selection)


def stacked(parts: NormalForm) -> Stack:
    """The groups of all pieces on the flat weights; the radii include the strengths."""
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
    joined.flags.writeable = False  # as those of a selection: numba would compile again for a writable array
    return Stack(np.concatenate(starts), joined, np.concatenate(radii), parts.shape[0] * k)


def absolute_values(parts: NormalForm) -> Array:
    """The L1 strengths lam_j of the flat weights, zero where there is no L1 term."""
    weights = 0.0 if parts.separable is None else parts.separable.weights
    return np.array(np.broadcast_to(weights, parts.shape), dtype=float).ravel()


class _State:
    """The point, the dual point and the working set."""

    def __init__(self, problem: Problem, start: Iterate, objective: float) -> None:
        from cvxstructreg.forms import compiled_groups as compiled

        self.problem, self.compiled = problem, compiled
        self.parts = parts = problem.normal_form
        self.stack, self.lam = stacked(parts), absolute_values(parts)
        self.X = Design(parts)
        self.b, self.q = start.b.copy(), self._start_q(start)
        self.theta = self.rounded = start.theta.copy()
        self.ease = EASE
        # the scale of violations: scaling the dual point down by violation / radius would make it feasible
        radius = self.lam
        if not radius.all():
            held = np.zeros_like(self.lam)
            compiled.add_radii(self.stack.indptr, self.stack.indices, self.stack.radii, held)
            radius = np.where(self.lam > 0, self.lam, held)
        scores = problem.model.scores(self.theta, self.b)
        pull = np.abs(self.X.pull(parts.smooth_score_grad(scores)))
        self.radius = np.where(radius > 0, radius, float(pull.max()) or 1.0)
        self.widths = Widths(self._typical_weight(scores, pull))
        self.ridge = np.repeat(parts.ridge, parts.n_outputs)
        unpenalised = ((radius <= 0) & (self.ridge <= 0)).reshape(parts.shape).any(axis=1)
        self.whole = large_group(parts) is not None and not self.lam.any()
        self.inside: Ints = np.asarray(self.theta.any(axis=1) | unpenalised)
        self.scale = objective_scale(problem, objective)
        self.sub: Subproblem | None = None

    def _typical_weight(self, scores: Array, pull: Array) -> float:
        """The mean size of Newton steps in single weights."""
        curvature = float(np.mean(np.abs(column_curvature(self.parts, scores, 0))))
        self.second = second = curvature * self.parts.column_norms**2 + 2.0 * self.parts.ridge
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
        # along a regularization path the radii shrink, and features within that margin may be needed
        ratio = self.compiled.shrink(self.stack.indptr, self.stack.radii, q)
        self.margin = min(max(2.0 * (ratio - 1.0), MARGIN), MOST_MARGIN) if ratio > 1.0 + 1e-9 else 0.0
        return q

    def _flat(self, features: Ints) -> Ints:
        """The positions of the weights of some features in flat arrays."""
        k = self.parts.n_outputs
        return (features[:, None] * k + np.arange(k)).ravel()

    def improve(self, target: float) -> None:
        """Minimise over the working set, to about the relative gap ``target``."""
        features = np.flatnonzero(self.inside)
        if not len(features):
            return
        chosen, self.sub = self._flat(features), None  # free the memory of the old subproblem first
        norms = Restricted(self.stack, chosen, self.q, join_singles=self.parts.n_outputs == 1)
        self.sub = Subproblem(self.parts, self.X, features, self.lam[chosen], norms)
        start = self.theta[features].ravel(), self.b
        w, self.b, zeros = minimise(self.sub, *start, self.radius[chosen], target, self.scale, self.widths, self.ease)
        self.theta, self.rounded = self.sub.embedded(w), self.sub.embedded(zeros)

    def repair(self, aim: float, prove: bool = True, sweeps: int = 1) -> tuple[float, Array]:
        """Find a dual point for the rounded weights; return the relative gap and the missing part of the pull.

        The missing part is the excess that no dual variable outside the working set can absorb. An excess that costs
        less than a tenth of the gap ``aim`` is ignored. Without ``prove``, the gap is not computed and returned as
        infinite.
        """
        parts, stack, compiled = self.parts, self.stack, self.compiled
        scores = parts.model.scores(self.rounded, self.b)
        if parts.model.intercept and prove:
            _, self.b, scores = refit(parts, self.rounded, self.b, scores, np.zeros((parts.shape[0], 0)))
        left = -self.X.pull(parts.smooth_score_grad(scores)) - parts.quadratic_grad(self.rounded)
        left = left.ravel()
        if self.sub is not None:
            self.sub.norms.distribute_multipliers(left, self.lam[self._flat(self.sub.features)], self.q)
        else:
            compiled.add_adjoint(stack.indices, self.q, left, -1.0)
        bound = self.lam + 0.05 * aim * self.radius
        missing = self._missing(left, bound, sweeps)
        if sweeps and 0 < np.count_nonzero(missing) < FEW_MISSING * parts.n_outputs * np.count_nonzero(self.inside):
            missing = self._missing(left, bound, SWEEPS)
        if prove and np.all(missing <= 10.0 * aim * self.radius):
            self._absorb(left, bound, aim)
        self.left = left
        return self._gap(scores, left) if prove else np.inf, missing

    def _sweep(self, left: Array, bound: Array, fixed: Ints, sweeps: int) -> None:
        groups = self.stack.indptr, self.stack.indices, self.stack.radii
        self.compiled.repair(*groups, self.q, left, bound, fixed, sweeps, HALVED)

    def _absorb(self, left: Array, bound: Array, aim: float) -> None:
        """Sweep over all groups until the remaining excess costs little."""
        none = np.zeros(len(left), dtype=np.uint8)
        last = np.inf
        for _ in range(SWEEPS):
            worst = float(np.max((np.abs(left) - self.lam) / self.radius, initial=0.0))
            if worst <= 0.3 * aim or worst > 0.8 * last or deadline.passed():
                break
            self._sweep(left, bound, none, 1)
            last = worst

    def _missing(self, left: Array, bound: Array, sweeps: int) -> Array:
        """The excess of ``left`` outside the working set that remains after some sweeps."""
        fixed = np.repeat(self.inside, self.parts.n_outputs).view(np.uint8)
        self._sweep(left, bound, fixed, sweeps)
        missing = np.maximum(np.abs(left) - bound, 0.0)
        missing[fixed != 0] = 0.0
        return missing

    def grow_beyond(self, margin: float) -> None:
        """Add the features that would be missing if the L1 strengths were smaller by a margin."""
        q, left = self.q.copy(), self.left.copy()
        self.grow(self._missing(left, (1.0 - margin) * self.lam, 2), 0.0)
        self.q = q

    def prove(self, aim: float) -> tuple[float, Array]:
        """:meth:`repair` for the weights with more zeros, or for the plain weights if the gap exceeds ``aim``."""
        plain = self.rounded
        self.rounded = self._with_more_zeros(aim)
        gap, missing = self.repair(aim)
        if gap > aim and self.rounded is not plain and not missing.any():
            self.rounded = plain
            gap, missing = self.repair(aim)
        return gap, missing

    def _with_more_zeros(self, aim: float) -> Array:
        """The weights with tiny ones set to zero, if the objective does not increase."""
        sizes = np.abs(self.rounded)
        largest, least = float(sizes.max()), float(np.min(sizes, where=sizes > 0, initial=np.inf))
        limit = None
        for part in ROUNDED:
            tiny = sizes <= part * largest
            if least > part * largest or self._rise(sizes, tiny) > 0.1 * aim * self.scale:
                continue
            limit = self._value(self.rounded) if limit is None else limit
            trial = np.where(tiny, 0.0, self.rounded)
            if self._value(trial) <= limit:
                return trial
        return self.rounded

    def _rise(self, sizes: Array, tiny: Ints) -> float:
        """An estimate of the increase of the objective over its minimum if tiny weights are set to zero."""
        return 0.5 * float(self.second @ np.sum(sizes**2, axis=1, where=tiny))

    def _gap(self, scores: Array, left: Array) -> float:
        """The gap proved by the dual point after it is scaled to be feasible."""
        parts, held = self.parts, self.ridge > 0
        excess = np.maximum(np.abs(left) - self.lam, 0.0)
        s = 1.0 / (1.0 + float(np.max(excess[~held] / self.radius[~held], initial=0.0)))
        points = tuple(piece.grad(piece.forward(scores)) for piece in parts.score_pieces)
        cost = ScoreDual(self.rounded, scores, points, scores).cost(parts, s)
        cost += s**2 * parts.quadratic_value(self.rounded)
        cost += float(np.sum(excess[held] ** 2 / (4.0 * self.ridge[held])))
        objective = self._value(self.rounded, scores)
        self.scale = objective_scale(self.problem, objective)
        return (objective + cost) / self.scale

    def _value(self, theta: Array, scores: Array | None = None) -> float:
        """The objective."""
        parts, lam, w = self.parts, self.lam, theta.ravel()
        norms: Stack | Restricted = self.stack
        scores = parts.model.scores(theta, self.b) if scores is None else scores
        if self.sub is not None:  # all other weights are zero, and fewer groups remain
            norms, lam, w = self.sub.norms, self.sub.lam, theta[self.sub.features].ravel()
        value = sum(piece.value(scores) for piece in parts.score_pieces) + parts.quadratic_value(theta)
        value += sum(form.value(scores) for form in parts.score_forms) + float(lam @ np.abs(w))
        return float(value + self.compiled.norm_sum(norms.indptr, norms.indices, norms.radii, w))

    def grow(self, missing: Array, least: float) -> float:
        """Add the features with the largest missing parts to the working set; return their share of it."""
        shape = self.parts.shape
        worst = (missing / self.radius).reshape(shape).max(axis=1)
        candidates = np.flatnonzero(worst > least)
        design = self.parts.model.design
        least_growth = LEAST_GROWTH if sp.issparse(design) else LEAST_DENSE
        room = max(least_growth + shape[0] // 30, int(self.inside.sum()))
        if not sp.issparse(design) and np.median(worst) > STRONG:
            self.widths.set_strong()
        elif len(candidates) > room and design.size > SMALL and not self.whole:
            # rank by the decrease that a Newton step in the single weight would bring
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
    """Repeat: minimise over the working set, repair the dual point, add features."""
    nothing = Iterate(np.zeros_like(start.theta), np.zeros_like(start.b))
    objective, limit = problem.value_at(start.theta, start.b), problem.value_at(nothing.theta, nothing.b)
    if objective > limit:
        start, objective = nothing, limit  # Newton's method converges slowly from many weights that are far too large
    state = _State(problem, start, objective)
    aim, fine, joined = tol, tol, 0.0  # the target gap, that of the subproblem, and the share of new features
    if state.margin:
        state.repair(aim, prove=False, sweeps=0)
        state.grow_beyond(state.margin)
    elif not state.inside.any():
        joined = state.grow(state.repair(aim, prove=False)[1], 0.0)
    while True:
        target = ROUGH if joined > MANY else max(MIDDLE, fine) if joined > FEW else fine
        state.improve(target)
        gap, missing = state.repair(aim, prove=False) if joined > MANY else state.prove(aim)
        joined = state.grow(missing, 0.01 * aim)
        good = bool(gap <= aim)
        yield state.iterate(exhausted=fine < FINEST, promising=good)
        state.q = state.q.copy()  # the arrays of the iterate must not change
        if good:
            aim = fine = 0.1 * aim  # the certificate of the driver did not confirm the gap
        elif target <= fine and joined == 0.0:
            if state.ease > NO_EASE:
                state.ease = NO_EASE
            else:
                fine *= 0.1
        elif joined <= MANY:
            state.grow_beyond(MARGIN)


SOLVER = Solver("group_newton", run, NEEDS, COPIED, fastest_if=(ManyDataOrSmallGroups(),))
