"""What dual points of the score terms leave on the weights, shared out among the terms of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.core.atom import Array
from cvxstructreg.core.normal_form import NormalForm, Piece
from cvxstructreg.core.quadratic_conjugate import excess_cost
from cvxstructreg.core.quadratic_form import DENSE_LIMIT
from cvxstructreg.core.selection import COMPILE_FROM

#: Dual points by the number of their term; an objective and a relative gap that is enough; the quadratic terms of the
#: weights at a point, and their gradient there.
Dual = Mapping[int, Array]
Known = tuple[float, float]
Quadratic = tuple[float, Array]

#: Sweeps over blocks between two looks at what they achieved; up to this many numbers other ways are tried too; an
#: excess that is not worth a search, relative to the absolute values.
SWEEPS_AT_ONCE, SMALL_STACK, NEGLIGIBLE = 5, 2_000, 1e-10


@dataclass(frozen=True, eq=False)
class ScoreDual:
    """Dual points of the terms of the scores, in balance, and the point (theta, scores) they were taken at."""

    theta: Array
    scores: Array
    points: tuple[Array, ...]  # one for each score piece
    total: Array  # n x k: the derivative of the score terms by the scores

    def cost(self, parts: NormalForm, s: float = 1.0) -> float:
        """The conjugates of all score terms at s times the dual point."""
        pieces = sum(piece.conj(s * u) for piece, u in zip(parts.score_pieces, self.points, strict=True))
        # a quadratic term was taken at its gradient, where the conjugate is the value
        return float(pieces + s**2 * sum(scaled.value(self.scores) for scaled in parts.score_forms))


def dual_point(piece: Piece, x: Array, u: Array | None) -> Array:
    """A point in the domain of the conjugate of the piece, near u and near a subgradient at z = K x.

    A given u in the domain is kept. Else one prox step from u + tau z: an optimal pair (z, u) stays where it is,
    whatever tau. The ratio of dual to primal scale is taken from x and not from z, which may be zero up to the
    accuracy of a solver.
    """
    if u is not None and _cost(piece, u, 1.0) < np.inf:
        return u
    z = piece.forward(x)
    if u is None and piece.is_smooth:
        return piece.grad(z)
    size = float(np.linalg.norm(x)) or 1.0
    if u is None:
        tau = 1e4 * piece.scale / size
        return piece.prox_conj(tau * z, tau)[0]
    tau = (float(np.linalg.norm(u)) or piece.scale) / size
    return piece.prox_conj(u + tau * z, tau)[0]


def _cost(piece: Piece, u: Array, t: float) -> float:
    """(scale * atom)*(t u), without a copy of u for norms: they are homogeneous."""
    if piece.atom.can("conj"):
        return piece.conj(u if t == 1.0 else t * u)
    return 0.0 if t * piece.atom.dual_norm(u) <= (1.0 + 1e-12) * piece.scale else np.inf


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
        self.points = [dual_point(piece, start.theta, dual.get(piece.number)) for piece in parts.weight_pieces]
        self.taken = self._sum(self.points)
        # on many groups sweeps are dear, and who has a dual point has made them
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

    def _excess(self, s: float, taken: Array) -> tuple[Array, Array]:
        """What is left for the separable part, and what of it the separable part cannot take; all times s."""
        left = s * (self.left - taken) if self.points else s * self.left
        absorbed = self.parts.separable.absorb(left) if self.parts.separable is not None else np.zeros_like(left)
        excess = left - absorbed
        where = np.nonzero(excess)
        if where[0].size:
            excess[where] = np.where(np.abs(excess[where]) <= self._noise(where), 0.0, excess[where])
        return absorbed, excess

    def _noise(self, where: Any) -> Array:
        """The round-off in what is left, there."""
        size = self.parts.column_norms[where[0]] * np.linalg.norm(self.start.total, axis=0)[where[1]]
        return np.asarray(1e-13 * (size + np.abs(self.gradient[where])))

    def _stuck(self, taken: Array) -> Array:
        """The excess on features without strongly convex term."""
        excess = self._excess(1.0, taken)[1]
        return np.where(self.ridged, 0.0, excess) if self.any_ridged else excess

    def _bound(self, s: float, points: list[Array], taken: Array) -> float:
        """The dual objective with all dual points scaled by s; -inf if infeasible."""
        absorbed, excess = self._excess(s, taken)
        cost = s**2 * self.quadratic
        if excess.any():
            if not self.any_ridged or np.any((excess != 0) & ~self.ridged):
                return -np.inf
            # conjugate of the quadratic part at 2M(s theta) + excess
            cost += s * float(np.sum(self.start.theta * excess)) + excess_cost(self.parts, excess)
        if self.parts.separable is not None and self.parts.separable.bounded:  # absolute values take it for nothing
            cost += self.parts.separable.conj(absorbed)
        cost += sum(_cost(piece, q, s) for piece, q in zip(self.parts.weight_pieces, points, strict=True))
        return -cost - self.start.cost(self.parts, s)

    def _scaled_down(self, points: list[Array], taken: Array, stuck: Array) -> float:
        """All dual points times the largest s <= 1 that makes them feasible, where ``stuck`` is too much."""
        s = 1.0
        for piece, q in zip(self.parts.weight_pieces, points, strict=True):
            if piece.atom.can("dual_norm"):
                s = min(s, 1.0 / max(1.0, piece.atom.dual_norm(q) / piece.scale))
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
        else:
            self._project(sweeps)
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
        points, momentum, best, norm = self.points, 1.0, np.inf, self.parts.piece_norm
        trial = points
        for _ in range(sweeps):
            excess = self._excess(1.0, self._sum(trial))[1]
            size = float(np.linalg.norm(excess))
            if size < best:
                best, self.points = size, trial
            if not excess.any():
                return
            moved = [
                piece.prox_conj(q + piece.forward(excess) / norm, 1.0 / norm)[0]
                for piece, q in zip(pieces, trial, strict=True)
            ]
            uphill = sum(float(np.sum((t - m) * (m - q))) for t, m, q in zip(trial, moved, points, strict=True)) > 0
            momentum = 1.0 if uphill else momentum
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            trial = [m + ((momentum - 1.0) / following) * (m - q) for m, q in zip(moved, points, strict=True)]
            if any(piece.atom.can("dual_norm") for piece in pieces):
                trial = [_inside(piece, q) for piece, q in zip(pieces, trial, strict=True)]
            points, momentum = moved, following

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
            if not self._matters(excess):
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
        kept = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        everywhere = np.nonzero(np.ones(self.pull.shape, dtype=bool))
        if np.linalg.norm(coordinates[~kept]) > float(np.linalg.norm(self._noise(everywhere))):
            return -np.inf
        return -float(np.sum(coordinates[kept] ** 2 / (4.0 * values[kept, None]))) - self.start.cost(self.parts)


def _inside(piece: Piece, q: Array) -> Array:
    """An extrapolated point pulled back into the dual ball, so that every trial point is feasible."""
    return piece.prox_conj(q, 1.0)[0]
