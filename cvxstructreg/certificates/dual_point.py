"""The dual point that proves a lower bound, in a form that anyone can check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cvxstructreg.certificates.row_sums.kept_dual import KeptPoint
from cvxstructreg.certificates.score_dual import ScoreDual
from cvxstructreg.forms.chains.chain_dual import ChainPoint
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A feasible point of the dual problem: by Fenchel duality, its ``value`` is a lower bound on the optimum.

    With u the ``scores``, the dual points of the terms on the weights add up to ``-X'u``, and u sums to zero over the
    rows if the model has an intercept. The value is minus the sum of the conjugates::

        value = -sum_t f_t*(u_t)                   f_t = scale_t * atom_t

    L1 of strength lam requires ``|separable| <= lam`` and adds nothing; ``lam ||w||^2`` adds ``||v||^2 / (4 lam)``
    where v is what the other terms leave of ``-X'u``; a group norm of strength lam requires ``||u_g|| <= lam`` for the
    block u_g of each group in ``terms`` and adds nothing. For a kernel model with the function norm of strength lam the
    weights add ``u'gram u / (4 lam)``.

    Attributes
    ----------
    value : float
        The dual objective; far from an optimum it may be a lower number, if the conjugate of a quadratic term is only
        bounded. ``Certificate.lower_bound`` is smaller still: possible round-off is subtracted from it.
    scores : array of shape (n,) or (n, k)
        The derivative u of the terms on the scores.
    terms : dict
        The dual points u_t of losses, pairs, group norms and similar terms, keyed by the number of the term in the
        objective. A term ``atom(K w)``, such as the stacked groups, has a dual point of the shape of ``K w``.
    separable : array of shape (d,) or (d, k), or None
        The dual point of L1 terms and bounds together, None if there are none.
    function : array of shape (n,) or (n, k), or None
        The dual point of quadratic terms on the function of a kernel model (``on_function()``): the function norm then
        adds ``(u + function)'gram (u + function) / (4 lam)``.

    Examples
    --------
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> X, y = np.eye(3), np.array([3.0, -2.0, 0.5])
    >>> problem = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 1.0 * csr.L1())
    >>> certificate = problem.solve().certificate
    >>> u = certificate.dual.scores
    >>> bool(np.abs(X.T @ u).max() <= 1.0)
    True
    >>> round(float(-(u @ y) - u @ u / 2.0), 6), round(certificate.dual.value, 6)
    (4.125, 4.125)
    """

    value: float
    _total: Array
    _terms: dict[int, Array]
    _separable: Any = None  # an array, an AbsorbedPull, or None
    _function: Array | None = None
    _factor: float = 1.0  # applied on access: certificates of most points are never looked at

    @property
    def scores(self) -> Array:
        """The derivative of the terms on the scores."""
        return self._scaled(self._total)

    @property
    def terms(self) -> dict[int, Array]:
        """The dual points of losses, pairs, group norms and similar terms, by the number of the term."""
        return {number: self._scaled(u) for number, u in self._terms.items()}

    @property
    def separable(self) -> Array | None:
        """The dual point of L1 terms and bounds together."""
        given = self._separable
        return None if given is None else _as_vector(given if isinstance(given, np.ndarray) else given.gather())

    @property
    def function(self) -> Array | None:
        """The dual point of quadratic terms on the function of a kernel model."""
        return None if self._function is None else _as_vector(self._function)

    def _scaled(self, u: Any) -> Array:
        u = u.gather() if isinstance(u, (KeptPoint, ChainPoint)) else u
        return _as_vector(u if self._factor == 1.0 else self._factor * u)

    def __repr__(self) -> str:
        return f"DualPoint(value={self.value:.9g}, scores of shape {self.scores.shape}, terms {sorted(self._terms)})"


class Proof(NamedTuple):
    """A lower bound, after the charge for round-off, and the dual point that proves it."""

    bound: float
    dual: DualPoint | None = None


#: No bound was found.
NO_PROOF = Proof(-np.inf)


def best(*proofs: Proof) -> Proof:
    """The proof of the highest bound."""
    return max((proof for proof in proofs if proof.bound > -np.inf), key=lambda proof: proof.bound, default=NO_PROOF)


def dual_of(
    parts: NormalForm,
    start: ScoreDual,
    value: float,
    factor: float = 1.0,
    weight_points: list[Array] | None = None,
    separable: Any = None,
    function: Array | None = None,
) -> DualPoint:
    """The dual point made of ``factor`` times the points of the scores and weights; arrays are not copied."""
    terms = {piece.number: u for piece, u in zip(parts.score_pieces, start.points, strict=True)}
    terms |= {piece.number: q for piece, q in zip(parts.weight_pieces, weight_points or (), strict=bool(weight_points))}
    alone = len(start.points) == 1 and parts.score_pieces[0].K is None and not parts.score_forms
    return DualPoint(value, start.points[0] if alone else start.total, terms, separable, function, factor)


def zero_dual(parts: NormalForm) -> DualPoint:
    """The dual point zero, which proves the bound 0 if no term is negative."""
    none, scores = np.zeros(parts.shape), np.zeros((parts.model.n_rows, parts.n_outputs))
    terms = {piece.number: piece.forward(scores) for piece in parts.score_pieces}
    terms |= {piece.number: piece.forward(none) for piece in parts.weight_pieces}
    return DualPoint(0.0, scores, terms, None if parts.separable is None else none)


def _as_vector(u: Array) -> Array:
    """A single column as a vector, like ``Solution.coef``."""
    return u[:, 0] if u.shape[1] == 1 else u
