"""The risk sets of survival times: rows in the order of time, stratum by stratum, and sums over risk sets.

Rows of one stratum with the same time are a *block*. The risk set of a block are the rows of its stratum with this time
or a later one. The partial likelihood has one or several *terms* for each block with events: of weight w_l and with a
part f_l of the events removed from the risk set,

    sum_l w_l log(S_k - f_l D_k),      S_k the sum of s_j exp(z_j) over the risk set, D_k over the events of the block.

Breslow's terms have f = 0 and the weight of all events of the block; those of Efron have f = 0, 1/m, ..., (m-1)/m for m
events, with the mean weight of the events.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property

Ints = NDArray[np.int64]

#: From this many rows on, loops are compiled.
COMPILE_FROM = 500


@dataclass(frozen=True, eq=False)
class RiskSets:
    """Rows that count, sorted by stratum and time."""

    order: Ints  # the rows
    block: Ints  # the block of each of them
    starts: Ints  # the first row of each block
    strata: tuple[tuple[int, int], ...]  # the first row of each stratum, and that of the next
    stratum_blocks: tuple[tuple[int, int], ...]  # the same for its blocks
    weight: Array  # s, in this order
    event: NDArray[np.bool_]  # whether the row has an event
    event_weight: Array  # E_k, of the events of each block
    term_block: Ints  # the block of each term
    term_weight: Array  # w_l
    term_part: Array  # f_l
    constant: float  # what the terms are above the loss
    excess: float  # sum over events of s log s, minus the constant

    @classmethod
    def of(cls, time: Array, event: NDArray[np.bool_], stratum: Ints, weight: Array, efron: bool) -> RiskSets:
        """The risk sets of the rows of positive weight."""
        counted = np.flatnonzero(weight > 0)
        order = counted[np.lexsort((time[counted], stratum[counted]))].astype(np.int64)
        time, event, stratum, weight = time[order], event[order], stratum[order], weight[order]
        new_stratum = np.append(True, np.diff(stratum) != 0)
        new_block = new_stratum | np.append(True, np.diff(time) != 0)
        block = np.cumsum(new_block) - 1
        starts = np.flatnonzero(new_block)
        first = np.append(np.flatnonzero(new_stratum), len(order))
        first_block = np.append(block[first[:-1]], len(starts))
        events = np.bincount(block, weights=event, minlength=len(starts)).astype(np.int64)
        event_weight = np.bincount(block, weights=event * weight, minlength=len(starts)).astype(float)
        many = np.where(events > 0, events if efron else 1, 0)
        term_block = np.repeat(np.arange(len(starts)), many)
        number = np.arange(len(term_block)) - np.repeat(np.cumsum(many) - many, many)
        share = event_weight[term_block] / many[term_block]
        own = weight[event]
        constant, excess = float(np.sum(own * np.log(own))), 0.0
        if efron:
            mean = (event_weight / np.maximum(events, 1))[block[event]]
            constant, excess = float(np.sum(share * np.log(share))), float(np.sum(own * np.log(own / mean)))
        pairs = [tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)) for edges in (first, first_block)]
        part = number / many[term_block]
        return cls(
            order,
            block,
            starts,
            pairs[0],
            pairs[1],
            weight,
            event,
            event_weight,
            term_block,
            share,
            part,
            constant,
            excess,
        )

    @property
    def compiled(self) -> ModuleType | None:
        """The compiled loops, if there are enough rows for them; not kept, as modules cannot be pickled."""
        if len(self.order) < COMPILE_FROM:
            return None
        from cvxstructreg.losses.survival import compiled_risk_sets

        return compiled_risk_sets

    @cached_property
    def bounds(self) -> Ints:
        """The first row of each stratum and that of the next, as an array."""
        return np.array(self.strata, dtype=np.int64).reshape(-1, 2)

    @cached_property
    def log_weight(self) -> Array:
        """log s."""
        return np.log(self.weight)

    @cached_property
    def event_rows(self) -> Ints:
        """The rows with events, as positions in this order."""
        return np.flatnonzero(self.event)

    @cached_property
    def event_blocks(self) -> Ints:
        """The block of each row with an event."""
        return self.block[self.event_rows]

    @cached_property
    def event_row_weight(self) -> Array:
        """s of each row with an event."""
        return self.weight[self.event_rows]

    @cached_property
    def observed(self) -> Array:
        """s by row, zero for rows without event."""
        return np.where(self.event, self.weight, 0.0)

    @cached_property
    def has_parts(self) -> bool:
        """Whether some term removes a part of its events from the risk set: ties by Efron's rule."""
        return bool(self.term_part.any())

    def rows_behind(self, x: Array) -> Array:
        """The sum of x, one number for each row, over the risk set of each block."""
        return self._backward(x, np.add, self.strata)[self.starts]

    def log_rows_behind(self, x: Array) -> Array:
        """log of the sum of exp(x) over the risk set of each block."""
        if self.compiled is not None:
            out = np.empty(len(self.starts))
            self.compiled.log_rows_behind(x, self.block, self.bounds, out)
            return out
        return self._backward(x, np.logaddexp, self.strata)[self.starts]

    def blocks_behind(self, x: Array) -> Array:
        """The sum of x, one number for each block, over the block and later ones of its stratum."""
        return self._backward(x, np.add, self.stratum_blocks)

    def blocks_before(self, x: Array) -> Array:
        """The sum of x, one number for each block, over earlier blocks of the stratum and the block itself."""
        return self._forward(x, np.add)

    def log_blocks_before(self, x: Array) -> Array:
        """log of the sum of exp(x), likewise."""
        return self._forward(x, np.logaddexp)

    def _backward(self, x: Array, add: np.ufunc, bounds: tuple[tuple[int, int], ...]) -> Array:
        out = np.empty_like(x)
        for begin, end in bounds:
            out[begin:end] = add.accumulate(x[begin:end][::-1])[::-1]
        return out

    def _forward(self, x: Array, add: np.ufunc) -> Array:
        out = np.empty_like(x)
        for begin, end in self.stratum_blocks:
            out[begin:end] = add.accumulate(x[begin:end])
        return out

    def by_block(self, x: Array) -> Array:
        """The sum of x, one number for each row, over each block."""
        return np.bincount(self.block, weights=x, minlength=len(self.starts)).astype(float)

    def by_term(self, x: Array) -> Array:
        """The sum of x, one number for each term, over each block."""
        return np.bincount(self.term_block, weights=x, minlength=len(self.starts)).astype(float)

    def log_events(self, x: Array) -> Array:
        """log of the sum of exp(x) over the events of each block; -inf without events."""
        largest = np.full(len(self.starts), -np.inf)
        np.maximum.at(largest, self.block[self.event], x[self.event])
        shifted = np.exp(x[self.event] - largest[self.block[self.event]])
        total = np.bincount(self.block[self.event], weights=shifted, minlength=len(self.starts))
        return largest + np.log(np.where(total > 0, total, 1.0))
