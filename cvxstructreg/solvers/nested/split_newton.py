"""Proximal Newton steps for smooth losses beside several terms with a prox.

    minimize  F(x) + sum_t f_t(K_t x),     x = (theta, b),  F the smooth losses and penalties and all quadratic terms

Each step minimises the model in which F is replaced by its second-order expansion, with ADMM
(:mod:`cvxstructreg.solvers.nested.splitting`), and goes as far towards that point as the objective decreases. A step
needs one gradient and one Hessian of the losses, and never their prox: that of a loss that couples rows is expensive.
See Lee, Sun and Saunders (2014).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import Piece
from cvxstructreg.forms.separable import Separable
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.units import power_of_two
from cvxstructreg.solvers.general.excess import into_domain
from cvxstructreg.solvers.general.few_weights import FewWeights
from cvxstructreg.solvers.general.newton_matrix import Hessians, bent
from cvxstructreg.solvers.general.smooth_terms import SmoothTerm, is_smooth
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.needs import Need
from cvxstructreg.solvers.nested.splitting import Splitting, copy_of
from cvxstructreg.solvers.solver import Solver

#: Limits of the problem size: Newton matrices are dense.
MOST_UNKNOWNS, MOST_ENTRIES = 1_500, 5_000_000
#: The accuracy of the first model problem, its factor from one step to the next, and its least value.
FIRST_ACCURACY, SHARPEN, FINEST = 1e-3, 0.1, 1e-13
#: Iterations for one model problem, and steps.
MOST_INNER, MOST_STEPS = 3_000, 200
#: Steps of the best accuracy that may leave the objective as it is.
MOST_STAYS = 3
#: The part of the decrease of the model that is enough, and halvings of a step.
ENOUGH, HALVINGS = 0.1, 30
#: A point is promising if the model expects a decrease of at most this part of the tolerance.
ACCURATE = 0.1
#: Round-off of an objective, relative to its value.
ROUND_OFF = 1e-14


@dataclass(frozen=True)
class SmoothLossAndProxes(Need):
    """Some loss is smooth, and every other term is smooth or quadratic or has a closed-form prox."""

    def __str__(self) -> str:
        return "a smooth loss, and a closed-form prox for every term that is not smooth"

    def missing(self, problem: Problem) -> str | None:
        """Name the first term that has neither, or say that no loss is smooth."""
        parts, k = problem.normal_form, problem.n_outputs
        for piece in parts.pieces:
            if not is_smooth(piece, k) and not piece.atom.can("prox"):
                return f"{piece.atom!r} has no closed-form prox"
        smooth = any(is_smooth(piece, k) for piece in parts.score_pieces)
        return None if smooth else "no term on the scores has a gradient and a Hessian row by row"


class _Smooth:
    """F, with its gradient and Hessian by x."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.parts, self.k = problem, problem.normal_form, problem.n_outputs
        model, d = problem.model, problem.model.n_weights
        X = model.design.toarray() if sp.issparse(model.design) else np.asarray(model.design)
        # intercepts are in the unit of the weights, so that a norm of x means the same whatever the unit of the data
        self.unit = power_of_two(float(self.parts.column_norms.max(initial=0.0)) / np.sqrt(len(X)))
        self.rows = np.column_stack([X, np.full(len(X), self.unit)]) if model.intercept else X
        self.n_weights, self.size = d, self.rows.shape[1]
        pick = np.eye(d, self.size)
        self.terms = [SmoothTerm(p, p.forward(self.rows)) for p in self.parts.score_pieces if is_smooth(p, self.k)]
        for piece in self.parts.weight_pieces:
            if is_smooth(piece, self.k):
                self.terms.append(SmoothTerm(piece, piece.forward(pick), of_scores=False))
        self.quadratic = np.zeros((self.size, self.size))
        if self.parts.weight_forms:
            assert self.parts.dense_quadratic is not None
            self.quadratic[:d, :d] = 2.0 * self.parts.dense_quadratic
        for scaled in self.parts.score_forms:
            self.quadratic += self.rows.T @ scaled.grad(self.rows)

    def value(self, x: Array) -> float:
        """F(x)."""
        total = 0.5 * float(np.vdot(x, self.quadratic @ x))
        return total + sum(t.piece.scale * t.piece.atom.value(t.rows @ x) for t in self.terms)

    def expansion(self, x: Array) -> tuple[Array, Array, list[tuple[Array, Hessians]]]:
        """The gradient, the Hessian with the columns of x one after the other, and both by the scores of each term."""
        D, k = self.size, self.k
        gradient, H, by_scores = self.quadratic @ x, np.zeros((k, D, k, D)), []
        for a in range(k):
            H[a, :, a, :] = self.quadratic
        for term in self.terms:
            z = np.asarray(term.rows @ x)
            slope, hessians = term.grad(z), term.hessians(z)
            gradient += term.rows.T @ slope
            term.added_to(H, hessians)
            by_scores.append((slope, hessians))
        return gradient, H.reshape(k * D, k * D), by_scores

    def parted(self, x: Array) -> tuple[Array, Array]:
        """(theta, b) of x."""
        b = self.unit * x[self.n_weights] if self.size > self.n_weights else np.zeros(self.k)
        return x[: self.n_weights].copy(), b

    def joined(self, theta: Array, b: Array) -> Array:
        """x of (theta, b)."""
        return np.vstack([theta, b[None, :] / self.unit]) if self.size > self.n_weights else theta.copy()


def _splitting(smooth: _Smooth, x: Array) -> Splitting:
    """The terms that are not smooth; the separable part comes last, as its copies have exact zeros."""
    parts, k = smooth.parts, smooth.k
    terms: list[tuple[Atom | Separable, float, Any, int | None]] = []
    for piece in parts.pieces:
        if not is_smooth(piece, k):
            K = piece.forward(smooth.rows) if piece in parts.score_pieces else _padded(piece, smooth.size)
            terms.append((piece.atom, piece.scale, K, piece.number))
    if parts.separable is not None:
        terms.append((parts.separable, 1.0, None, None))
    return Splitting([copy_of(*term, x, smooth.n_weights) for term in terms], smooth.size, k)


def _padded(piece: Piece, size: int) -> Any:
    """K of a term of the weights, with a column of zeros for an intercept."""
    if piece.K is None:
        return None
    matrix = piece.K.tocsr() if hasattr(piece.K, "tocsr") else sp.csr_array(piece.K)
    return sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], size))


def run(problem: Problem, start: Iterate, tol: float) -> Iterator[Iterate]:
    """Newton steps until no step decreases the objective."""
    smooth = _Smooth(problem)
    x = smooth.joined(start.theta, start.b)
    splitting, accuracy = _splitting(smooth, x), FIRST_ACCURACY
    for copy in splitting.copies:
        if copy.number is not None and copy.number in start.dual:
            copy.multiplier = np.array(start.dual[copy.number])
    value, rough, stays = smooth.value(x), splitting.value(x), 0
    for count in range(1, MOST_STEPS + 1):
        gradient, H, by_scores = smooth.expansion(x)
        ahead = _feasible(splitting, splitting.minimise(H, gradient - _times(H, x), x, accuracy, MOST_INNER))
        step, ahead_rough = ahead - x, splitting.value(ahead)
        expected = float(np.vdot(gradient, step)) + 0.5 * float(np.vdot(step, _times(H, step))) + ahead_rough - rough
        dual, before = _dual(smooth, splitting, by_scores, x, step), value + rough
        limit_part = ENOUGH
        for _ in range(HALVINGS):
            trial = x + step
            its_value, its_rough = smooth.value(trial), splitting.value(trial)
            limit = value + rough + limit_part * min(expected, 0.0) + ROUND_OFF * (abs(value) + abs(rough))
            if its_value + its_rough <= limit or not np.isfinite(ahead_rough):
                x, value, rough = trial, its_value, its_rough
                break
            step, limit_part = 0.5 * step, 0.5 * limit_part
        promising = accuracy <= tol and -expected <= ACCURATE * tol * abs(before)
        stays = stays + 1 if accuracy <= FINEST and value + rough >= before - ROUND_OFF * abs(before) else 0
        accuracy = max(SHARPEN * accuracy, FINEST)
        last = count == MOST_STEPS or stays == MOST_STAYS
        yield Iterate(*smooth.parted(x), dual, exhausted=last, promising=promising or last)


def _times(H: Array, x: Array) -> Array:
    """The Hessian times x."""
    return np.asarray(H @ x.T.reshape(-1)).reshape(x.shape[1], len(x)).T


def _feasible(splitting: Splitting, x: Array) -> Array:
    """x with the last copy of the weights, which satisfies bounds and has exact zeros."""
    x = x.copy()
    for copy in splitting.copies:
        if copy.K is None:
            x[: len(copy.Z)] = copy.Z
    return x


def _dual(
    smooth: _Smooth, splitting: Splitting, by_scores: list[tuple[Array, Hessians]], x: Array, step: Array
) -> dict[int, Array]:
    """The multipliers, and the gradients of the smooth terms as expected after the step."""
    dual = {copy.number: copy.multiplier for copy in splitting.copies if copy.number is not None}
    left = -smooth.quadratic @ (x + step)
    for term, (slope, hessians) in zip(smooth.terms, by_scores, strict=True):
        u = into_domain(term.piece, slope + bent(hessians, np.asarray(term.rows @ step)))
        dual[term.piece.number], left = u, left - term.rows.T @ u
    _absorb(splitting, dual, left)
    return dual


def _absorb(splitting: Splitting, dual: dict[int, Array], left: Array) -> None:
    """Add what no term takes of the pull to the multiplier of a term that picks weights, if there is one.

    A bound on a weight takes only one sign, so that even a small rest would leave the dual point without a proof.
    """
    left = left - sum(copy.adjoint(copy.multiplier, len(left)) for copy in splitting.copies if copy.number is not None)
    for copy in splitting.copies:
        if copy.number is None and isinstance(copy.atom, Separable):
            left = left - copy.adjoint(copy.atom.absorb(left[: len(copy.Z)]), len(left))
    for copy in splitting.copies:
        times = copy.times_picked(splitting.size)
        if copy.number is not None and times is not None:
            shared = np.divide(left, times, out=np.zeros_like(left), where=times > 0)
            dual[copy.number] = copy.multiplier + copy.forward(shared)
            return


NEEDS = (SmoothLossAndProxes(), FewWeights(MOST_UNKNOWNS, MOST_ENTRIES))
SOLVER = Solver("split_newton", run, NEEDS, rough_zeros=True)
