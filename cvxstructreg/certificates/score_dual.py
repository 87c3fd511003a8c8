"""Dual points of the terms on the scores, and of single pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT

#: Above this score the losses are flat, and the score is no useful unit.
LARGEST = 1e100
#: The step size for a first dual point, relative to the ratio of dual to primal scale: nearly a subgradient.
FIRST_STEP = 1e4


@dataclass(frozen=True, eq=False)
class ScoreDual:
    """Dual points of the terms on the scores, in balance, and the point (theta, scores) that they belong to."""

    theta: Array
    scores: Array
    points: tuple[Array, ...]  # one for each score piece
    total: Array  # n x k: the derivative of the score terms with respect to the scores
    error: float = 0.0  # the norm of the round-off in the total if it is a sum of several terms
    imbalance: float = 0.0  # the possible cost of round-off in the balance of intercepts and free directions

    @property
    def is_here(self) -> bool:
        """Whether the arrays are in this process."""
        return True

    def pull(self, parts: NormalForm) -> Array:
        """X' times the total."""
        return parts.model.adjoint(self.total)

    def sums(self) -> Array:
        """The sums of the total over the rows."""
        return np.asarray(self.total.sum(axis=0, dtype=np.longdouble).astype(float))

    def sizes(self) -> Array:
        """The sums of absolute values of the total over the rows."""
        return np.asarray(np.abs(self.total).sum(axis=0))

    def norms(self) -> Array:
        """The norms of the columns of the total."""
        return np.asarray(np.sqrt((self.total * self.total).sum(axis=0)))

    def farthest(self, b: Array) -> Array:
        """The largest absolute scores without the intercepts b."""
        return np.asarray(np.abs(self.scores - b).max(axis=0))

    def cost(self, parts: NormalForm, s: float = 1.0) -> float:
        """The conjugates of all score terms at s times the dual point."""
        pieces = sum(piece.conj(s * u) for piece, u in zip(parts.score_pieces, self.points, strict=True))
        # the dual points of quadratic terms are gradients, where the conjugate equals the value
        return float(pieces + s**2 * sum(scaled.value(self.scores) for scaled in parts.score_forms))

    def round_off(self, parts: NormalForm) -> float:
        """The possible round-off in the cost: conjugates are differences of <u, z> and values."""
        products = 0.0
        for piece, u in zip(parts.score_pieces, self.points, strict=True):
            z = np.abs(piece.forward(self.scores))
            if isinstance(piece.atom, Loss) and piece.atom.offset is not None:
                z += np.abs(piece.atom.offset)
            products += float((np.abs(u) * z).sum())
        size = float(np.linalg.norm(self.scores)) if self.error else 0.0
        return UNIT * products + self.error * size + self.imbalance


def score_unit(start: ScoreDual, objective: float) -> float:
    """A score that changes the objective by about its own size, from the derivative with respect to the scores."""
    weight = float(start.sizes().sum())
    return abs(objective) / weight if weight > abs(objective) / LARGEST else 0.0


def dual_point(piece: Piece, x: Array, u: Array | None) -> Array:
    """A point in the domain of the conjugate of the piece, near u and near a subgradient at z = K x.

    A given u in the domain is kept. Otherwise a prox step is taken from u + tau z, which keeps an optimal pair (z, u)
    for any tau. The ratio tau of dual to primal scale is computed from x rather than z, because z may be zero up to the
    accuracy of a solver.
    """
    if u is not None and cost_of(piece, u, 1.0) < np.inf:
        return u if piece.atom.can("dual_norm") else piece.into_domain(u)
    z = piece.forward(x)
    if u is None and piece.is_smooth:
        return piece.grad(z)
    size = float(np.linalg.norm(x)) or 1.0
    if u is None:
        tau = FIRST_STEP * piece.scale / size
        return piece.into_domain(piece.prox_conj(tau * z, tau)[0])
    tau = (float(np.linalg.norm(u)) or piece.scale) / size
    return piece.into_domain(piece.prox_conj(u + tau * z, tau)[0])


def cost_of(piece: Piece, u: Array, t: float) -> float:
    """(scale * atom)*(t u); for norms, which are homogeneous, u is not copied."""
    if piece.atom.can("conj"):
        return piece.conj(u if t == 1.0 else t * u)
    return 0.0 if t * piece.atom.dual_norm(u) <= (1.0 + UNIT) * piece.scale else np.inf


def largest_factor(piece: Piece, q: Array, s: float) -> float:
    """The largest t <= s for which the conjugate is finite at t q, by a formula or bisection; 0 if there is none."""
    known = piece.atom.largest_factor(q / piece.scale)
    if known is not None:
        return min(s, known)
    low, high = 0.0, s
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if cost_of(piece, q, middle) < np.inf else (low, middle)
    return low
