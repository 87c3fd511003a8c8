"""The problem over some of the weights, with all other weights zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.model import Linear
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.forms.quadratic_form import QuadraticForm
from cvxstructreg.forms.quadratic_penalty import QuadraticPenalty
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.forms.separable import Separable
from cvxstructreg.groups import Groups
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.penalties.box import Box
from cvxstructreg.penalties.l1 import L1
from cvxstructreg.penalties.latent_group_lasso import LatentGroupLasso
from cvxstructreg.runtime.lazy_cvxpy import cp


class RestrictedQuadratic(QuadraticPenalty):
    """w'Mw for the weights that are left."""

    def __init__(self, form: QuadraticForm) -> None:
        self._set_form(form)


@dataclass(frozen=True, eq=False, repr=False)
class Mapped(Atom):
    """outer(K w)."""

    outer: Any
    K: Any

    def split(self) -> tuple[Atom, Any]:
        """The function and the map."""
        return self.outer, self.K

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        K = self.K.tocsr() if isinstance(self.K, Selection) else self.K
        return self.outer.expr(K @ z) if K.shape[0] else cp.Constant(0.0)

    def value(self, z: Array) -> float:
        """outer(K z)."""
        return float(self.outer.value(np.asarray(self.K @ z))) if self.K.shape[0] else 0.0

    @property
    def size(self) -> int | None:
        """Number of weights."""
        return int(self.K.shape[1])


@dataclass(frozen=True, eq=False)
class Restriction:
    """A problem over some weights.

    Attributes
    ----------
    problem : Problem
        The smaller problem. Its terms have the numbers of those of the whole problem.
    chosen : array
        The weights that are left.
    kept : dict
        For terms whose dual points have fewer rows: the rows that are left, and their number in the whole problem.
    """

    problem: Problem
    chosen: Any
    kept: dict[int, tuple[Any, int]]
    shape: tuple[int, int]

    def lift(self, coef: Any, intercept: Any) -> tuple[Array, Array]:
        """The weights and intercepts of the whole problem."""
        small, b = self.problem.shaped(coef, intercept)
        theta = np.zeros(self.shape)
        theta[self.chosen] = small
        return theta, b

    def lift_dual(self, dual: Mapping[int, Array]) -> dict[int, Array]:
        """The dual points of the whole problem; rows that were left out get zeros."""
        lifted = {}
        for number, u in dual.items():
            if number in self.kept:
                rows, size = self.kept[number]
                full = np.zeros((size, u.shape[1]))
                full[rows] = u
                lifted[number] = full
            else:
                lifted[number] = u
        return lifted


def restricted(problem: Problem, chosen: Any, design: Any, target: Term | None = None) -> Restriction:
    """The problem over the chosen weights; ``design`` holds their columns.

    With ``target``, this term replaces the loss, for a model without intercept.
    """
    kept: dict[int, tuple[Any, int]] = {}
    pieces = {piece.number: piece for piece in problem.normal_form.weight_pieces}
    terms = []
    for number, term in enumerate(problem.terms):
        if term.target != "weights":
            terms.append(term if target is None else target)
        elif term.scale == 0.0 and not term.is_constraint:
            terms.append(Term(L1(), 0.0, "weights"))
        else:
            terms.append(Term(_atom(problem, term, pieces.get(number), chosen, kept), term.scale, "weights"))
    intercept = problem.model.intercept and target is None
    small = Problem(Linear(design, intercept), Objective(tuple(terms)))
    return Restriction(small, chosen, kept, problem.normal_form.shape)


def _atom(problem: Problem, term: Term, piece: Piece | None, chosen: Any, kept: dict[int, tuple[Any, int]]) -> Atom:
    atom, d = term.atom, problem.model.n_weights
    if piece is None:
        if atom.can("separable"):
            return _separable(atom.separable(), chosen, d)
        return RestrictedQuadratic(_form(atom.quadratic(d), chosen))
    if atom.can("latent_groups"):
        kept[piece.number] = chosen, d
        indptr, features, costs = atom.latent_groups()
        return LatentGroupLasso(_groups(Groups.from_csr(indptr, features, d, costs), chosen))
    if isinstance(piece.K, Selection) and piece.atom.can("blocks"):
        return _blocks(piece, chosen, kept)
    whole = sp.eye_array(d, format="csr") if piece.K is None else piece.K
    K = sp.csr_array(whole.tocsr() if isinstance(whole, Selection) else whole)[:, chosen]
    if not piece.atom.can("separable"):
        return Mapped(piece.atom, sp.csr_array(K))
    K = sp.csr_array(K)
    rows = np.flatnonzero(np.diff(K.indptr))
    kept[piece.number] = rows, K.shape[0]
    return (
        Mapped(_separable(piece.atom.separable(), rows, K.shape[0]), K[rows]) if rows.size else L1(np.zeros(K.shape[1]))
    )


def _separable(part: Separable, chosen: Any, d: int) -> Atom:
    """The absolute values, or the bounds, of the chosen weights. No atom of the library has both."""
    weights, lower, upper = (
        np.broadcast_to(np.asarray(values, dtype=float).reshape(-1, 1), (d, 1))[chosen, 0]
        for values in (part.weights, part.lower, part.upper)
    )
    return Box(lower, upper) if part.bounded else L1(weights)


def _form(form: QuadraticForm, chosen: Any) -> QuadraticForm:
    if form.diagonal is not None:
        return QuadraticForm.diagonal_form(form.diagonal[chosen])
    if form.factor is not None and not form.is_operator:
        return QuadraticForm(factor=sp.csr_array(sp.csc_array(form.factor)[:, chosen]))
    matrix = form.matrix
    return QuadraticForm(matrix=matrix[chosen][:, chosen] if sp.issparse(matrix) else matrix[np.ix_(chosen, chosen)])


def _positions(chosen: Any, d: int) -> Any:
    position = np.full(d, -1, dtype=np.int64)
    position[chosen] = np.arange(len(chosen))
    return position


def _blocks(piece: Piece, chosen: Any, kept: dict[int, tuple[Any, int]]) -> Atom:
    """Norms over the chosen members of each group; groups without such members are left out."""
    indptr, weights = piece.atom.blocks()
    position = _positions(chosen, piece.K.shape[1])[piece.K.indices]
    rows = np.flatnonzero(position >= 0)
    group = np.repeat(np.arange(len(weights)), np.diff(indptr))[rows]
    sizes = np.bincount(group, minlength=len(weights))
    used = np.flatnonzero(sizes)
    kept[piece.number] = rows, piece.K.shape[0]
    starts = np.concatenate([[0], np.cumsum(sizes[used])])
    return Mapped(BlockNorms(starts, weights[used]), Selection(position[rows], len(chosen)))


def _groups(groups: Groups, chosen: Any) -> Groups:
    position = _positions(chosen, groups.n_features)[groups.indices]
    rows = np.flatnonzero(position >= 0)
    group = np.repeat(np.arange(len(groups.weights)), np.diff(groups.indptr))[rows]
    sizes = np.bincount(group, minlength=len(groups.weights))
    used = np.flatnonzero(sizes)
    starts = np.concatenate([[0], np.cumsum(sizes[used])])
    return Groups.from_csr(starts, position[rows], len(chosen), weights=groups.weights[used])
