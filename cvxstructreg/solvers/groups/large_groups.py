"""Which solver is expected to be the fastest where one of some disjoint groups holds many of the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.solvers.needs import Need, acts_by_row

#: Groups of more than this part of the features are large: Newton steps on all of them are faster.
LARGE_PART = 0.2
#: Up to this many entries of X, loading compiled loops takes longer than a solve without them.
FEW_NUMBERS = 5_000
#: Up to this many features, dense Newton systems need no compiled loops.
FEW_FEATURES = 300


def large_group(parts: NormalForm) -> int | None:
    """The number of features of the largest group; None if the groups overlap or none of them is large."""
    d = parts.model.n_weights
    if parts.piece_diagonal is None or np.any(parts.piece_diagonal > 1):
        return None
    blocks = [piece.atom.blocks()[0] for piece in parts.weight_pieces if piece.atom.can("blocks")]
    largest = max((int(np.max(np.diff(starts), initial=0)) for starts in blocks), default=0)
    return largest if largest > LARGE_PART * d else None


def _are_few(problem: Problem) -> bool:
    """Whether there are few data."""
    return problem.given.n_rows * problem.given.n_weights <= FEW_NUMBERS


def _suit_dense_systems(problem: Problem) -> bool:
    """Whether there are few features, one output, and losses with curvature for each row."""
    pieces = problem.normal_form.score_pieces
    smooth = all(piece.atom.can("grad", "hess_diag") and acts_by_row(piece) for piece in pieces)
    return problem.n_outputs == 1 and problem.given.n_weights <= FEW_FEATURES and smooth


@dataclass(frozen=True)
class SmallGroups(Need):
    """No large group. Few data are exempt, unless dense Newton systems suit them."""

    def __str__(self) -> str:
        return f"few data, or groups of at most {LARGE_PART:.0%} of the features"

    def missing(self, problem: Problem) -> str | None:
        """The part of the features that one group holds."""
        if _are_few(problem) and not _suit_dense_systems(problem):
            return None
        largest = large_group(problem.normal_form)
        return None if largest is None else f"one group holds {largest} of {problem.given.n_weights} features"


@dataclass(frozen=True)
class ManyDataOrSmallGroups(Need):
    """No large group beside few data for which dense Newton systems without compiled loops are as fast."""

    def __str__(self) -> str:
        return f"{FEW_NUMBERS:,} numbers, or groups of at most {LARGE_PART:.0%} of the features"

    def missing(self, problem: Problem) -> str | None:
        """Few data."""
        if not (_are_few(problem) and _suit_dense_systems(problem)) or large_group(problem.normal_form) is None:
            return None
        return f"{problem.given.n_rows:,} x {problem.given.n_weights} data are too few for compiled loops"
