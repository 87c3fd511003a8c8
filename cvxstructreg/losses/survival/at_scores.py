"""Sums over risk sets at given scores: computed once for values, gradients and all products with a Hessian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cvxstructreg.losses.survival.risk_sets import RiskSets
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property


class Sums(NamedTuple):
    """x = log s + f and s exp(f) by row, S and D by block, S - part D by term, and q = s exp(f) H by row.

    All are relative to the largest s exp(f) of the stratum, which cancels in q.
    """

    x: Array
    sizes: Array
    at_risk: Array
    of_events: Array
    left: Array
    mass: Array


@dataclass(frozen=True, eq=False)
class AtScores:
    """The scores f (n x 1), and what is computed from them for the sorted rows of positive weight."""

    sets: RiskSets
    scores: Array

    @cached_property
    def sums(self) -> Sums | None:
        """Sums in units of the largest exp(f) of the stratum, in one pass; None if f has a wide range or few rows."""
        sets = self.sets
        if sets.compiled is None:
            return None
        x, sizes = np.empty(len(sets.order)), np.empty(len(sets.order))
        if not sets.compiled.relative_sizes(self.weighted, sets.bounds, x, sizes):
            return None
        at_risk, of_events = np.empty(len(sets.starts)), np.zeros(len(sets.starts))
        found = Sums(x, sizes, at_risk, of_events, np.empty(len(sets.term_block)), np.empty_like(x))
        terms = sets.term_block, sets.term_weight, sets.term_part
        out = at_risk, of_events, found.left, found.mass
        sets.compiled.relative_sums(sizes, sets.block, sets.bounds, sets.event, *terms, *out)
        return found

    @cached_property
    def weighted(self) -> Array:
        """log s + f by row."""
        return np.asarray(self.sets.log_weight + self.scores[:, 0][self.sets.order])

    @cached_property
    def logs(self) -> tuple[Array, Array, Array]:
        """log s + f by row and log S by block, up to one constant for each stratum, and log(1 - part D / S) by term."""
        sets, x = self.sets, self.weighted
        if self.sums is not None:
            left = np.zeros(len(sets.term_block))
            if sets.has_parts:
                left = np.log1p(-sets.term_part * (self.sums.of_events / self.sums.at_risk)[sets.term_block])
            return self.sums.x, np.log(self.sums.at_risk), left
        at_risk = sets.log_rows_behind(x)
        if not sets.has_parts:
            return x, at_risk, np.zeros(len(sets.term_block))
        share = np.exp(np.minimum(sets.log_events(x) - at_risk, 0.0))
        return x, at_risk, np.log1p(-sets.term_part * share[sets.term_block])

    @cached_property
    def mass(self) -> Array:
        """q = s exp(f) H by row: the expected number of events, H the cumulated hazard."""
        if self.sums is not None:
            return self.sums.mass
        sets, (x, at_risk, left) = self.sets, self.logs
        at_term = np.log(sets.term_weight) - at_risk[sets.term_block] - left
        with np.errstate(divide="ignore"):
            whole = np.log(sets.by_term(np.exp(at_term + at_risk[sets.term_block]))) - at_risk
            kept = (1.0 - sets.term_part) * np.exp(at_term + at_risk[sets.term_block])
            of_events = np.log(sets.by_term(kept)) - at_risk
        if sets.compiled is not None:
            out = np.empty_like(x)
            sets.compiled.expected_events(x, whole, of_events, sets.block, sets.bounds, sets.event, out)
            return out
        hazard = sets.log_blocks_before(whole)
        before = np.full_like(hazard, -np.inf)
        for begin, end in sets.stratum_blocks:
            before[begin + 1 : end] = hazard[begin : end - 1]
        own = np.logaddexp(before, of_events)
        return np.asarray(np.exp(x + np.where(sets.event, own[sets.block], hazard[sets.block])))

    @cached_property
    def shares(self) -> tuple[Array, Array]:
        """s exp(f) by row and S - part D by term, in units of the largest exp(f) of the stratum."""
        sets = self.sets
        if self.sums is not None:
            return self.sums.sizes, self.sums.left
        x = self.weighted.copy()
        for begin, end in sets.strata:
            x[begin:end] -= x[begin:end].max()
        sizes = np.exp(x)
        at_risk, of_events = sets.rows_behind(sizes), sets.by_block(np.where(sets.event, sizes, 0.0))
        return sizes, (at_risk[sets.term_block] - sets.term_part * of_events[sets.term_block])
