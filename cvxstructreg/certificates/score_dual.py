"""Dual points of the terms on the scores, and of single pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cvxstructreg.certificates.free_directions import (
    BALANCED,
    MOST_IDLE,
    MOST_STEPS,
    ROUND_OFF,
    SHORTEST,
    free_directions,
)
from cvxstructreg.core.atom import conjugate
from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.runtime import deadline

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
        return np.asarray(np.linalg.norm(self.total, axis=0))

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
            products += float(np.sum(np.abs(u) * z))
        size = float(np.linalg.norm(self.scores)) if self.error else 0.0
        return UNIT * products + self.error * size + self.imbalance


class Figures(NamedTuple):
    """Sums over the rows for a dual point u at the scores z: of u, |u|, u^2 and |u| |z|, and the largest |X theta|."""

    total: Any
    size: float
    square: float
    product: float
    farthest: float


@dataclass(frozen=True, eq=False)
class KeptDual(ScoreDual):
    """The gradient of a loss with one output, by rows that stay where the blocks are: only sums over them come here."""

    rows: Any = None
    state: Any = None
    b: float = 0.0
    figures: Any = None

    @property
    def is_here(self) -> bool:
        """The arrays stay where they are."""
        return False

    def pull(self, parts: NormalForm) -> Array:
        """X'u by a pass."""
        found: Array = self.rows.pull(self.state, self.b, parts.score_pieces[0].scale)
        return found

    def sums(self) -> Array:
        """The sum of u."""
        return np.array([float(self.figures.total)])

    def sizes(self) -> Array:
        """The sum of |u|."""
        return np.array([self.figures.size])

    def norms(self) -> Array:
        """The norm of u."""
        return np.array([np.sqrt(self.figures.square)])

    def farthest(self, b: Array) -> Array:
        """The largest |X theta|."""
        return np.array([self.figures.farthest])

    def cost(self, parts: NormalForm, s: float = 1.0) -> float:
        """The conjugate of the loss at s u."""
        scale = parts.score_pieces[0].scale
        return scale * float(sum(self.rows.sums(_conjugates, self.b, s, states=(self.state,))))

    def round_off(self, parts: NormalForm) -> float:
        """The possible round-off in the cost."""
        return UNIT * self.figures.product + self.imbalance


@dataclass(frozen=True, eq=False)
class KeptPoint:
    """The dual point of a loss whose rows stay where the blocks are."""

    rows: Any
    state: Any
    b: float
    scale: float

    def gather(self) -> Array:
        """The dual point in this process."""
        return self.scale * np.concatenate(self.rows.sums(_slopes, self.b, states=(self.state,)))


def kept_rows(parts: NormalForm) -> Any:
    """The rows of the loss if they stay where the blocks are; None if scores are in this process.

    They stay for one smooth loss of all rows with one output that is a sum over rows, if all directions have a penalty.
    """
    blocks, pieces = parts.model.row_blocks, parts.score_pieces
    if blocks is None or not blocks.keeps_scores or len(pieces) != 1 or parts.score_forms or parts.n_outputs > 1:
        return None
    piece, atom = pieces[0], pieces[0].atom
    if piece.K is not None or not isinstance(atom, Loss) or atom.couples_rows or atom.ignores_constants:
        return None
    able = atom.can("grad") and atom.can("hess_diag") and piece.has_conjugate
    return blocks.kept_rows(atom) if able and _all_held(parts) else None


def _all_held(parts: NormalForm) -> bool:
    """Whether every direction of the weights has a penalty or two bounds, at any point."""
    known = parts.__dict__
    if "_all_held" not in known:
        part, none = parts.separable, np.zeros(parts.shape)
        one_sided = part is not None and bool(np.any(np.isfinite(part.lower) != np.isfinite(part.upper)))
        directions = None if one_sided and not parts.all_penalised else free_directions(parts, none)
        known["_all_held"] = directions is not None and directions.shape[1] == 0
    return bool(known["_all_held"])


def kept_value(rows: Any, theta: Array, b: float) -> float:
    """The value of the loss at (theta, b)."""
    return float(sum(rows.sums(_values, b, states=(rows.state(theta),))))


def kept_dual(parts: NormalForm, theta: Array, b: Array, rows: Any) -> KeptDual:
    """The gradient at theta and the best intercept beside it."""
    piece, state = parts.score_pieces[0], rows.state(theta)
    at = refit_kept(rows, state, float(b[0])) if parts.model.intercept else float(b[0])
    found = rows.sums(_figures, at, piece.scale, states=(state,))
    total, size, square, product, farthest = zip(*found, strict=True)
    figures = Figures(sum(total), sum(size), sum(square), sum(product), max(farthest))
    none: Any = np.zeros((0, 1))
    point: Any = KeptPoint(rows, state, at, piece.scale)
    return KeptDual(theta, none, (point,), none, rows=rows, state=state, b=at, figures=figures)


def refit_kept(rows: Any, state: Any, b: float) -> float:
    """The intercept that minimises the loss beside X theta, by a damped Newton method on sums over rows."""
    current, steepest, idle, ahead = np.inf, np.inf, 0, b
    value, slope, size, bend = _derivatives_at(rows, state, b)
    for _ in range(MOST_STEPS):
        if abs(slope) <= BALANCED * size:
            break
        current = value
        idle = idle if abs(slope) < 0.5 * steepest else idle + 1
        if idle > MOST_IDLE or not bend > 0.0 or deadline.passed():
            break
        step, length = slope / bend, 1.0
        while length > SHORTEST:
            ahead = b - length * step
            found = _derivatives_at(rows, state, ahead)
            if found[0] <= current + ROUND_OFF * abs(current):
                break
            length *= 0.5
        else:
            break
        if found[0] < current - ROUND_OFF * abs(current):
            idle = 0
        steepest = min(steepest, abs(slope))
        b, (value, slope, size, bend) = ahead, found
    return b


def _derivatives_at(rows: Any, state: Any, b: float) -> tuple[float, float, float, float]:
    value, slope, size, bend = (sum(each) for each in zip(*rows.sums(_derivatives, b, states=(state,)), strict=True))
    return float(value), float(slope), float(size), float(bend)


def _derivatives(loss: Loss, images: Array, b: float) -> tuple[float, Any, float, float]:
    """The value of a loss, the sums of its slopes and their absolute values, and that of its curvatures."""
    z = images + b
    g = loss.grad(z)
    return loss.value(z), g.sum(dtype=np.longdouble), float(np.abs(g).sum()), float(loss.hess_diag(z).sum())


def _figures(loss: Loss, images: Array, b: float, scale: float) -> Figures:
    z = images + b
    u = scale * loss.grad(z)
    sizes = np.abs(z) if loss.offset is None else np.abs(z) + np.abs(loss.offset)
    sums = u.sum(dtype=np.longdouble), float(np.abs(u).sum()), float(np.vdot(u, u)), float(np.sum(np.abs(u) * sizes))
    return Figures(*sums, float(np.abs(images).max(initial=0.0)))


def _slopes(loss: Loss, images: Array, b: float) -> Array:
    return np.asarray(loss.grad(images + b))


def _values(loss: Loss, images: Array, b: float) -> float:
    return loss.value(images + b)


def _conjugates(loss: Loss, images: Array, b: float, s: float) -> float:
    return conjugate(loss, s * loss.grad(images + b))


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
