"""Dual points of a loss whose rows stay where the blocks are: only sums over rows come to this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cvxstructreg.certificates.directions.free_directions import free_directions, keep_free_reach
from cvxstructreg.certificates.row_sums.refitting import (
    RowPoint,
    are_clear,
    directions_of,
    reach_along,
    refit,
    scores_at,
    slopes,
    start_at,
)
from cvxstructreg.certificates.score_dual import ScoreDual
from cvxstructreg.core.atom import conjugate
from cvxstructreg.core.loss import Loss
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.forms.smoothed_kinks import SmoothedKinks, SmoothedRows, has_kinks
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT


class Figures(NamedTuple):
    """Sums over the rows for a dual point u at the scores F: of u, |u|, u^2 and |u| |F|, and the largest |F - 1 b'|."""

    total: Any
    size: Array
    square: Array
    product: float
    farthest: Array


@dataclass(frozen=True, eq=False)
class KeptDual(ScoreDual):
    """A dual point of a loss by rows that stay where the blocks are."""

    at: Any = None  # a RowPoint
    figures: Any = None

    @property
    def is_here(self) -> bool:
        """The arrays stay where they are."""
        return False

    @property
    def b(self) -> Array:
        """The intercepts."""
        return np.asarray(self.at.a[-1])

    def pull(self, parts: NormalForm) -> Array:
        """X'u by a pass."""
        return np.asarray(parts.score_pieces[0].scale * self.at.pull())

    def sums(self) -> Array:
        """The sums of u."""
        return np.asarray(self.figures.total, dtype=float)

    def sizes(self) -> Array:
        """The sums of |u|."""
        return np.asarray(self.figures.size)

    def norms(self) -> Array:
        """The norms of the columns of u."""
        return np.sqrt(self.figures.square)

    def farthest(self, b: Array) -> Array:
        """The largest absolute scores without the intercepts."""
        return np.asarray(self.figures.farthest)

    def cost(self, parts: NormalForm, s: float = 1.0) -> float:
        """The conjugate of the loss at s u."""
        piece = parts.score_pieces[0]
        return piece.scale * float(sum(self.at.sums(_conjugates, s, isinstance(piece.atom, SmoothedKinks))))

    def round_off(self, parts: NormalForm) -> float:
        """The possible round-off in the cost."""
        return UNIT * self.figures.product + self.imbalance


@dataclass(frozen=True, eq=False)
class KeptPoint:
    """The dual point of a loss whose rows stay where the blocks are."""

    at: RowPoint
    scale: float

    def gather(self) -> Array:
        """The dual point in this process."""
        return self.scale * np.concatenate(self.at.sums(slopes))


def kept_rows(parts: NormalForm) -> Any:
    """The rows of the loss if they stay where the blocks are; None if scores are in this process.

    They stay for one loss of all rows that is a sum over rows, smooth or with kinks, if the directions without penalty
    are few and do not depend on the point.
    """
    blocks, pieces = parts.model.row_blocks, parts.score_pieces
    if blocks is None or not blocks.keeps_scores or len(pieces) != 1 or parts.score_forms:
        return None
    piece, atom = pieces[0], pieces[0].atom
    if piece.K is not None or not isinstance(atom, Loss) or atom.couples_rows or atom.ignores_constants:
        return None
    able = (atom.can("grad", "hessp") or has_kinks(atom)) and piece.has_conjugate
    return blocks.kept_rows(atom) if able and _few_free(parts) else None


def _few_free(parts: NormalForm) -> bool:
    known = parts.__dict__
    if "_few_free" not in known:
        part, none = parts.separable, np.zeros(parts.shape)
        one_sided = part is not None and bool(np.any(np.isfinite(part.lower) != np.isfinite(part.upper)))
        directions = None if one_sided and not parts.all_penalised else free_directions(parts, none)
        known["_few_free"] = directions is not None
    return bool(known["_few_free"])


def smooth_rows(rows: Any, theta: Array, b: Array) -> Any:
    """The rows; those of a loss with kinks smoothed around the latest multipliers, or first ones near (theta, b)."""
    if rows.is_smooth:
        return rows
    found = rows.smoothing
    if found is None:
        found = rows.smoothing = first_smoothing(rows, theta, b)
    return found


def first_smoothing(rows: Any, theta: Array, b: Array) -> Any:
    """The rows of a loss with kinks, smoothed over about the distances of the scores at (theta, b) from the kinks."""
    widths, distances = (sum(each) for each in zip(*rows.sums(_spread, b, states=(rows.state(theta),)), strict=True))
    return rows.smoothed(float(widths / distances) if widths * distances > 0.0 else 1.0)


def kept_value(rows: Any, theta: Array, b: Array) -> float:
    """The value of the loss at (theta, b)."""
    return RowPoint(rows, (rows.state(theta), rows.nothing), b[None, :], False).value()


def value_at(problem: Any, theta: Array, b: Array) -> float:
    """The objective, by a sum over rows if these stay where the blocks are."""
    parts = problem.normal_form
    if (rows := kept_rows(parts)) is None:
        return float(problem.value_at(theta, b))
    return float(problem.value_at(theta, b, score_value=parts.score_pieces[0].scale * kept_value(rows, theta, b)))


def largest_kept(rows: Any, theta: Array, b: Array) -> float:
    """The largest absolute score at (theta, b)."""
    return max(rows.sums(_largest, b, states=(rows.state(theta),)))


def best_beside(parts: NormalForm, theta: Array, b: Array, rows: Any, free: bool = True) -> tuple[Array, RowPoint]:
    """theta with the best weights without penalty (those of theta unless ``free``), and the best intercepts."""
    found = directions_of(parts, theta, rows) if free else None
    D, state = (np.zeros((len(theta), 0)), None) if found is None else found
    point = refit(start_at(parts, theta, b, rows, D, state))
    return (theta + D @ point.a[:-1] if D.shape[1] else theta), point


def kept_dual(parts: NormalForm, theta: Array, b: Array, rows: Any, linear: bool | None = None) -> KeptDual:
    """The dual point at theta, the best intercepts and the best weights without penalty beside it.

    It is the gradient, or (``linear``; the default if there are weights without penalty) that of one more Newton step,
    which is in balance up to the round-off of a linear system.
    """
    rows = smooth_rows(rows, theta, b)
    moved, point = best_beside(parts, theta, b, rows)
    free = len(point.a) > 1
    if free:
        given = free_directions(parts, theta)
        assert given is not None
        if are_clear(parts, given, rows):
            keep_free_reach(parts, theta, lambda: reach_along(parts, given, rows))
    if free if linear is None else linear:
        point = point.linearised()
        if free:
            assert point.step is not None
            D, _ = directions_of(parts, theta, rows) or (np.zeros((len(theta), 0)), None)
            moved = moved - D @ point.step[:-1]
    scale = parts.score_pieces[0].scale
    total, size, square, product, farthest = zip(*point.sums(_figures, scale), strict=True)
    figures = Figures(sum(total), sum(size), sum(square), float(sum(product)), np.max(farthest, axis=0))
    none: Any = np.zeros((0, parts.n_outputs))
    kept: Any = KeptPoint(point, scale)
    return KeptDual(moved, none, (kept,), none, at=point, figures=figures)


def _largest(loss: Loss, images: Array, b: Array) -> float:
    return float(np.abs(images + b).max(initial=0.0))


def _figures(loss: Loss, images: Array, columns: Any, a: Array, step: Any, scale: float) -> Figures:
    u = scale * slopes(loss, images, columns, a, step)
    shift = a if step is None else a - step
    z = scores_at(images, columns, shift)
    sizes = np.abs(z) if loss.offset is None else np.abs(z) + np.abs(loss.offset)
    sums = u.sum(axis=0, dtype=np.longdouble), np.abs(u).sum(axis=0), np.sum(u**2, axis=0)
    farthest = np.abs(z - a[-1]).max(axis=0, initial=0.0)
    return Figures(*sums, float(np.sum(np.abs(u) * sizes)), farthest)


def _conjugates(loss: Any, images: Array, columns: Any, a: Array, step: Any, s: float, smoothed: bool) -> float:
    if isinstance(loss, SmoothedRows):
        change = None if step is None else scores_at(np.zeros_like(images), columns, step)
        return loss.cost(s * loss.multipliers(scores_at(images, columns, a), change), smoothed)
    return conjugate(loss, s * slopes(loss, images, columns, a, step))


def _spread(loss: Loss, images: Array, b: Array) -> tuple[float, float]:
    return SmoothedRows(loss, 1.0).spread(images + b)
