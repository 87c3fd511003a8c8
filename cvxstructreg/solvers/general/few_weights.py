"""What augmented Lagrangian Newton methods require of a problem."""

from __future__ import annotations

from dataclasses import dataclass

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.solvers.general.dual_sets import has_dual_set
from cvxstructreg.solvers.general.smooth_terms import is_smooth
from cvxstructreg.solvers.needs import Need


@dataclass(frozen=True)
class FewWeights(Need):
    """At most ``most`` unknowns and ``entries`` numbers in the data, so that dense Newton matrices are cheap."""

    most: int
    entries: int

    def __str__(self) -> str:
        return f"at most {self.most:,} weights and intercepts"

    def missing(self, problem: Problem) -> str | None:
        """Too many weights, or too many data."""
        model, k = problem.given, problem.n_outputs
        d = model.n_weights
        if (d + 1) * k > self.most or d > DENSE_LIMIT:
            return f"{self} are supported, and there are {(d + 1) * k:,}"
        if model.n_rows * d > self.entries:
            return f"data of at most {self.entries:,} numbers are supported"
        return None


@dataclass(frozen=True)
class DualSets(Need):
    """Every term that is not smooth is a largest linear function over intervals or balls."""

    def __str__(self) -> str:
        return "smooth losses and penalties, L1, bounds, differences, group norms and hinges only"

    def missing(self, problem: Problem) -> str | None:
        """The first other term."""
        parts = problem.normal_form
        for piece in parts.score_pieces:
            if not is_smooth(piece, problem.n_outputs) and not has_dual_set(piece, problem.n_outputs):
                return f"{piece.atom!r} is neither smooth row by row nor piecewise linear"
        for piece in parts.weight_pieces:
            if not is_smooth(piece, problem.n_outputs) and not has_dual_set(piece, problem.n_outputs):
                return f"{piece.source!r} is no L1, group norm or smooth sum over entries after a linear map"
        return None


@dataclass(frozen=True)
class PiecewiseLinear(DualSets):
    """Some term is piecewise linear, and every term that is not smooth is."""

    def __str__(self) -> str:
        return "hinges, absolute values, L1, differences and bounds, beside smooth losses and penalties"

    def missing(self, problem: Problem) -> str | None:
        """The first other term."""
        if (missing := super().missing(problem)) is not None:
            return missing
        parts, k = problem.normal_form, problem.n_outputs
        rough = [piece for piece in (*parts.score_pieces, *parts.weight_pieces) if not is_smooth(piece, k)]
        for piece in rough:
            if piece.atom.can("blocks"):
                return f"{piece.source!r} is a norm of groups; {self} are supported"
        if not rough and parts.separable is None:
            return "no term is piecewise linear"
        return None


@dataclass(frozen=True)
class RowsApart(Need):
    """Losses that are sums over rows."""

    def __str__(self) -> str:
        return "losses that are sums over rows"

    def missing(self, problem: Problem) -> str | None:
        """The first loss that couples rows."""
        for piece in problem.normal_form.score_pieces:
            if isinstance(piece.atom, Loss) and piece.atom.couples_rows:
                return f"{piece.atom!r} couples rows; only {self} are supported"
        return None
