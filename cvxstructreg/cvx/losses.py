"""Losses from the pieces of an objective: rows of a linear model, their labels and weights, and the intercept.

Each group of rows is ``sum_i s_i phi(z_i)`` with ``z = A x + o``. The signs of rows are free in almost all losses: with
f = sign * (A x), a row of the logistic loss is log(1 + exp(-y (f + sign o))) with y = -sign.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Term
from cvxstructreg.core.offset import restored
from cvxstructreg.cvx.reading.layout import Layout
from cvxstructreg.cvx.reading.maps import column as entries_of
from cvxstructreg.cvx.reading.maps import joined, matrix, piled, scaled, taken
from cvxstructreg.cvx.reading.pieces import Piece
from cvxstructreg.losses import Absolute, Hinge, Huber, Logistic, Poisson, Quantile, Squared, SquaredHinge
from cvxstructreg.numerics.arrays import Array

#: Losses with labels -1 and +1.
TWO_CLASSES = {"logistic": Logistic, "hinge": Hinge, "squared_pos": SquaredHinge}
#: Losses whose rows may not be negated; those of the quantile loss only all together.
ONE_SIDED = {"exp", "given"}
#: Digits of a quantile by which rows are told apart.
DIGITS = 12


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with the same function: ``blocks`` are the columns of each variable.

    ``data`` is a number of the function, or a loss of this library. ``counts`` are the labels of Poisson rows.
    """

    kind: str
    blocks: list[Any]
    offset: Array
    weights: Array
    data: Any = None
    counts: Array | None = None

    def __len__(self) -> int:
        return len(self.offset)

    def taken(self, kept: Any) -> Rows:
        """Some of the rows."""
        if np.all(kept):
            return self
        counts = None if self.counts is None else self.counts[kept]
        blocks = [taken(block, np.flatnonzero(kept)) for block in self.blocks]
        return Rows(self.kind, blocks, self.offset[kept], self.weights[kept], self.data, counts)

    def flipped(self, signs: Any) -> Rows:
        """The rows times signs, without a change of the function."""
        return replace(self, blocks=[scaled(block, signs) for block in self.blocks], offset=signs * self.offset)


def rows_of(piece: Piece, layout: Layout) -> list[Rows]:
    """The rows of a piece that is a loss, split by the kind of their function."""
    blocks = [layout.block(piece.affine, variable) for variable in layout.variables]
    plain = Rows(piece.kind, blocks, piece.affine.offset, piece.weights)
    if piece.kind == "atom":
        return [replace(plain, kind="given", weights=np.full(len(plain), piece.weights[0]), data=piece.data)]
    if piece.kind == "kink":
        return _kinks(plain, piece.data, piece.weights)
    if piece.kind == "exp":
        return [replace(plain.taken(plain.weights > 0), counts=piece.data[plain.weights > 0])]
    if piece.kind == "huber":
        return [replace(plain.taken(plain.weights > 0), data=piece.data)]
    if piece.kind == "logistic" and piece.data is not None:
        return _soft_labels(plain, piece.data)
    return [plain.taken(plain.weights > 0)]


def _soft_labels(plain: Rows, share: Array) -> list[Rows]:
    """s log(1 + exp(z)) - s t z, which is s (1 - t) log(1 + exp(z)) + s t log(1 + exp(-z))."""
    if np.all((share == 0) | (share == 1)):
        return [plain.flipped(np.where(share == 1, -1.0, 1.0)).taken(plain.weights > 0)]
    up = replace(plain, weights=plain.weights * (1.0 - share))
    down = replace(plain, weights=plain.weights * share).flipped(-np.ones(len(plain)))
    return [up.taken(up.weights > 0), down.taken(down.weights > 0)]


def _kinks(plain: Rows, lower: Array, upper: Array) -> list[Rows]:
    """max(l z, u z) with l <= 0 <= u: hinges, absolute values and quantile losses."""
    found = []
    flip = (upper == 0) & (lower < 0)
    hinges = flip | ((lower == 0) & (upper > 0))
    if hinges.any():
        signs = np.where(flip, -1.0, 1.0)
        rows = replace(plain, kind="hinge", weights=upper - lower)
        found.append((rows.flipped(signs) if flip.any() else rows).taken(hinges))
    both = (lower == -upper) & (upper > 0)
    if both.any():
        found.append(replace(plain, kind="absolute", weights=upper).taken(both))
    rest = ~hinges & ~both & (upper > lower)
    quantiles = np.round(np.divide(-lower, upper - lower, out=np.zeros_like(lower), where=rest), DIGITS)
    for q in np.unique(quantiles[rest]):
        rows = replace(plain, kind="quantile", weights=upper - lower, data=float(q))
        found.append(rows.taken(rest & (quantiles == q)))
    return found


def merged(rows: list[Rows]) -> list[Rows]:
    """Rows of the same function as one group."""
    groups: dict[Any, list[Rows]] = {}
    for part in rows:
        if len(part):
            groups.setdefault((part.kind, part.data), []).append(part)
    return [_joined(parts) for parts in groups.values()]


def _joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    blocks = [piled([part.blocks[i] for part in parts]) for i in range(len(parts[0].blocks))]
    counts = None if parts[0].counts is None else np.concatenate([p.counts for p in parts if p.counts is not None])
    offset, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("offset", "weights"))
    return Rows(parts[0].kind, blocks, offset, weights, parts[0].data, counts)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The design matrix, its loss terms, and the intercept: entry ``at`` of the vector is ``b / unit``."""

    design: Any
    terms: list[Term]
    at: int | None = None
    unit: float = 1.0


def fitted(groups: list[Rows], layout: Layout, untouched: Any) -> Fitted:
    """Losses on the rows of one model; an entry that is ``untouched`` by penalties may be the intercept."""
    groups = [_in_units(group) for group in groups]
    for column in _constant_columns(groups, layout, untouched):
        signs = [np.sign(_column(group, layout, column)) for group in groups]
        if all(_has_both_classes(group, sign) for group, sign in zip(groups, signs, strict=True)):
            unit = float(abs(_column(groups[0], layout, column)[0]))
            return _finished(groups, signs, layout, column, unit)
    groups = [_doubled(group) if group.kind in TWO_CLASSES and len(group) == 1 else group for group in groups]
    signs = [_any_signs(group) for group in groups]
    return _finished(groups, signs, layout, None, 1.0)


def _in_units(group: Rows) -> Rows:
    """A hinge with a common margin c as one with margin 1: s (c + z)_+ is s c (1 + z / c)_+."""
    if group.kind not in ("hinge", "squared_pos") or not np.all(group.offset == group.offset[0]):
        return group
    c = float(group.offset[0])
    if c <= 0 or c == 1.0:
        return group
    weights = group.weights * (c if group.kind == "hinge" else c**2)
    return replace(group.flipped(1.0 / c), weights=weights, offset=np.ones(len(group)))


def _column(group: Rows, layout: Layout, column: int) -> Array:
    for variable, block in zip(layout.variables, group.blocks, strict=True):
        at = column - layout.first[variable.id]
        if 0 <= at < variable.size:
            return entries_of(block, at)
    raise IndexError(column)


def _constant_columns(groups: list[Rows], layout: Layout, untouched: Any) -> list[int]:
    """The columns of equal size in all rows, with one sign where the signs of rows are not free."""
    found: list[int] = []
    if layout.size == 1:  # a model needs a weight besides its intercept
        return found
    for column in np.flatnonzero(untouched):
        entries = [_column(group, layout, int(column)) for group in groups]
        unit = abs(entries[0][0])
        fits = (_fits(group, part, unit) for group, part in zip(groups, entries, strict=True))
        if unit > 0 and all(fits):
            found.append(int(column))
    return found


def _fits(group: Rows, entries: Array, unit: float) -> bool:
    """Whether the entries have the size ``unit``, and signs that the function of the rows allows."""
    if np.any(np.abs(entries) != unit):
        return False
    if group.kind == "quantile":
        return bool(np.all(entries > 0) or np.all(entries < 0))
    return group.kind not in ONE_SIDED or bool(np.all(entries > 0))


def _has_both_classes(group: Rows, signs: Array) -> bool:
    return group.kind not in TWO_CLASSES or bool(np.any(signs > 0) and np.any(signs < 0))


def _doubled(group: Rows) -> Rows:
    """A single row as two rows of half the weight: a classifier needs two classes."""
    half = replace(group, weights=group.weights / 2.0)
    return _joined([half, half])


def _any_signs(group: Rows) -> Array:
    if group.kind not in TWO_CLASSES:
        return np.ones(len(group))
    return np.where(np.arange(len(group)) % 2, 1.0, -1.0)


def _finished(groups: list[Rows], signs: list[Array], layout: Layout, column: int | None, unit: float) -> Fitted:
    groups = [group if np.all(sign > 0) else _signed(group, sign) for group, sign in zip(groups, signs, strict=True)]
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    terms = []
    for group, sign, start in zip(groups, signs, starts[:-1], strict=True):
        rows = None if len(groups) == 1 else np.arange(start, start + len(group))
        terms.append(_loss(group, sign, rows))
    blocks = [piled([group.blocks[i] for group in groups]) for i in range(len(layout.variables))]
    if column is not None:
        blocks = _without(blocks, layout, column)
    return Fitted(joined(blocks), terms, column, unit)


def _signed(group: Rows, signs: Array) -> Rows:
    if group.kind == "quantile":  # all signs are -1
        group = replace(group, data=1.0 - group.data)
    return replace(group, blocks=[scaled(block, signs) for block in group.blocks], offset=signs * group.offset)


def _without(blocks: list[Any], layout: Layout, column: int) -> list[Any]:
    """The blocks without one column."""
    kept = []
    for variable, block in zip(layout.variables, blocks, strict=True):
        at = column - layout.first[variable.id]
        if 0 <= at < variable.size:
            if variable.size == 1:
                continue
            others = np.delete(np.arange(variable.size), at)
            block = matrix(block)[:, others]
        kept.append(block)
    return kept


def _loss(group: Rows, signs: Array, rows: Any) -> Term:
    """The loss of rows that were multiplied by ``signs``; the offset was, too."""
    equal = bool(np.all(group.weights == group.weights[0]))
    scale, weights = (float(group.weights[0]), None) if equal else (1.0, group.weights)
    given: dict[str, Any] = {"rows": rows, "sample_weight": weights}
    offset = group.offset
    if group.kind == "given":
        return scale * moved_loss(group.data, rows, offset[:, None])
    if group.kind in TWO_CLASSES:
        moved = offset if group.kind == "logistic" else offset - signs
        return scale * TWO_CLASSES[group.kind](-signs, classes=(-1.0, 1.0), offset=moved, **given)
    if group.kind == "square":
        return 2.0 * scale * Squared(-offset, **given)
    if group.kind == "absolute":
        return scale * Absolute(-offset, **given)
    if group.kind == "quantile":
        return scale * Quantile(-offset, quantile=group.data, **given)
    if group.kind == "huber":
        return 2.0 * scale * Huber(-offset, delta=group.data, **given)
    return scale * Poisson(group.counts, offset=offset, **given)


def moved_loss(loss: Loss, rows: Any, offset: Array) -> Loss:
    """A loss of this library on other rows of the model, with an offset added to its own."""
    total = offset if loss.offset is None else loss.offset + offset
    state = {key: value for key, value in vars(loss).items() if key != "without_offset"}
    state |= {"rows": rows, "offset": total if np.any(total) else None}
    plain = loss.plain_class or type(loss)
    if np.any(total):
        return restored(plain, state)
    made = object.__new__(plain)
    vars(made).update(state)
    return made
