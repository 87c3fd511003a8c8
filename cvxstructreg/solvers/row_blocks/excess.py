"""Which weights should not be zero: the part of the pull that no term on the weights can absorb.

With ``left`` = -X'u - (gradient of the quadratic terms), a point is optimal if ``left`` is the sum of dual points of
the separable part and of the pieces. The excess is what remains for the best dual points that were found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.momentum import Momentum
from cvxstructreg.runtime import deadline

#: Sweeps over groups, and projected gradient steps, at most.
SWEEPS, STEPS = 100, 500
#: The search ends when the largest excess is below this part of the largest entry of ``left``.
NEGLIGIBLE = 1e-9
#: Projected gradient steps between two tests of progress, and the part of the excess that means none.
CHECK_EVERY, STALLED = 50, 0.99


def excess_of(
    parts: NormalForm, left: Array, points: Mapping[int, Array], solved: Any = ()
) -> tuple[Array, dict[int, Array]]:
    """The excess, and dual points of the pieces on the weights that reach it; ``points`` are first guesses.

    ``solved`` are weights over which the problem was solved. Sweeps keep the entries of the guesses there: otherwise
    they would push the excess of other weights onto these, and creep along a chain of groups.
    """
    pieces = parts.weight_pieces
    if not pieces:
        return _beyond(parts, left), {}
    first = [points.get(piece.number) for piece in pieces]
    stack = [
        np.zeros_like(piece.forward(left)) if q is None else piece.into_domain(q)
        for piece, q in zip(pieces, first, strict=True)
    ]
    by_sweeps = all(isinstance(p.K, Selection) and p.atom.can("blocks") for p in pieces)
    bounded = parts.separable is not None and parts.separable.bounded
    fixed = np.zeros(parts.shape, dtype=np.uint8)
    if all(q is not None for q in first):
        fixed[np.asarray(solved, dtype=np.int64)] = 1
    found = _by_sweeps(parts, left, stack, fixed) if by_sweeps and not bounded else _by_steps(parts, left, stack)
    excess = _beyond(parts, left - _sum(parts, found))
    return excess, {piece.number: q for piece, q in zip(pieces, found, strict=True)}


def _beyond(parts: NormalForm, left: Array) -> Array:
    """What the separable part cannot absorb."""
    return left if parts.separable is None else left - parts.separable.absorb(left)


def _sum(parts: NormalForm, points: list[Array]) -> Array:
    total = np.zeros(parts.shape)
    for piece, q in zip(parts.weight_pieces, points, strict=True):
        total += piece.adjoint(q)
    return total


def _by_sweeps(parts: NormalForm, left: Array, points: list[Array], fixed: Any) -> list[Array]:
    """Gauss-Seidel sweeps over all groups, in which the entries of fixed weights do not change."""
    for number, piece in enumerate(parts.weight_pieces):
        others = [q if n != number else np.zeros_like(q) for n, q in enumerate(points)]
        points[number] = _swept(parts, piece, points[number], left - _sum(parts, others), fixed)
    return points


def _swept(parts: NormalForm, piece: Piece, q: Array, left: Array, fixed: Any) -> Array:
    """The dual point of one piece after sweeps over its groups."""
    from cvxstructreg.forms import compiled_groups  # imported here, since numba compiles on first use

    k, (indptr, weights) = parts.n_outputs, piece.atom.blocks()
    flat = piece.K.indices if k == 1 else (piece.K.indices[:, None].astype(np.int64) * k + np.arange(k)).ravel()
    groups = np.array(indptr) * k, flat.astype(np.uint32, copy=False), piece.scale * weights
    strengths = 0.0 if parts.separable is None else parts.separable.weights
    bound = np.array(np.broadcast_to(strengths, left.shape), dtype=float).ravel()
    moved, rest = q.copy().ravel(), (left - piece.adjoint(q)).ravel()
    compiled_groups.repair(*groups, moved, rest, bound, fixed.ravel(), SWEEPS, 1.0)
    return moved.reshape(q.shape)


def _by_steps(parts: NormalForm, left: Array, points: list[Array]) -> list[Array]:
    """Accelerated projected gradient steps on 1/2 ||excess||^2."""
    pieces, norm = parts.weight_pieces, parts.piece_norm
    trial, momentum, best, found, last = points, Momentum(points), np.inf, points, np.inf
    small = NEGLIGIBLE * float(np.abs(left).max(initial=0.0))
    for count in range(STEPS):
        excess = _beyond(parts, left - _sum(parts, trial))
        size = float(np.linalg.norm(excess))
        if size < best:
            best, found = size, trial
        if float(np.abs(excess).max(initial=0.0)) <= small or deadline.passed():
            break
        if count % CHECK_EVERY == 0:
            if best > STALLED * last:
                break
            last = best
        moved = [
            piece.prox_conj(q + piece.forward(excess) / norm, 1.0 / norm)[0]
            for piece, q in zip(pieces, trial, strict=True)
        ]
        ahead = momentum.ahead(trial, moved)
        trial = [piece.prox_conj(q, 1.0)[0] for piece, q in zip(pieces, ahead, strict=True)]
    return found
