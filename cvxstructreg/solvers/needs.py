"""What a solver requires of a problem, as data: each check stands next to the message of its refusal.

A need is a small frozen dataclass. ``str(need)`` states the requirement, and :meth:`Need.missing` says why a problem
does not meet it. All needs use the normal form of the problem as the user gave it. A check costs at most one pass over
the data, and never factorises a Gram matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.solvers.kinds import BLOCKS, KERNEL, KINDS, LINEAR


@dataclass(frozen=True)
class Need:
    """One condition that a problem must meet; only models of the ``kinds`` can."""

    kinds: ClassVar[frozenset[str]] = KINDS

    def missing(self, problem: Problem) -> str | None:
        """Why the problem does not meet the condition; None if it does."""
        raise NotImplementedError


@dataclass(frozen=True)
class KernelModel(Need):
    """The scores come from a Kernel model."""

    kinds: ClassVar[frozenset[str]] = frozenset({KERNEL})

    def __str__(self) -> str:
        return "a Kernel model"

    def missing(self, problem: Problem) -> str | None:
        """Refuse Linear models."""
        return "only Kernel models are supported" if problem.given.kernel is None else None


@dataclass(frozen=True)
class LinearModel(Need):
    """The scores come from a Linear model."""

    kinds: ClassVar[frozenset[str]] = frozenset({LINEAR, BLOCKS})

    def __str__(self) -> str:
        return "a Linear model"

    def missing(self, problem: Problem) -> str | None:
        """Refuse Kernel models."""
        return "only Linear models are supported" if problem.given.kernel is not None else None


@dataclass(frozen=True)
class RowBlockModel(Need):
    """The data are in blocks of rows."""

    kinds: ClassVar[frozenset[str]] = frozenset({BLOCKS})

    def __str__(self) -> str:
        return "data in blocks of rows"

    def missing(self, problem: Problem) -> str | None:
        """Refuse data in memory."""
        return "only data in blocks of rows are supported" if problem.given.row_blocks is None else None


@dataclass(frozen=True)
class FunctionNorm(Need):
    """In a Kernel model, the function norm is the only term on the weights."""

    def __str__(self) -> str:
        return "RKHSNorm() as the only term on the weights of a Kernel model"

    def missing(self, problem: Problem) -> str | None:
        """Name the first other term."""
        if problem.given.kernel is None or problem.normal_form.function_norm is not None:
            return None
        if not any(term.target == "function" and term.scale > 0 for term in problem.terms):
            return "the function norm RKHSNorm() is missing"
        other = next(term.atom for term in problem.terms if term.target == "weights" and _is_active(term))
        return f"RKHSNorm() must be the only term on the weights, but there is also {other!r}"


@dataclass(frozen=True)
class Outputs(Need):
    """The number of outputs: one for most losses, or one per class for a multiclass loss."""

    least: int = 1
    most: int | None = None

    def __str__(self) -> str:
        if self.least == self.most == 1:
            return "a single output"
        return f"{self.least} or more outputs" if self.most is None else f"{self.least} to {self.most} outputs"

    def missing(self, problem: Problem) -> str | None:
        """Report the number of outputs of the problem."""
        k = problem.n_outputs
        if self.least <= k and (self.most is None or k <= self.most):
            return None
        return f"requires {self}, but the problem has {k}"


@dataclass(frozen=True)
class OneLoss(Need):
    """One loss and no other term on the scores; ``forms`` allows quadratic terms."""

    forms: bool = False

    def __str__(self) -> str:
        return "one loss and no other term on the scores" + (" except quadratic ones" if self.forms else "")

    def missing(self, problem: Problem) -> str | None:
        """Refuse several losses, and penalties on the scores."""
        parts = problem.normal_form
        pieces = parts.score_pieces
        if len(pieces) != 1 or not isinstance(pieces[0].atom, Loss) or (parts.score_forms and not self.forms):
            return f"only {self} is supported"
        return None


@dataclass(frozen=True)
class ScoresCan(Need):
    """Every term on the scores that is not quadratic has all capabilities of one of the alternatives."""

    alternatives: tuple[tuple[str, ...], ...]
    words: str  # names these capabilities in messages
    lacks: str = ""  # the words of a refusal, if not "no" and ``words``
    losses: bool = False  # whether penalties on the scores are refused
    rowwise: bool = False  # whether each loss must be a sum over rows of functions of the scores of one row

    def __str__(self) -> str:
        return f"losses with {self.words}"

    def missing(self, problem: Problem) -> str | None:
        """Name the first atom that lacks the capabilities."""
        for piece in problem.normal_form.score_pieces:
            able = any(piece.atom.can(*names) for names in self.alternatives)
            if (
                not able
                or (self.losses and not isinstance(piece.atom, Loss))
                or (self.rowwise and not acts_by_row(piece))
            ):
                return f"{piece.atom!r} has {self.lacks or f'no {self.words}'}"
        return None


@dataclass(frozen=True)
class NoScoreForms(Need):
    """No quadratic term on the scores, and a single loss if there are several outputs."""

    def __str__(self) -> str:
        return "no quadratic term on the scores"

    def missing(self, problem: Problem) -> str | None:
        """Refuse graphs on the examples, and several losses with several outputs."""
        parts = problem.normal_form
        if parts.score_forms:
            return "a quadratic term on the scores couples rows"
        if parts.n_outputs > 1 and len(parts.score_pieces) > 1:
            return "several losses with several outputs are not supported"
        return None


@dataclass(frozen=True)
class Quadratic(Need):
    """All terms on the weights are quadratic: no L1, no bounds, no norms."""

    def __str__(self) -> str:
        return "only quadratic terms on the weights"

    def missing(self, problem: Problem) -> str | None:
        """Name the first term that is not quadratic."""
        parts = problem.normal_form
        if parts.separable is not None:
            return "L1 and bounds have no gradient; only quadratic terms on the weights are supported"
        if parts.weight_pieces:
            name = type(parts.weight_pieces[0].source).__name__
            return f"{name} is not a quadratic function of the weights"
        return None


@dataclass(frozen=True)
class SmoothWeights(Need):
    """All terms on the weights are quadratic, or have second derivatives; for some solvers a gradient is enough."""

    derivatives: tuple[str, ...] = ("grad", "hessp")

    def __str__(self) -> str:
        return "quadratic or smooth terms on the weights"

    def missing(self, problem: Problem) -> str | None:
        """Name the first term that is not smooth."""
        parts = problem.normal_form
        if parts.separable is not None:
            return "L1 and bounds have no gradient; only quadratic and smooth terms on the weights are supported"
        for piece in parts.weight_pieces:
            if not piece.atom.can(*self.derivatives):
                name, needed = type(piece.source).__name__, " and ".join(self.derivatives)
                return f"{name} is not a quadratic function of the weights, and has no {needed}"
        return None


@dataclass(frozen=True)
class HoldsEveryWeight(Need):
    """In a Linear model, a quadratic term is strongly convex in all weights (Kernel models: :class:`FunctionNorm`)."""

    def __str__(self) -> str:
        return "a quadratic term that penalises every weight, such as Ridge()"

    def missing(self, problem: Problem) -> str | None:
        """Refuse problems with weights that have no such term."""
        if problem.given.kernel is not None:
            return None
        parts = problem.normal_form
        plain = [
            scaled.scale * scaled.form.diagonal for scaled in parts.weight_forms if scaled.form.diagonal is not None
        ]
        if bool(np.all(sum(plain, np.zeros(1)) > 0)) or bool(np.all(parts.ridge > 0)):
            return None
        return f"there is no {str(self).removeprefix('a ')}"


@dataclass(frozen=True)
class L1OrBounds(Need):
    """L1 or bounds, and otherwise only quadratic terms; ``bounds`` says whether bounds are supported."""

    bounds: bool = True

    def __str__(self) -> str:
        return "L1 or bounds" if self.bounds else "L1 without bounds"

    def missing(self, problem: Problem) -> str | None:
        """Refuse problems without L1, and those with other norms or with unsupported bounds."""
        parts = problem.normal_form
        if parts.weight_pieces:
            return f"{parts.weight_pieces[0].source!r} is neither separable nor quadratic"
        if parts.separable is None:
            return "there is neither L1 nor a bound, so no weight is exactly zero at the optimum"
        return None if self.bounds else NoBounds().missing(problem)


@dataclass(frozen=True)
class NoBounds(Need):
    """The weights are not bounded."""

    def __str__(self) -> str:
        return "no bounds on the weights"

    def missing(self, problem: Problem) -> str | None:
        """Refuse bounds."""
        part = problem.normal_form.separable
        return "bounds on the weights are not supported" if part is not None and part.bounded else None


@dataclass(frozen=True)
class GroupNorms(Need):
    """At least one term is a sum of norms over groups of weights, and all other terms are quadratic or separable."""

    disjoint: bool = False

    def __str__(self) -> str:
        return "disjoint groups" if self.disjoint else "groups, which may overlap"

    def missing(self, problem: Problem) -> str | None:
        """Refuse problems without groups, with other norms, or with overlapping groups if these are not supported."""
        parts = problem.normal_form
        if not parts.weight_pieces:
            return "there are no groups"
        for piece in parts.weight_pieces:
            if not piece.atom.can("blocks") or not (piece.K is None or isinstance(piece.K, Selection)):
                return f"{piece.source!r} is not a sum of norms over groups of weights"
        if self.disjoint and (parts.piece_diagonal is None or np.any(parts.piece_diagonal > 1)):
            return "the groups overlap"
        return None


@dataclass(frozen=True)
class Matrices(Need):
    """All quadratic terms on the weights have sparse or small matrices."""

    def __str__(self) -> str:
        return "quadratic terms with sparse or small matrices"

    def missing(self, problem: Problem) -> str | None:
        """Refuse virtual nodes, and large dense matrices."""
        for scaled in problem.normal_form.weight_forms:
            if scaled.form.is_operator:
                return "a quadratic term has no sparse matrix, because virtual nodes were eliminated"
            given = scaled.form.factor if scaled.form.factor is not None else scaled.form.matrix
            if not sp.issparse(given) and given.shape[1] > DENSE_LIMIT:
                return f"a quadratic term has a dense matrix of more than {DENSE_LIMIT} rows"
        return None


@dataclass(frozen=True)
class Factorisable(Need):
    """Quadratic terms that couple weights have at most ``most`` weights."""

    most: int

    def __str__(self) -> str:
        return f"at most {self.most} weights if quadratic terms couple weights"

    def missing(self, problem: Problem) -> str | None:
        """Refuse larger problems."""
        parts = problem.normal_form
        if problem.given.kernel is not None or problem.given.n_weights <= self.most:
            return None
        dense = parts.score_forms or any(scaled.form.diagonal is None for scaled in parts.weight_forms)
        return f"quadratic terms that couple more than {self.most} weights are not supported" if dense else None


@dataclass(frozen=True)
class FewFeatures(Need):
    """Far fewer features than labelled rows: at most ``always`` features, or ``part`` times the number of rows."""

    always: int
    part: float

    def __str__(self) -> str:
        return "far fewer features than labelled rows"

    def missing(self, problem: Problem) -> str | None:
        """Refuse too many features."""
        k, d = problem.n_outputs, problem.given.n_weights
        hinges = [piece.atom.centred_hinges(k) for piece in problem.normal_form.score_pieces]
        labelled = sum(len(h.costs) for h in hinges if h.tau < 0)  # active at zero weights, unlike hinges of pairs
        if d <= max(self.always, self.part * labelled) and d < sum(len(h.costs) for h in hinges):
            return None
        return f"requires {self}, but there are {d} features for {labelled} labelled rows"


@dataclass(frozen=True)
class Proxes(Need):
    """Every term that is neither quadratic nor separable is a function with a closed-form prox after a linear map."""

    def __str__(self) -> str:
        return "a closed-form prox for every term"

    def missing(self, problem: Problem) -> str | None:
        """Name the first term without one."""
        for piece in problem.normal_form.pieces:
            if not piece.atom.can("prox"):
                return f"{piece.atom!r} has no closed-form prox"
        return None


@dataclass(frozen=True)
class OneProx(Need):
    """At most one term on the weights is nonsmooth, and that term has a closed-form prox."""

    def __str__(self) -> str:
        return "at most one nonsmooth term on the weights, with a closed-form prox"

    def missing(self, problem: Problem) -> str | None:
        """Refuse several such terms, and a term without a closed-form prox."""
        parts = problem.normal_form
        rough = [piece for piece in parts.weight_pieces if not piece.is_smooth]
        others = [piece.source for piece in rough]
        names = [type(atom).__name__ for atom in others] + (["L1 or bounds"] if parts.separable is not None else [])
        if len(names) > 1:
            return f"{' and '.join(names)} are nonsmooth; only one nonsmooth term is supported"
        if others and not others[0].can("prox"):
            return f"{names[0]} has no closed-form prox"
        if others and rough[0].K is not None and not others[0].has_closed_prox:
            return f"the parts of {names[0]} overlap or have member weights, so there is no closed-form prox"
        return None


def acts_by_row(piece: Piece) -> bool:
    """Whether the piece is a loss that is a sum over rows, each a function of the scores of one row."""
    picks = piece.K is None or (sp.issparse(piece.K) and np.all(np.diff(sp.csr_array(piece.K).indptr) <= 1))
    return isinstance(piece.atom, Loss) and not piece.atom.couples_rows and bool(picks)


def _is_active(term: Term) -> bool:
    """Whether a term affects the objective."""
    return term.scale > 0 or term.is_constraint
