"""Sizes that decide which of two solvers is expected to be faster, as needs of a solver."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.solvers.needs import Need

#: Dense data with at most so many columns and numbers are few: a dense Newton matrix costs little.
FEW_COLUMNS, FEW_NUMBERS = 400, 400_000
#: A problem is small up to this many stored entries of X times outputs: the reference solves it in seconds.
SMALL = 50_000
#: Scores of so many weights on average are of few weights.
FEW_IN_ROW = 3


def is_small(problem: Problem) -> bool:
    """Whether the problem is small enough for the reference solver to take over."""
    model = problem.model
    entries = model.n_rows * model.n_weights
    if sp.issparse(model.design):
        entries = min(entries, max(model.design.nnz, model.n_rows, model.n_weights))
    return int(entries) * problem.n_outputs <= SMALL


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


@dataclass(frozen=True)
class NoLooseWeights(Need):
    """Not few data, many weights that only differences or norms hold, and a loss with kinks of sums of weights.

    Then Newton systems are hard to solve by products, and first-order steps are slow.
    """

    def __str__(self) -> str:
        return "many data, few weights, a smooth loss, scores of few weights, or a ridge or L1 on every weight"

    def missing(self, problem: Problem) -> str | None:
        """What makes the reference faster."""
        if problem.given.n_weights <= DENSE_LIMIT or problem.given.kernel is not None or not is_small(problem):
            return None
        parts, design = problem.normal_form, problem.given.design
        if parts.scores_are_smooth or parts.all_penalised:
            return None
        if sp.issparse(design) and design.nnz <= FEW_IN_ROW * problem.given.n_rows:
            return None
        return "the loss has kinks, no ridge or L1 holds every weight, and the reference solver takes so few data"
