"""Sizes that decide which of two solvers is expected to be faster, as needs of a solver."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers.needs import Need

#: Dense data with at most so many columns and numbers are few: a dense Newton matrix costs little.
FEW_COLUMNS, FEW_NUMBERS = 400, 400_000


@dataclass(frozen=True)
class ManyData(Need):
    """More than few dense data, a kernel, several outputs, or, if ``or_smooth``, second derivatives without jumps."""

    or_smooth: bool = False

    def __str__(self) -> str:
        smooth = ", or losses without jumps of the second derivative" if self.or_smooth else ""
        return f"a kernel, several outputs, sparse data, {FEW_COLUMNS} columns or {FEW_NUMBERS:,} numbers{smooth}"

    def missing(self, problem: Problem) -> str | None:
        """Few dense data."""
        model = problem.given
        if model.kernel is not None or model.row_blocks is not None or sp.issparse(model.design):
            return None
        if problem.n_outputs > 1 or model.n_weights > FEW_COLUMNS or model.n_rows * model.n_weights > FEW_NUMBERS:
            return None
        if self.or_smooth and not _jumps(problem):
            return None
        return f"there are only {model.n_rows:,} x {model.n_weights} dense data"


def _jumps(problem: Problem) -> bool:
    """Whether the second derivative of some loss jumps, and that of every piece is known entry by entry."""
    parts = problem.normal_form
    losses = [piece.atom for piece in parts.score_pieces if isinstance(piece.atom, Loss)]
    return any(loss.has_curvature_jumps for loss in losses) and all(p.atom.can("hess_diag") for p in parts.pieces)
