"""Sums over risk sets at given scores: computed once for values, gradients and all products with a Hessian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxstructreg.losses.survival.risk_sets import RiskSets
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property


@dataclass(frozen=True, eq=False)
class AtScores:
    """The scores f (n x 1), and what is computed from them for the sorted rows of positive weight."""

    sets: RiskSets
    scores: Array

    @cached_property
    def logs(self) -> tuple[Array, Array, Array]:
        """log s + f by row, log S by block, and log(1 - part D / S) by term."""
        sets = self.sets
        x = sets.log_weight + self.scores[sets.order, 0]
        at_risk = sets.log_rows_behind(x)
        if not sets.has_parts:
            return x, at_risk, np.zeros(len(sets.term_block))
        share = np.exp(np.minimum(sets.log_events(x) - at_risk, 0.0))
        return x, at_risk, np.log1p(-sets.term_part * share[sets.term_block])

    @cached_property
    def mass(self) -> Array:
        """q = s exp(f) H by row: the expected number of events, H the cumulated hazard."""
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
        x = sets.log_weight + self.scores[sets.order, 0]
        for begin, end in sets.strata:
            x[begin:end] -= x[begin:end].max()
        sizes = np.exp(x)
        at_risk, of_events = sets.rows_behind(sizes), sets.by_block(np.where(sets.event, sizes, 0.0))
        return sizes, (at_risk[sets.term_block] - sets.term_part * of_events[sets.term_block])
