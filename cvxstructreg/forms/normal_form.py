"""The normal form of a problem: its terms sorted once into the parts that solvers and certificates can use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom, conjugate, has_conjugate
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.model import Model
from cvxstructreg.forms.composed_forms import PulledForm
from cvxstructreg.forms.function_norm import ScaledFunctionNorm
from cvxstructreg.forms.quadratic_form import (
    DENSE_LIMIT,
    UNSEEN_BY_FACTOR,
    QuadraticForm,
    column_lengths,
    is_more,
    largest_row_sum,
    squared_columns,
    to_dense,
)
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.forms.scaled_form import ScaledForm
from cvxstructreg.forms.separable import Separable
from cvxstructreg.forms.simple_terms import simple_terms
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.runtime.lazy import cached_property

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem

#: Columns whose variance is a smaller part of their mean square than this are far from zero; so many are read at once.
FAR_FROM_ZERO, AT_ONCE = 1e-3, 64


@dataclass(frozen=True, eq=False)
class Piece:
    """``scale * atom(K x)`` with x the scores or the weights: the part of a term that has a dual variable.

    ``number`` is the position of its term in the objective, by which dual points are stored. If a term has several
    parts, those after the first have numbers beyond all terms.
    """

    number: int
    scale: float
    atom: Atom
    K: Any  # None is the identity
    source: Atom  # the function of x: the atom before it was split into ``atom`` and K

    def forward(self, x: Array) -> Array:
        """K x."""
        return x if self.K is None else np.asarray(self.K @ x)

    def adjoint(self, u: Array) -> Array:
        """K'u."""
        return u if self.K is None else np.asarray(self._transposed @ u)

    @cached_property
    def _transposed(self) -> Any:
        """K', made once: SciPy spends more time on transposing a small sparse matrix than on its product."""
        return self.K.T

    def sees(self, x: Array) -> bool:
        """Whether K x is clearly more than round-off, apart from directions in which the atom is flat."""
        size = largest_row_sum(self.K) if sp.issparse(self.K) or isinstance(self.K, np.ndarray) else 1.0
        z, flat = self.forward(x), self.atom.flat()
        return is_more(z if flat is None else z - flat @ (flat.T @ z), UNSEEN_BY_FACTOR * size, x)

    def value(self, x: Array) -> float:
        """scale * atom(K x)."""
        return self.scale * self.atom.value(self.forward(x))

    def grad(self, z: Array) -> Array:
        """The gradient at z = K x, for a smooth atom."""
        return self.scale * self.atom.grad(z)

    def conj(self, u: Array) -> float:
        """(scale * atom)*(u)."""
        return self.scale * conjugate(self.atom, u if self.scale == 1.0 else u / self.scale)

    def into_domain(self, u: Array) -> Array:
        """A point near u in the domain of the conjugate."""
        return self.scale * self.atom.into_domain(u / self.scale)

    def prox_conj(self, v: Array, step: float) -> tuple[Array, Array]:
        """The dual point prox of step * (scale * atom)* at v, and the primal point it belongs to (Moreau)."""
        x = self.atom.prox(v / step, self.scale / step)
        return v - step * x, x

    @property
    def is_smooth(self) -> bool:
        """Whether the atom has a gradient."""
        return self.atom.can("grad")

    @property
    def has_conjugate(self) -> bool:
        """Whether the atom has a conjugate."""
        return has_conjugate(self.atom)


class NormalForm:
    """The parts of a problem; terms of strength zero are left out.

    Attributes
    ----------
    score_pieces, weight_pieces : tuple of Piece
        Losses and pairs; norms and other terms with a prox.
    score_forms, weight_forms : tuple of ScaledForm
        Quadratic terms of the scores and of the weights.
    separable : Separable or None
        Absolute values and bounds.
    simple_terms : tuple of (int, Term)
        The terms with their numbers, after those that are sums of parts were replaced by these.
    function_norm : ScaledFunctionNorm or None
        The function norm of a Kernel model that has no other term on its weights.
    function_forms : tuple of ScaledForm
        With ``function_norm``, the quadratic terms of h = gram theta, the scores without intercept; in other models
        these are quadratic terms of the weights.
    """

    def __init__(self, problem: Problem) -> None:
        self._given, self._terms = problem.given, problem.terms
        self.n_outputs = problem.n_outputs
        n_rows, n_weights = problem.given.n_rows, problem.given.n_weights
        self.shape = (n_weights, problem.n_outputs)
        score_pieces: list[Piece] = []
        weight_pieces: list[Piece] = []
        score_forms: list[ScaledForm] = []
        weight_forms: list[ScaledForm] = []
        function_forms: list[ScaledForm] = []
        self.separable: Separable | None = None
        self.simple_terms = tuple(simple_terms(problem))
        norm = 0.0
        for number, term in self.simple_terms:
            atom, on_scores = term.atom, term.target in ("rows", "scores")
            if atom.can("separable") and not on_scores:  # a bound holds whatever its strength
                part = atom.separable().scaled(term.scale)
                if part.bounded or part.is_weighted:
                    self.separable = part if self.separable is None else self.separable + part
            elif term.scale == 0 and not term.is_constraint:
                continue
            elif term.target == "function" and problem.given.kernel is not None:
                norm += term.scale
            elif term.target == "values":
                function_forms.append(ScaledForm(term.scale, atom.quadratic(n_rows)))
            elif atom.can("quadratic"):
                rows = n_rows if on_scores else n_weights
                scaled = ScaledForm(term.scale, atom.quadratic(rows))
                (score_forms if on_scores else weight_forms).append(scaled)
            else:
                piece = self._piece(number, 1.0 if term.is_constraint else term.scale, atom, term.target)
                (score_pieces if on_scores else weight_pieces).append(piece)
        alone = norm > 0 and not weight_forms and not weight_pieces and self.separable is None
        self.function_norm = ScaledFunctionNorm(norm) if alone else None
        self._norm = 0.0 if alone else norm  # the strength of the function norm beside other terms of the weights
        self._own_forms, self._function_forms = tuple(weight_forms), tuple(function_forms)
        self.function_forms = self._function_forms if alone else ()
        self.score_pieces, self.weight_pieces = tuple(score_pieces), tuple(weight_pieces)
        self.score_forms = tuple(score_forms)

    @cached_property
    def model(self) -> Model:
        """The model of the problem. Sorting the terms does not need it: a Gram matrix is proved convex only here."""
        return self._given.for_terms(self._terms)

    @cached_property
    def weight_forms(self) -> tuple[ScaledForm, ...]:
        """Quadratic terms of the weights."""
        if self.function_norm is not None:
            return self._own_forms
        norm = [ScaledForm(self._norm, QuadraticForm(matrix=self.model.design))] if self._norm else []
        pulled = [ScaledForm(f.scale, PulledForm(f.form, self.model.design)) for f in self._function_forms]
        return (*self._own_forms, *norm, *pulled)

    def _piece(self, number: int, scale: float, atom: Atom, target: str) -> Piece:
        if target == "rows" and isinstance(atom, Loss):
            if atom.rows is None:
                return Piece(number, scale, atom, None, atom)
            picks = (np.ones(len(atom.rows)), (np.arange(len(atom.rows)), atom.rows))
            return Piece(number, scale, atom, sp.csr_array(picks, shape=(len(atom.rows), self._given.n_rows)), atom)
        if not atom.can("split"):
            return Piece(number, scale, atom, None, atom)
        outer, K = atom.split()
        size = self._given.n_rows if target == "scores" else self._given.n_weights
        if K.shape[1] < size:  # a map may leave out the last rows it does not touch
            K = sp.csr_array(K)
            K = sp.csr_array((K.data, K.indices, K.indptr), shape=(K.shape[0], size))
        return Piece(number, scale, outer.for_outputs(self.n_outputs), K, atom)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces, those of the scores first."""
        return self.score_pieces + self.weight_pieces

    @property
    def scores_are_smooth(self) -> bool:
        """Whether all terms of the scores have gradient and Hessian."""
        return all(piece.atom.can("grad", "hessp") for piece in self.score_pieces)

    @cached_property
    def ridge(self) -> Array:
        """For each feature a lower bound m_j with x'Mx >= sum_j m_j x_j^2, M the quadratic part of the weights."""
        total = np.zeros(self.model.n_weights)
        for scaled in self.weight_forms:
            if scaled.form.diagonal is not None:
                total += scaled.scale * scaled.form.diagonal
            else:
                total += scaled.scale * scaled.form.smallest_eigenvalue
        return total

    @cached_property
    def all_penalised(self) -> bool:
        """Whether a ridge or an L1 term penalises every weight by itself."""
        if self.separable is None:
            return bool(np.all(self.ridge > 0))
        c = self.separable.weights
        return bool(c.min(initial=np.inf) > 0 or np.all((self.ridge[:, None] > 0) | (c > 0)))

    @cached_property
    def dense_quadratic(self) -> Array | None:
        """The whole quadratic part of the weights as a dense matrix; None if the problem is too large for that."""
        if self.model.n_weights > DENSE_LIMIT:
            return None
        total = np.zeros((self.model.n_weights, self.model.n_weights))
        for scaled in self.weight_forms:
            total += scaled.scale * to_dense(scaled.form.matrix)
        return total

    @cached_property
    def quadratic_spectrum(self) -> tuple[Array, Array] | None:
        """Eigenvalues and eigenvectors of the quadratic part of the weights; None if too large."""
        if self.dense_quadratic is None:
            return None
        values, vectors = np.linalg.eigh(self.dense_quadratic)
        return values, vectors

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether the quadratic part of the weights is diagonal: then ``ridge`` is its diagonal."""
        return all(scaled.form.diagonal is not None for scaled in self.weight_forms)

    @cached_property
    def column_norms(self) -> Array:
        """The Euclidean norms of the columns of the design matrix, kept with the model."""
        if "_column_norms" not in self.model.__dict__:
            self.model.__dict__["_column_norms"] = column_lengths(self.model.design)
        return np.asarray(self.model.__dict__["_column_norms"])

    def keep_column_norms(self, norms: Array) -> None:
        """Take a solver's ``column_norms``, correct to a few digits, unless they are known: they measure round-off."""
        self.__dict__.setdefault("column_norms", norms)

    @cached_property
    def column_means(self) -> tuple[Array, Array]:
        """The means and the standard deviations of the columns of the design matrix, kept with the model.

        A deviation that is only round-off is zero.
        """
        known = self.model.__dict__
        if "_column_means" not in known:
            X, n = self.model.design, self.model.n_rows
            means = np.asarray(X.sum(axis=0), dtype=float).ravel() / n
            squares = self.column_norms**2 / n
            variances = squares - means**2
            far = np.flatnonzero(variances < FAR_FROM_ZERO * squares)  # the difference has lost digits
            if self.model.row_blocks is not None:  # one pass for all columns
                variances = X.centred_squares(means) / n if far.size else variances
                far = far[:0]
            for some in np.array_split(far, far.size // AT_ONCE + 1) if far.size else ():
                variances[some] = np.mean((to_dense(X[:, some]) - means[some]) ** 2, axis=0)
            deviations = np.sqrt(variances)
            deviations[deviations <= UNIT * np.abs(means)] = 0.0
            known["_column_means"] = means, deviations
        means, deviations = known["_column_means"]
        return means, deviations

    @cached_property
    def largest_relative_mean(self) -> float:
        """The largest mean of a column relative to its standard deviation, kept with the model; 0 without deviation."""
        known = self.model.__dict__
        if "_largest_relative_mean" not in known:
            means, deviations = self.column_means
            ratios = np.divide(np.abs(means), deviations, out=np.zeros_like(means), where=deviations > 0)
            known["_largest_relative_mean"] = float(np.max(ratios, initial=0.0))
        return float(known["_largest_relative_mean"])

    @cached_property
    def piece_gram(self) -> Any:
        """S = sum of K'K over the pieces of the weights, sparse."""
        if self.piece_diagonal is not None:
            return sp.diags_array(self.piece_diagonal, format="csr")
        d = self.model.n_weights
        total = sp.csr_array((d, d))
        for piece in self.weight_pieces:
            total = total + (sp.eye_array(d) if piece.K is None else sp.csr_array(piece.K.T @ piece.K))
            flat = piece.atom.flat()
            if flat is not None:
                seen = piece.adjoint(flat)
                total = total - sp.csr_array(seen @ seen.T)
        return sp.csr_array(total)

    @cached_property
    def piece_diagonal(self) -> Array | None:
        """The diagonal of S when every K only picks rows (groups: in how many each feature is), else None."""
        total = np.zeros(self.model.n_weights)
        for piece in self.weight_pieces:
            if isinstance(piece.K, Selection):
                total += piece.K.counts
                continue
            if piece.atom.flat() is not None:
                return None
            if piece.K is not None and not (sp.issparse(piece.K) and np.all(np.diff(piece.K.tocsr().indptr) <= 1)):
                return None
            total += 1.0 if piece.K is None else squared_columns(piece.K)
        return total

    @cached_property
    def piece_roots(self) -> Array:
        """The norms of the columns of all K of the weights together."""
        total = self.piece_diagonal
        if total is None:
            total = np.zeros(self.model.n_weights)
            for piece in self.weight_pieces:
                K = piece.K
                total += 1.0 if K is None else K.counts if isinstance(K, Selection) else squared_columns(K)
        return np.sqrt(np.maximum(total, 0.0))

    @cached_property
    def piece_norm(self) -> float:
        """An upper bound of the largest eigenvalue of S."""
        return float(max(abs(self.piece_gram).sum(axis=0).max(), np.finfo(float).tiny))

    @cached_property
    def coverage(self) -> Array:
        """A dense matrix whose null space are the weights that no quadratic term and no piece sees."""
        assert self.dense_quadratic is not None
        quadratic = self.dense_quadratic / max(1e-300, float(np.abs(self.dense_quadratic).max(initial=0.0)))
        return np.asarray(quadratic + self.piece_gram.toarray())

    @cached_property
    def coverage_diagonal(self) -> Array:
        """For each weight whether any quadratic term or piece sees it (positive) or not (zero)."""
        total = self.piece_roots
        for scaled in self.weight_forms:
            form = scaled.form
            total = total + (abs(form.factor).sum(axis=0) if form.factor is not None else form.main_diagonal)
        return np.asarray(total)

    def quadratic_value(self, theta: Array) -> float:
        """The quadratic part of the weights."""
        return sum(scaled.value(theta) for scaled in self.weight_forms)

    def quadratic_value_and_grad(self, theta: Array) -> tuple[float, Array]:
        """Both at the price of one."""
        value, gradient = 0.0, np.zeros(self.shape)
        for scaled in self.weight_forms:
            its_value, product = scaled.form.value_and_product(theta)
            value += scaled.scale * its_value
            gradient += (2.0 * scaled.scale) * product
        return value, gradient

    def quadratic_grad(self, theta: Array) -> Array:
        """Its gradient 2 M theta."""
        return sum((scaled.grad(theta) for scaled in self.weight_forms), np.zeros(self.shape))

    def function_grad(self, h: Array) -> Array:
        """The gradient by h of the terms of h."""
        return sum((scaled.grad(h) for scaled in self.function_forms), np.zeros_like(h))

    def smooth_score_grad(self, scores: Array) -> Array:
        """The gradient by the scores of the smooth terms of the scores."""
        total = np.zeros_like(scores)
        for scaled in self.score_forms:
            total += scaled.grad(scores)
        for piece in self.score_pieces:
            if piece.is_smooth:
                total += piece.adjoint(piece.grad(piece.forward(scores)))
        return total

    def smooth_score_hessp(self, scores: Array, p: Array) -> Array:
        """The Hessian by the scores of the smooth terms of the scores, times p."""
        total = np.zeros_like(p)
        for scaled in self.score_forms:
            total += scaled.grad(p)
        for piece in self.score_pieces:
            if piece.is_smooth:
                z = piece.forward(scores)
                total += piece.adjoint(piece.scale * piece.atom.hessp(z, piece.forward(p)))
        return total
