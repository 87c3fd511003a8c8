"""What dual points of the score terms leave on the weights, shared out among the terms of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.certificates.quadratic_conjugate import excess_cost
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.forms.row_selection import COMPILE_FROM
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.momentum import Momentum
from cvxstructreg.numerics.round_off import REACH, UNIT
from cvxstructreg.runtime import deadline

#: Dual points by the number of their term; an objective and a relative gap that is enough; the quadratic terms of the
#: weights at a point, and their gradient there.
Dual = Mapping[int, Array]
Known = tuple[float, float]
Quadratic = tuple[float, Array]

#: Sweeps over blocks between two looks at what they achieved; up to this many numbers other ways are tried too; an
#: excess that is not worth a search, relative to the absolute values.
SWEEPS_AT_ONCE, SMALL_STACK, NEGLIGIBLE = 5, 2_000, 1e-10
#: Projections end when so many steps leave more than this part of the excess.
LOOK_EVERY, STALLED = 100, 0.99
#: An excess of up to so many times the round-off is dropped, and charged.
DROPPED = 30.0
#: Larger scores than this are not taken for a unit of scores: then the losses are flat.
LARGEST = 1e100
#: The ridge that stands in for a missing one while dual points are looked for, relative to that of the weights.
SMALL_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class ScoreDual:
    """Dual points of the terms of the scores, in balance, and the point (theta, scores) they were taken at."""

    theta: Array
    scores: Array
    points: tuple[Array, ...]  # one for each score piece
    total: Array  # n x k: the derivative of the score terms by the scores
    error: float = 0.0  # the norm of the round-off in the total, where several terms add up to it
    imbalance: float = 0.0  # what the round-off in the balance of intercepts and free directions may cost

    def cost(self, parts: NormalForm, s: float = 1.0) -> float:
        """The conjugates of all score terms at s times the dual point."""
        pieces = sum(piece.conj(s * u) for piece, u in zip(parts.score_pieces, self.points, strict=True))
        # a quadratic term was taken at its gradient, where the conjugate is the value
        return float(pieces + s**2 * sum(scaled.value(self.scores) for scaled in parts.score_forms))

    def round_off(self, parts: NormalForm) -> float:
        """What round-off may have changed in the cost: conjugates are differences of <u, z> and values."""
        products = 0.0
        for piece, u in zip(parts.score_pieces, self.points, strict=True):
            z = piece.forward(self.scores)
            products += float(np.vdot(np.abs(u), np.abs(z)))
        return UNIT * products + self.error * float(np.linalg.norm(self.scores)) + self.imbalance


def score_unit(total: Array, objective: float) -> float:
    """A score that changes the objective by about its own size, from the derivative by the scores."""
    weight = float(np.abs(total).sum())
    return abs(objective) / weight if weight > abs(objective) / LARGEST else 0.0


def dual_point(piece: Piece, x: Array, u: Array | None) -> Array:
    """A point in the domain of the conjugate of the piece, near u and near a subgradient at z = K x.

    A given u in the domain is kept. Else one prox step from u + tau z: an optimal pair (z, u) stays where it is,
    whatever tau. The ratio of dual to primal scale is taken from x and not from z, which may be zero up to the
    accuracy of a solver.
    """
    if u is not None and _cost(piece, u, 1.0) < np.inf:
        return u if piece.atom.can("dual_norm") else piece.into_domain(u)
    z = piece.forward(x)
    if u is None and piece.is_smooth:
        return piece.grad(z)
    size = float(np.linalg.norm(x)) or 1.0
    if u is None:
        tau = 1e4 * piece.scale / size
        return piece.into_domain(piece.prox_conj(tau * z, tau)[0])
    tau = (float(np.linalg.norm(u)) or piece.scale) / size
    return piece.into_domain(piece.prox_conj(u + tau * z, tau)[0])


def _cost(piece: Piece, u: Array, t: float) -> float:
    """(scale * atom)*(t u), without a copy of u for norms: they are homogeneous."""
    if piece.atom.can("conj"):
        return piece.conj(u if t == 1.0 else t * u)
    return 0.0 if t * piece.atom.dual_norm(u) <= (1.0 + UNIT) * piece.scale else np.inf


class WeightDual:
    """Shares what the score terms leave on the weights out among the terms of the weights."""

    def __init__(
        self, parts: NormalForm, start: ScoreDual, dual: Dual, sweeps: int, known: Known, quadratic: Quadratic
    ) -> None:
        self.parts, self.start = parts, start
        self.quadratic, self.gradient = quadratic
        self.ridged = parts.ridge[:, None] > 0
        self.any_ridged = bool(self.ridged.any())
        pull = parts.model.adjoint(start.total)
        self.left = -pull - self.gradient  # what separable part and pieces have to take
        self.pull = pull
        self.unit = score_unit(start.total, known[0])
        sizes = np.linalg.norm(start.total, axis=0) + start.error / UNIT
        self.noise = UNIT * parts.column_norms[:, None] * sizes  # the round-off in the pull
        for scaled in parts.weight_forms:  # and in the gradients of quadratic terms
            self.noise += scaled.grad_noise(start.theta)
        self.points = [dual_point(piece, start.theta, dual.get(piece.number)) for piece in parts.weight_pieces]
        self.taken = self._sum(self.points)
        if self.points:  # and in what the pieces take
            size = float(np.sqrt(sum(float(np.vdot(q, q)) for q in self.points)))
            self.noise = self.noise + (UNIT * size) * parts.piece_roots[:, None]
        self.round_off = start.round_off(parts) + float(np.vdot(self.noise, np.abs(start.theta)))
        # sweeps are expensive on many groups; a caller with a dual point has already done them
        self.large = sum(q.size for q in self.points) >= COMPILE_FROM
        given = all(piece.number in dual for piece in parts.weight_pieces)
        if self.points:
            self.enough = self._enough(*known)
            self._search(1 if self.large and given else sweeps)

    def _enough(self, objective: float, tol: float) -> float:
        """An excess, relative to the absolute values, to be scaled away: a tenth of the gap, or the rest of tol."""
        gap = objective + self.quadratic + self.start.cost(self.parts)  # of a dual point without excess
        part = gap / abs(objective) if np.isfinite(gap) and objective else 0.0
        return max(NEGLIGIBLE, 0.1 * tol, 0.1 * part, 0.9 * tol - part)

    def _sum(self, points: list[Array]) -> Array:
        """sum_t K_t'q_t."""
        pairs = zip(self.parts.weight_pieces, points, strict=True)
        return sum((piece.adjoint(q) for piece, q in pairs), np.zeros_like(self.left))

    def best_bound(self) -> float:
        """The best of the ways to make the point feasible."""
        stuck = self._stuck(self.taken)
        bounds = [self._scaled_down(self.points, self.taken, stuck)]
        if self.points and stuck.any():
            spread = self._spread(stuck) if self._matters(stuck) and not self.large else None
            if spread is not None:
                taken = self._sum(spread)
                bounds.append(self._scaled_down(spread, taken, self._stuck(taken)))
        if not self.points and self.parts.separable is None:
            bounds.append(self._exact_quadratic())
        return max(bounds)

    def _excess(self, s: float, taken: Array) -> tuple[Array, Array, float]:
        """What is left for the separable part, what of it the separable part cannot take, and what was dropped.

        All times s. An excess that is nothing but round-off is dropped where it could not be paid for; the last number
        is what that may change in the bound.
        """
        left = s * (self.left - taken) if self.points else s * self.left
        absorbed = self.parts.separable.absorb(left) if self.parts.separable is not None else np.zeros_like(left)
        excess = left - absorbed
        dropped = 0.0
        where = np.nonzero(excess if not self.any_ridged else np.where(self.ridged, 0.0, excess))
        if where[0].size:
            small = np.abs(excess[where]) <= DROPPED * self.noise[where]
            at = where[0][small], where[1][small]
            dropped = float(np.vdot(np.abs(excess[at]), self._reach(at)))
            excess[at] = 0.0
        return absorbed, excess, dropped

    def _reach(self, where: Any) -> Array:
        """How far these weights may be from zero at the optimum."""
        norms = self.parts.column_norms[where[0]]
        unit = np.divide(self.unit, norms, out=np.zeros_like(norms), where=norms > 0)
        return np.asarray(REACH * np.maximum(np.abs(self.start.theta[where]), unit))

    def _stuck(self, taken: Array) -> Array:
        """The excess on features without strongly convex term."""
        excess = self._excess(1.0, taken)[1]
        return np.where(self.ridged, 0.0, excess) if self.any_ridged else excess

    def _bound(self, s: float, points: list[Array], taken: Array) -> float:
        """The dual objective with all dual points scaled by s; -inf if infeasible."""
        absorbed, excess, dropped = self._excess(s, taken)
        cost = s**2 * self.quadratic
        size = cost + dropped / UNIT
        if excess.any():
            if not self.any_ridged or np.any((excess != 0) & ~self.ridged):
                return -np.inf
            # conjugate of the quadratic part at 2M(s theta) + excess
            linear, square = s * float(np.vdot(self.start.theta, excess)), excess_cost(self.parts, excess)
            cost += linear + square
            size += abs(linear) + square
        if self.parts.separable is not None and self.parts.separable.bounded:  # absolute values take it for nothing
            taken_by_bounds = self.parts.separable.conj(absorbed)
            cost, size = cost + taken_by_bounds, size + abs(taken_by_bounds)
        for piece, q in zip(self.parts.weight_pieces, points, strict=True):
            conj = _cost(piece, q, s)
            cost, size = cost + conj, size + abs(conj)
        scores = self.start.cost(self.parts, s)
        size += abs(scores)
        return -cost - scores - UNIT * size - self.round_off - self._paid_by_ridge(excess)

    def _paid_by_ridge(self, excess: Array) -> float:
        """What the ridge pays at most for the round-off in what is left."""
        if not self.any_ridged:
            return 0.0
        held = self.ridged[:, 0]
        ridge, noise, excess = self.parts.ridge[held][:, None], self.noise[held], np.abs(excess[held])
        return 0.25 * float(np.sum(noise * (2.0 * excess + noise) / ridge))

    def _scaled_down(self, points: list[Array], taken: Array, stuck: Array) -> float:
        """All dual points times the largest s <= 1 that makes them feasible, where ``stuck`` is too much."""
        s = 1.0
        for piece, q in zip(self.parts.weight_pieces, points, strict=True):
            if piece.atom.can("dual_norm"):
                s = min(s, 1.0 / max(1.0, piece.atom.dual_norm(q) / piece.scale))
            elif _cost(piece, q, s) == np.inf:
                s = _largest_factor(piece, q, s)
        if stuck.any():
            if self.parts.separable is None:
                return -np.inf
            where = np.nonzero(stuck)
            radius = np.broadcast_to(self.parts.separable.weights, stuck.shape)[where]
            # left = radius + |excess| on these features, and scaling must bring it down to the radius
            s = min(s, float(np.min(radius / (radius + np.abs(stuck[where])))))
        s = s if s == 1.0 else s * (1.0 - 1e-15)
        return self._bound(s, points, taken) if s > 0 else -np.inf

    def _spread(self, stuck: Array) -> list[Array] | None:
        """Dual points of the pieces that take over the excess: q += K S^+ excess with S = sum K'K."""
        parts = self.parts
        if not parts.weight_pieces:
            return None
        diagonal = parts.piece_diagonal
        if diagonal is not None:
            share = np.divide(stuck, diagonal[:, None], out=np.zeros_like(stuck), where=diagonal[:, None] > 0)
        elif parts.model.n_weights <= DENSE_LIMIT:
            share = parts.piece_inverse @ stuck
        else:
            return None
        return [q + piece.forward(share) for piece, q in zip(parts.weight_pieces, self.points, strict=True)]

    def _search(self, sweeps: int) -> None:
        """Sweeps over blocks, or accelerated projected gradient steps on 1/2 ||excess||^2 over the dual points."""
        if self._picked_once():
            part = self.parts.separable
            beyond = self.left if part is None else self.left - part.absorb(self.left)
            self.points = [piece.prox_conj(piece.forward(beyond), 1.0)[0] for piece in self.parts.weight_pieces]
        elif self._swept(sweeps):
            return
        elif all(piece.atom.can("dual_norm") for piece in self.parts.weight_pieces):
            self._project(sweeps)
        else:
            self._balance(sweeps)
        self.taken = self._sum(self.points)

    def _picked_once(self) -> bool:
        """Whether all pieces are norms of disjoint groups: then the nearest points are known."""
        part, diagonal = self.parts.separable, self.parts.piece_diagonal
        if diagonal is None or diagonal.max(initial=0.0) > 1.0 or (part is not None and part.bounded):
            return False
        return all(piece.atom.can("blocks") for piece in self.parts.weight_pieces)

    def _project(self, sweeps: int) -> None:
        pieces = self.parts.weight_pieces
        if len(pieces) == 1 and pieces[0].K is None and self.parts.separable is None:
            self.points = [pieces[0].prox_conj(self.left, 1.0)[0]]  # the nearest point, in a single step
            return
        trial, momentum, best, norm = self.points, Momentum(self.points), np.inf, self.parts.piece_norm
        last = np.inf
        for count in range(sweeps):
            if deadline.passed():
                return
            excess = self._excess(1.0, self._sum(trial))[1]
            size = float(np.linalg.norm(excess))
            if size < best:
                best, self.points = size, trial
            if not excess.any() or (count % SWEEPS_AT_ONCE == 0 and not self._matters(excess)):
                return
            if count % LOOK_EVERY == 0:
                if best > STALLED * last:
                    return
                last = best
            moved = [
                piece.prox_conj(q + piece.forward(excess) / norm, 1.0 / norm)[0]
                for piece, q in zip(pieces, trial, strict=True)
            ]
            trial = [_inside(piece, q) for piece, q in zip(pieces, momentum.ahead(trial, moved), strict=True)]

    def _balance(self, sweeps: int) -> None:
        """Accelerated proximal gradient steps on the cost of the dual points and of the excess they leave.

        The conjugate of a piece that is no norm has a cost of its own, which is weighed against that of the excess x:
        <theta, x> + ||x||^2 / (4 ridge), where absolute values may take any part of x that is within their weights.
        """
        pieces, theta = self.parts.weight_pieces, self.start.theta
        if len(pieces) == 1 and pieces[0].K is None and _cost(pieces[0], self.left, 1.0) < np.inf:
            self.points = [self.left]
            return
        ridge = self.parts.ridge
        least = float(ridge.min())
        if least <= 0.0:  # a small ridge in its place: what is then left over is shared out or scaled away later
            least = SMALL_RIDGE * float(np.linalg.norm(self.left)) / (float(np.linalg.norm(theta)) or 1.0)
        step = 2.0 * least / self.parts.piece_norm
        weights = 0.0 if self.parts.separable is None else self.parts.separable.weights
        trial, momentum = self.points, Momentum(self.points)
        for _ in range(sweeps):
            if deadline.passed():
                break
            left = self.left - self._sum(trial)
            excess = np.clip(-2.0 * least * theta, left - weights, left + weights)
            slope = theta + excess / (2.0 * least)
            moved = [
                piece.prox_conj(q + step * piece.forward(slope), step)[0]
                for piece, q in zip(pieces, trial, strict=True)
            ]
            change = sum(float(np.sum((m - t) ** 2)) for m, t in zip(moved, trial, strict=True))
            trial = momentum.ahead(trial, moved)
            if change <= (NEGLIGIBLE * float(np.linalg.norm(self.left))) ** 2:
                break
        self.points = [piece.into_domain(q) for piece, q in zip(pieces, momentum.points, strict=True)]

    def _swept(self, sweeps: int) -> bool:
        """Sweeps over the blocks of the pieces, where they all offer them; whether nothing else needs to be tried."""
        pieces, part = self.parts.weight_pieces, self.parts.separable
        if part is not None and (np.isfinite(part.lower).any() or np.isfinite(part.upper).any()):
            return False
        if self.parts.piece_diagonal is None or any(not p.atom.can("repair") or p.K is None for p in pieces):
            return False
        bound = np.zeros((1, 1)) if part is None else (1.0 + 0.5 * self.enough) * part.weights
        last = np.inf
        for _ in range(0, sweeps, SWEEPS_AT_ONCE):
            excess = self._excess(1.0, self.taken)[1]
            size = float(np.linalg.norm(excess))
            if not self._matters(excess) or deadline.passed():
                return True
            if size > 0.9 * last:
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
        disjoint = self.parts.piece_diagonal.max(initial=0.0) <= 1.0  # then sweeps are as good as anything
        return bool(disjoint) or sum(q.size for q in self.points) > SMALL_STACK

    def _matters(self, excess: Array) -> bool:
        """Whether scaling the excess away costs more than is ``enough``."""
        stuck = np.abs(np.where(self.ridged, 0.0, excess))
        if not stuck.any():
            return bool(excess.any())
        weights = 0.0 if self.parts.separable is None else self.parts.separable.weights
        return bool(np.any(stuck > self.enough * np.broadcast_to(weights, stuck.shape)))

    def _exact_quadratic(self) -> float:
        """With quadratic terms only: the exact conjugate 1/4 g'M^+ g, if g is in the range of M."""
        spectrum = self.parts.quadratic_spectrum
        if spectrum is None:
            return -np.inf
        values, vectors = spectrum
        coordinates = vectors.T @ -self.pull
        # eigenvalues are known up to round-off of the largest, but not below the ridge
        values = np.maximum(values - len(values) * np.finfo(float).eps * max(values[-1], 0.0), self.parts.ridge.min())
        kept = values > 0.0
        noise = float(np.linalg.norm(self.noise)) + UNIT * float(np.linalg.norm(self.pull))
        rest = float(np.linalg.norm(coordinates[~kept]))
        if rest > DROPPED * noise:
            return -np.inf
        everywhere = np.nonzero(np.ones(self.pull.shape, dtype=bool))
        dropped = rest * float(np.linalg.norm(self._reach(everywhere)))
        sizes = np.abs(coordinates[kept])
        squares = float(np.sum((sizes**2 + noise * (2.0 * sizes + noise)) / (4.0 * values[kept, None])))
        cost = self.start.cost(self.parts)
        return -squares - cost - UNIT * (squares + abs(cost)) - dropped - self.round_off


def _largest_factor(piece: Piece, q: Array, s: float) -> float:
    """The largest t <= s, up to a few digits, for which the conjugate is finite at t q; 0 if there is none."""
    low, high = 0.0, s
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _cost(piece, q, middle) < np.inf else (low, middle)
    return low


def _inside(piece: Piece, q: Array) -> Array:
    """An extrapolated point pulled back into the dual ball, so that every trial point is feasible."""
    return piece.prox_conj(q, 1.0)[0]
