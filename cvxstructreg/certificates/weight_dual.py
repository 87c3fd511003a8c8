"""Dual points of the terms on the weights that match given dual points of the score terms.

With the pull X'u of the score terms, the dual points of the terms on the weights must add up to -X'u. Quadratic terms
contribute their gradient. The rest, ``left``, is distributed over the separable part and the pieces. What they cannot
absorb is the *excess*. A ridge can absorb any excess, at a cost. An excess on features without a ridge is *stuck*: it
must be removed by better dual points of the pieces, or by scaling all dual points down.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from cvxstructreg.certificates.absorbed_pull import AbsorbedPull, pull_of
from cvxstructreg.certificates.balanced_points import NEGLIGIBLE, balanced_points
from cvxstructreg.certificates.directions.free_directions import free_reach
from cvxstructreg.certificates.dual_point import NO_PROOF, Proof, best, dual_of
from cvxstructreg.certificates.l1_dual import JUST_INSIDE
from cvxstructreg.certificates.piece_noise import added_sizes
from cvxstructreg.certificates.quadratic_conjugate import excess_cost
from cvxstructreg.certificates.score_dual import ScoreDual, cost_of, dual_point, largest_factor, score_unit
from cvxstructreg.certificates.shifted_scores import shifted, stepped
from cvxstructreg.certificates.spreading import spreading
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.forms.row_selection import COMPILE_FROM, picks_rows, touch_once
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.momentum import Momentum
from cvxstructreg.numerics.round_off import REACH, UNIT
from cvxstructreg.numerics.semidefinite_solve import solve_diagonal
from cvxstructreg.runtime import deadline

#: Dual points keyed by term number.
Dual = Mapping[int, Array]
#: An objective, and a relative gap that is small enough.
Known = tuple[float, float]
#: The value of the quadratic terms on the weights at a point, and their gradient.
Quadratic = tuple[float, Array]

#: Sweeps over blocks between two checks of the excess.
SWEEPS_AT_ONCE = 5
#: Sweeps that leave more than this part of the excess are the last ones.
SLOW = 0.9
#: Up to this many entries of the dual points, projections are tried after the sweeps.
SMALL_STACK = 2_000
#: Projections end when CHECK_EVERY steps leave more than the part STALLED of the excess. Spreading the excess is tried
#: after SPREAD_EVERY steps.
CHECK_EVERY, STALLED, SPREAD_EVERY = 100, 0.99, 20
#: An excess of up to this many times the round-off is dropped, and its effect is subtracted from the bound.
DROPPED = 30.0


class WeightDual:
    """The search for dual points of the terms on the weights, and the bound that they prove."""

    def __init__(
        self, parts: NormalForm, start: ScoreDual, dual: Dual, sweeps: int, known: Known, quadratic: Quadratic
    ) -> None:
        self.parts, self.start, self.known = parts, start, known
        self.unscaled: tuple[Array, tuple[Array, Array, float]] | None = None  # the last result of _excess for s = 1
        self.reach: Array | None = None  # made when needed
        self.quadratic, self.gradient = quadratic
        self.ridged = parts.ridge[:, None] > 0
        self.any_ridged = bool(parts.weight_forms) and bool(self.ridged.any())
        pull, self.exact = pull_of(parts, start)
        self.left = -pull - self.gradient  # to be absorbed by the separable part and the pieces
        self.pull = pull
        self.unit = score_unit(start, known[0])
        sizes = start.norms() + start.error / UNIT
        self.noise = UNIT * parts.column_norms[:, None] * sizes  # the round-off in the pull
        for scaled in parts.weight_forms:  # and in the gradients of quadratic terms
            self.noise += scaled.grad_noise(start.theta)
        if parts.weight_pieces:
            self.enough = self._enough(*known)  # an excess, relative to the L1 strengths
            self.payable = self.enough * abs(known[0])  # the cost of an excess that ridges take
        self.points = self._first_points(dual)
        self.taken = self._sum(self.points)
        if self.points:  # and in the part absorbed by the pieces
            self.noise = self.noise + UNIT * added_sizes(parts, self.points)
        self.round_off = start.round_off(parts) + float(np.vdot(self.noise, np.abs(start.theta)))
        # sweeps are expensive on many groups; a caller with a dual point has already done them
        self.large = sum(q.size for q in self.points) >= COMPILE_FROM
        given = all(piece.number in dual for piece in parts.weight_pieces)
        if self.points and self._matters(self._excess(1.0, self.taken)[1]) and not self._is_proved():
            self._search(1 if self.large and given else sweeps)

    def _enough(self, objective: float, tol: float) -> float:
        """The part of the objective that an excess may cost: a tenth of the gap, or the rest of tol."""
        gap = objective + self.quadratic + self.start.cost(self.parts)  # for a dual point without excess
        part = gap / abs(objective) if np.isfinite(gap) and objective else 0.0
        return max(NEGLIGIBLE, 0.1 * tol, 0.1 * part, 0.9 * tol - part)

    def _is_proved(self) -> bool:
        """Whether these dual points, scaled down, prove the tolerance, so that nothing is left to gain."""
        objective, tol = self.known
        proof = self._scaled_down(self.points, self.taken, self._stuck(self.taken)) if tol > 0.0 else NO_PROOF
        return objective - proof.bound <= tol * abs(objective)

    def _first_points(self, dual: Dual) -> list[Array]:
        """The given dual points, or subgradients; a norm that is the only term beside ridges takes all that is left."""
        pieces = self.parts.weight_pieces
        if len(pieces) == 1 and pieces[0].K is None and self.parts.separable is None and self._all_norms():
            return [self._nearest(pieces[0])]
        return [dual_point(piece, self.start.theta, dual.get(piece.number)) for piece in pieces]

    def _nearest(self, piece: Piece) -> Array:
        """A dual point of the only piece near ``left``: scaled into the dual ball if that is good enough."""
        size = float(piece.atom.dual_norm(self.left)) / piece.scale
        if size <= 1.0:
            return self.left
        scaled = self.left * ((1.0 - JUST_INSIDE) / size)
        if np.isfinite(size) and not self._matters(self._excess(1.0, scaled)[1]):
            return scaled
        return piece.prox_conj(self.left, 1.0)[0]

    def _sum(self, points: list[Array]) -> Array:
        """sum_t K_t'q_t."""
        pairs = zip(self.parts.weight_pieces, points, strict=True)
        return sum((piece.adjoint(q) for piece, q in pairs), np.zeros_like(self.left))

    def best_proof(self) -> Proof:
        """The best bound over all ways to make the dual points feasible."""
        stuck = self._stuck(self.taken)
        proofs = [self._scaled_down(self.points, self.taken, stuck)]
        if self.points and stuck.any():
            spread = self._spread(stuck) if self._matters(stuck) and not self.large else None
            if spread is not None:
                taken = self._sum(spread)
                proofs.append(self._scaled_down(spread, taken, self._stuck(taken)))
        quadratic_only = not self.points and self.parts.separable is None
        if quadratic_only and not (self.parts.is_diagonal and bool(self.ridged.all())):  # there the first is exact
            proofs.append(self._exact_quadratic())
        objective, tol = self.known
        too_large = quadratic_only and stuck.any() and self.parts.model.n_weights > DENSE_LIMIT
        if (
            self.start.is_here
            and (too_large or not self._all_norms())
            and objective - best(*proofs).bound > tol * abs(objective)
        ):
            points = None if stuck.any() else stepped(self.parts, self.start.theta, self.left)
            proofs.append(self._shifted(points or self.points))
        return best(*proofs)

    def _excess(self, s: float, taken: Array) -> tuple[Array, Array, float]:
        """The part that the separable part absorbs, the excess, and the cost of dropped round-off, all for a scale s.

        An excess that is only round-off is dropped on features without a ridge. The last number is the possible effect
        on the bound.
        """
        if self.unscaled is not None and self.unscaled[0] is taken and s == 1.0:
            return self.unscaled[1]
        left = self.left - taken if self.parts.weight_pieces else self.left
        left = left if s == 1.0 else s * left
        absorbed = self.parts.separable.absorb(left) if self.parts.separable is not None else np.zeros_like(left)
        excess = left - absorbed
        dropped = 0.0
        entries = excess.reshape(-1)
        where = (np.where(self.ridged, 0.0, excess).reshape(-1) if self.any_ridged else entries).nonzero()[0]
        at = where[np.abs(entries[where]) <= DROPPED * self.noise.reshape(-1)[where]]
        if at.size:
            dropped = float(np.vdot(np.abs(entries[at]), self._reach(at)))
            entries[at] = 0.0
        return absorbed, excess, dropped

    def _reach(self, where: Any) -> Array:
        """An assumed bound on these weights at the optimum, which are numbered row by row."""
        if self.reach is None:
            theta, norms = self.start.theta, self.parts.column_norms
            unit = np.divide(self.unit, norms, out=np.zeros_like(norms), where=norms > 0)
            unit = np.maximum(unit, self.unit * free_reach(self.parts, theta))
            self.reach = REACH * np.maximum(np.abs(theta), unit[:, None]).reshape(-1)
        return np.asarray(self.reach[where])

    def _stuck(self, taken: Array) -> Array:
        """The excess on features without a ridge."""
        self.unscaled = (taken, self._excess(1.0, taken))
        excess = self.unscaled[1][1]
        return np.where(self.ridged, 0.0, excess) if self.any_ridged else excess

    def _proof(self, s: float, points: list[Array], taken: Array) -> Proof:
        """The dual objective with all dual points scaled by s; -inf if infeasible."""
        absorbed, excess, dropped = self._excess(s, taken)
        cost = s**2 * self.quadratic
        size = cost + dropped / UNIT
        if excess.any():
            if not self.any_ridged or np.any((excess != 0) & ~self.ridged):
                return NO_PROOF
            # conjugate of the quadratic part at 2M(s theta) + excess
            linear, square = s * float(np.vdot(self.start.theta, excess)), excess_cost(self.parts, excess)
            cost += linear + square
            size += abs(linear) + square
        if self.parts.separable is not None and self.parts.separable.bounded:  # the conjugate of L1 is zero
            taken_by_bounds = self.parts.separable.conj(absorbed)
            cost, size = cost + taken_by_bounds, size + abs(taken_by_bounds)
        for piece, q in zip(self.parts.weight_pieces, points, strict=True):
            conj = cost_of(piece, q, s)
            cost, size = cost + conj, size + abs(conj)
        scores = self.start.cost(self.parts, s)
        size += abs(scores)
        value = -cost - scores
        bound = value - UNIT * size - self.round_off - self._paid_by_ridge(excess)
        separable = None if self.parts.separable is None else self._absorbed(absorbed, s)
        return Proof(bound, dual_of(self.parts, self.start, value, s, points, separable))

    def _absorbed(self, absorbed: Array, s: float) -> Array | AbsorbedPull:
        return absorbed if self.exact else AbsorbedPull(self.parts, self.start.total, s)

    def _paid_by_ridge(self, excess: Array) -> float:
        """The largest cost of the round-off on features with a ridge."""
        if not self.any_ridged:
            return 0.0
        held = self.ridged[:, 0]
        ridge, noise, excess = self.parts.ridge[held][:, None], self.noise[held], np.abs(excess[held])
        return 0.25 * float(np.sum(noise * (2.0 * excess + noise) / ridge))

    def _scaled_down(self, points: list[Array], taken: Array, stuck: Array) -> Proof:
        """The bound from all dual points times the largest feasible s <= 1, given the excess ``stuck``."""
        s = 1.0
        for piece, q in zip(self.parts.weight_pieces, points, strict=True):
            if piece.atom.can("dual_norm"):
                s = min(s, 1.0 / max(1.0, piece.atom.dual_norm(q) / piece.scale))
            elif cost_of(piece, q, s) == np.inf:
                s = largest_factor(piece, q, s)
        if stuck.any():
            if self.parts.separable is None:
                return NO_PROOF
            where = stuck.nonzero()
            radius = self.parts.separable.weights_at(where, stuck.shape)
            # |left| = radius + |excess| on these features, and scaling must reduce it to the radius
            s = min(s, float((radius / (radius + np.abs(stuck[where]))).min()))
        s = s if s == 1.0 else s * (1.0 - JUST_INSIDE)
        return self._proof(s, points, taken) if s > 0 else NO_PROOF

    def _shifted(self, points: list[Array]) -> Proof:
        """The bound with the dual points of the losses moved to match those of the weights."""
        taken = self._sum(points)
        found = shifted(self.parts, self.start, self._stuck(taken))
        if found is None:
            return NO_PROOF
        other = copy(self)
        other.start, other.unscaled, other.reach = found, None, None
        other.pull = self.parts.model.adjoint(found.total)
        other.left = -other.pull - self.gradient
        sizes = np.linalg.norm(found.total - self.start.total, axis=0)
        other.noise = self.noise + UNIT * self.parts.column_norms[:, None] * sizes
        other.round_off = found.round_off(self.parts) + float(np.vdot(other.noise, np.abs(found.theta)))
        return other._scaled_down(points, taken, other._stuck(taken))

    def _spread(self, stuck: Array) -> list[Array] | None:
        """Dual points of the pieces that absorb the excess: q + K S^+ excess with S = sum K'K."""
        solve = spreading(self.parts)
        if solve is None:
            return None
        share = solve(stuck)
        return [q + piece.forward(share) for piece, q in zip(self.parts.weight_pieces, self.points, strict=True)]

    def _spread_enough(self) -> bool:
        """Spread the excess over the pieces, if the bound is then good enough."""
        simple = not self.large and self.parts.separable is None and self._all_norms()
        stuck = self._stuck(self._sum(self.points)) if simple else None
        spread = None if stuck is None or not stuck.any() else self._spread(stuck)
        if spread is None:
            return False
        taken, (objective, tol) = self._sum(spread), self.known
        bound = self._scaled_down(spread, taken, self._stuck(taken)).bound
        if objective - bound > max(tol, self.enough) * abs(objective):
            return False
        self.points, self.taken = spread, taken
        return True

    def _search(self, sweeps: int) -> None:
        """Improve the dual points of the pieces: by a closed form, sweeps over blocks, or gradient steps."""
        if self._is_disjoint():
            part = self.parts.separable
            beyond = self.left if part is None else self.left - part.absorb(self.left)
            share = solve_diagonal(self.parts.piece_diagonal, beyond)
            self.points = [piece.prox_conj(piece.forward(share), 1.0)[0] for piece in self.parts.weight_pieces]
        elif self._spread_enough() or self._sweep(sweeps):
            return
        elif self._all_norms():
            if not self._is_proved():
                self._project(sweeps)
        else:
            self.points = balanced_points(self.parts, self.start.theta, self.left, self.points, sweeps)
        self.taken = self._sum(self.points)

    def _all_norms(self) -> bool:
        return all(piece.atom.can("dual_norm") for piece in self.parts.weight_pieces)

    def _is_disjoint(self) -> bool:
        """Whether all pieces are norms of disjoint groups, so that the nearest dual points have a closed form."""
        part = self.parts.separable
        if not touch_once(self.parts.weight_pieces, self.parts.piece_diagonal) or (part is not None and part.bounded):
            return False
        return all(piece.atom.can("blocks") for piece in self.parts.weight_pieces)

    def _project(self, sweeps: int) -> None:
        """Accelerated projected gradient steps on 1/2 ||excess||^2 over the dual points."""
        pieces = self.parts.weight_pieces
        if len(pieces) == 1 and pieces[0].K is None and self.parts.separable is None:
            return  # the first point is the nearest one
        trial, momentum, best, last = self.points, Momentum(self.points), np.inf, np.inf
        for count in range(sweeps):
            if deadline.passed():
                return
            excess = self._excess(1.0, self._sum(trial))[1]
            size = float(np.linalg.norm(excess))
            if size < best:
                best, self.points = size, trial
            if not excess.any() or (count % SWEEPS_AT_ONCE == 0 and not self._matters(excess)):
                return
            norm = self.parts.piece_norm
            if count % CHECK_EVERY == 0:
                if best > STALLED * last:
                    return
                last = best
            if count and count % SPREAD_EVERY == 0 and self._spread_enough():
                return
            moved = [
                piece.prox_conj(q + piece.forward(excess) / norm, 1.0 / norm)[0]
                for piece, q in zip(pieces, trial, strict=True)
            ]
            ahead = zip(pieces, momentum.ahead(trial, moved), strict=True)
            trial = [piece.prox_conj(q, 1.0)[0] for piece, q in ahead]  # so that every trial point is feasible

    def _sweep(self, sweeps: int) -> bool:
        """Sweep over the blocks of the pieces, if all pieces support it; return whether the search is done."""
        pieces, part = self.parts.weight_pieces, self.parts.separable
        if part is not None and (np.isfinite(part.lower).any() or np.isfinite(part.upper).any()):
            return False
        if any(not p.atom.can("repair") or not picks_rows(p.K) for p in pieces):
            return False
        bound = np.zeros((1, 1)) if part is None else (1.0 + 0.5 * self.enough) * part.weights
        last = np.inf
        for _ in range(0, sweeps, SWEEPS_AT_ONCE):
            excess = self._excess(1.0, self.taken)[1]
            size = float(np.linalg.norm(excess))
            if not self._matters(excess) or deadline.passed():
                return True
            if size > SLOW * last:
                break
            last = size
            for number, piece in enumerate(pieces):
                others = [q for n, q in enumerate(self.points) if n != number]
                left = self.left - sum(
                    (p.adjoint(q) for p, q in zip((*pieces[:number], *pieces[number + 1 :]), others, strict=True)),
                    np.zeros_like(self.left),
                )
                q = self.points[number]
                self.points[number] = piece.atom.repair(
                    q, piece.K, left, bound, piece.scale, min(sweeps, SWEEPS_AT_ONCE)
                )
            self.taken = self._sum(self.points)
        disjoint = touch_once(self.parts.weight_pieces, self.parts.piece_diagonal)  # then nothing is better than sweeps
        return disjoint or sum(q.size for q in self.points) > SMALL_STACK

    def _matters(self, excess: Array) -> bool:
        """Whether the excess is too large to be scaled away or to be paid by a ridge; see ``enough``."""
        if self.any_ridged:
            paid = np.where(self.ridged, excess, 0.0)
            ridge = np.where(self.ridged, self.parts.ridge[:, None], 1.0)
            if abs(float(np.vdot(self.start.theta, paid))) + 0.25 * float(np.sum(paid**2 / ridge)) > self.payable:
                return True
        stuck = np.abs(np.where(self.ridged, 0.0, excess)) if self.any_ridged else np.abs(excess)
        weights = 0.0 if self.parts.separable is None else self.parts.separable.weights
        return bool(np.any(stuck > self.enough * np.broadcast_to(weights, stuck.shape)))

    def _exact_quadratic(self) -> Proof:
        """The bound with quadratic terms only: their exact conjugate is 1/4 g'M^+ g if g is in the range of M."""
        spectrum = self.parts.quadratic_spectrum
        if spectrum is None:
            return NO_PROOF
        values, vectors = spectrum
        coordinates = vectors.T @ -self.pull
        # the round-off of eigenvalues is relative to the largest, but they are at least the ridge
        values = np.maximum(values - len(values) * np.finfo(float).eps * max(values[-1], 0.0), self.parts.ridge.min())
        kept = values > 0.0
        noise = float(np.linalg.norm(self.noise)) + UNIT * float(np.linalg.norm(self.pull))
        rest = float(np.linalg.norm(coordinates[~kept]))
        if rest > DROPPED * noise:
            return NO_PROOF
        dropped = rest * float(np.linalg.norm(self._reach(np.arange(self.pull.size))))
        sizes = np.abs(coordinates[kept])
        squares = float(np.sum((sizes**2 + noise * (2.0 * sizes + noise)) / (4.0 * values[kept, None])))
        cost = self.start.cost(self.parts)
        value = -squares - cost
        bound = value - UNIT * (squares + abs(cost)) - dropped - self.round_off
        return Proof(bound, dual_of(self.parts, self.start, value))
