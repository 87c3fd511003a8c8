"""The search for the columns with nonzero weights: the first set, and the columns that are missing in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm, Piece
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks.sampling import sampled
from cvxstructreg.runtime.quiet import muted
from cvxstructreg.solvers.iterate import InaccurateWarning, Iterate
from cvxstructreg.solvers.needs import Need
from cvxstructreg.solvers.row_blocks import screening
from cvxstructreg.solvers.row_blocks.excess import excess_of

#: The tolerance of the preliminary fit on a sample.
SAMPLE_TOL = 1e-2
#: The smallest number of columns that join the set in a round, and their number relative to the nonzero weights.
FEWEST, GROWTH = 100, 2
#: An excess below this part of the tolerance, relative to the largest pull, needs no column.
SMALL_EXCESS = 0.1


@dataclass(frozen=True)
class Sparsifies(Need):
    """L1 or norms make weights zero, and zero is within all bounds."""

    def __str__(self) -> str:
        return "penalties that make weights zero"

    def missing(self, problem: Problem) -> str | None:
        """Refuse problems without such penalties, and bounds that exclude zero."""
        if problem.given.row_blocks.selected:
            return "the columns are a working set already"
        parts = problem.normal_form
        part = parts.separable
        if part is not None and (np.any(part.lower > 0.0) or np.any(part.upper < 0.0)):
            return "the bounds exclude zero weights"
        if part is not None and np.any(part.weights > 0.0):
            return None
        return None if parts.weight_pieces else "no penalty makes weights zero"


class Search:
    """The search for the columns with nonzero weights."""

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.parts: NormalForm = problem.normal_form
        self.design = problem.model.row_blocks
        self.always = self._always()
        self.dropped = np.zeros(self.parts.shape[0], dtype=bool)  # weights that are zero at the optimum
        self._screens = screening.applies(self.parts)
        self._scale = 0.0
        self._sizes = np.zeros(self.parts.shape[0])  # of the last ``left``

    def _always(self) -> Any:
        """The weights that nothing makes zero."""
        held = np.zeros(self.parts.shape[0], dtype=bool)
        if self.parts.separable is not None:
            held |= np.broadcast_to(self.parts.separable.weights > 0.0, self.parts.shape).all(axis=1)
        for piece in self.parts.weight_pieces:
            held |= self._touched(piece)
        return ~held

    def _touched(self, piece: Piece) -> Any:
        """The weights that a piece acts on."""
        if piece.K is None:
            return np.ones(self.parts.shape[0], dtype=bool)
        counts = piece.K.counts if isinstance(piece.K, Selection) else abs(piece.K).sum(axis=0)
        return np.asarray(counts).ravel() > 0

    def first_set(self, start: Iterate, sample: int) -> tuple[Any, tuple[Array, Array]]:
        """The nonzero weights of the start or of a preliminary fit, and the weights without penalty."""
        theta, b = start.theta, start.b
        if not theta.any() and 0 < sample < self.problem.model.n_rows // 2:
            small = sampled(self.problem, sample, for_selection=True)
            if small is not None:
                with muted(InaccurateWarning):
                    found = small.solve(tol=SAMPLE_TOL)
                if found.status != "no_minimiser":
                    theta, b = small.shaped(found.coef, found.intercept)
        return np.flatnonzero(theta.any(axis=1) | self.always), (theta, b)

    def excess(self, left: Array, dual: Mapping[int, Array], solved: Any = ()) -> tuple[Array, dict[int, Array]]:
        """The part of ``left`` that no term on the weights absorbs, and dual points of these terms.

        ``dual`` are dual points of a solution over the weights in ``solved``.
        """
        self._sizes = np.abs(left).max(axis=1)
        self._scale = float(self._sizes.max(initial=0.0))
        return excess_of(self.parts, left, dual, solved)

    def drop(self, objective: float, total: Array, pull: Array, points: dict[int, Array]) -> None:
        """Drop the weights that the gap sphere of a dual point in balance proves to be zero, for good."""
        if self._screens:
            self.dropped |= screening.zeros(self.parts, objective, total, pull, points)

    def missing(self, excess: Array, theta: Array, chosen: Any) -> Any:
        """The weights outside the set with the largest excess."""
        size = np.abs(excess).max(axis=1)
        size[chosen] = size[self.dropped] = 0.0
        size[size <= SMALL_EXCESS * self.tol * self._scale] = 0.0
        room = max(FEWEST, GROWTH * int(np.count_nonzero(theta.any(axis=1))))
        violating = np.flatnonzero(size)
        return violating[np.argsort(-size[violating], kind="stable")[:room]]

    def reserve(self, chosen: Any) -> Any:
        """The columns that may join the set next: those with the largest pulls."""
        room = max(FEWEST, len(chosen))
        sizes = np.where(self.dropped, 0.0, self._sizes)
        sizes[chosen] = 0.0
        likely = np.argpartition(-sizes, min(room, sizes.size - 1))[:room]
        return likely[sizes[likely] > 0.0]

    def next_set(self, chosen: Any, new: Any, theta: Array) -> Any:
        """The set with new columns; if memory is short, without columns of zero weights and with fewer new ones."""
        chosen = chosen[~self.dropped[chosen]]
        if not new.size or self.design.fits(np.concatenate([chosen, new])):
            return np.concatenate([chosen, new])
        chosen = chosen[theta[chosen].any(axis=1) | self.always[chosen]]
        if self.design.fits(np.concatenate([chosen, new[:1]])):
            while not self.design.fits(np.concatenate([chosen, new])):
                new = new[: new.size // 2]
        return np.concatenate([chosen, new])
