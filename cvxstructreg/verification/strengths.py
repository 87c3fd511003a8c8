"""For which strengths given weights are optimal: least squares on the optimality conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import null_space
from scipy.optimize import nnls

from cvxstructreg.certificates.score_dual import dual_point
from cvxstructreg.core.loss import Loss
from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.verification.given import GivenWeights

#: Weights below this part of the largest one count as zero.
ZERO = 1e-7
#: A factor within this of 1 is no change; within it of a known factor it has that reason.
SAME, LIKE = 1e-3, 0.02
#: Up to so many nonzero weights, directions along which fused weights stay equal are computed.
MOST_ENTRIES = 1000


def penalty_terms(problem: Problem) -> tuple[int, ...]:
    """Return the numbers of all terms with a strength, except losses and bounds."""
    return tuple(
        number
        for number, term in enumerate(problem.terms)
        if not isinstance(term.atom, Loss) and not term.is_constraint and term.scale > 0
    )


def with_factors(problem: Problem, factors: dict[int, float]) -> Problem:
    """Return the problem with the strengths of these terms multiplied by factors."""
    terms = [replace(t, scale=factors.get(number, 1.0) * t.scale) for number, t in enumerate(problem.terms)]
    return Problem(problem.given, Objective(tuple(terms)))


def fitted_factors(problem: Problem, given: GivenWeights) -> Iterator[dict[int, float]]:
    """Yield factors of the strengths that make the weights as nearly stationary as possible.

    The derivative of the losses must cancel the sum of those of the penalties, each times its factor, on all weights
    where every penalty has a derivative. One factor for all penalties is tried first, then one for each alone, then
    all at once.
    """
    found = _derivatives(problem, given)
    if found is None:
        return
    losses, by_term = found
    numbers = tuple(by_term)
    subsets = [numbers, *((number,) for number in numbers if len(numbers) > 1)]
    for subset in subsets:
        column = sum((by_term[number] for number in subset), np.zeros_like(losses))
        rest = -losses - sum((by_term[n] for n in numbers if n not in subset), np.zeros_like(losses))
        factor = _positive_fit(column[:, None], rest)
        if factor is not None:
            yield {number: float(factor[0]) for number in subset}
    if len(numbers) > 1:
        factors = _positive_fit(np.column_stack([by_term[number] for number in numbers]), -losses)
        if factors is not None:
            yield dict(zip(numbers, map(float, factors), strict=True))


def _positive_fit(columns: Array, target: Array) -> Array | None:
    """Return the least squares solution, to four digits, if all its entries are positive and not all are 1."""
    if len(target) < columns.shape[1] or not np.isfinite(columns).all() or not np.isfinite(target).all():
        return None
    factors = np.array([float(f"{factor:.4g}") for factor in nnls(columns, target)[0]])
    changed = bool(np.any(np.abs(factors - 1.0) > SAME))
    return factors if changed and np.all(factors > 0) else None


def _derivatives(problem: Problem, given: GivenWeights) -> tuple[Array, dict[int, Array]] | None:
    """Return the derivatives of the losses and of each penalty along all directions in which all of them exist."""
    parts, theta = problem.normal_form, given.theta
    if not parts.scores_are_smooth:
        return None
    scores = problem.model.scores(theta, given.b)
    pieces = {piece.number: piece for piece in parts.pieces}
    losses, by_term, owner = np.zeros_like(theta), dict[int, Array](), 0
    for number, term in parts.simple_terms:
        owner = number if number < len(problem.terms) else owner  # later parts of a term have numbers beyond all terms
        if number not in pieces:
            derivative = _smooth_or_separable(problem, term, theta, scores, given.b)
        elif pieces[number] in parts.weight_pieces:
            derivative = pieces[number].adjoint(dual_point(pieces[number], theta, None))
        else:
            slope = pieces[number].grad(pieces[number].forward(scores))
            derivative = problem.model.adjoint(pieces[number].adjoint(slope))
        if derivative is None:
            return None
        if isinstance(term.atom, Loss):
            losses = losses + derivative
        elif term.scale > 0 and not term.is_constraint:
            by_term[owner] = by_term.get(owner, 0.0) + derivative
    along = _smooth_directions(parts, theta)
    if not by_term or along is None or not along.shape[1]:
        return None
    return along.T @ losses.ravel(), {number: along.T @ derivative.ravel() for number, derivative in by_term.items()}


def _smooth_directions(parts: NormalForm, theta: Array) -> Any:
    """Return a basis of the directions along which no penalty has a kink: zeros stay zero, as do flat rows of maps.

    The rows of the basis are the entries of theta. None if the problem is too large for a basis.
    """
    free = np.abs(theta) > ZERO * np.abs(theta).max(initial=0.0)
    if parts.separable is not None and parts.separable.bounded:
        free &= (theta > parts.separable.lower) & (theta < parts.separable.upper)
    entries = np.flatnonzero(free)
    flat = []
    for piece in parts.weight_pieces:
        z = piece.forward(theta)
        if piece.K is None:
            continue
        K = sp.csr_array(piece.K.tocsr() if hasattr(piece.K, "tocsr") else piece.K)
        rows = sp.kron(K, sp.eye_array(theta.shape[1]), format="csr")[
            np.abs(z).ravel() <= ZERO * np.abs(z).max(initial=0)
        ]
        flat.append(rows[:, entries])
    chosen = sp.csr_array((np.ones(entries.size), (entries, np.arange(entries.size))), shape=(theta.size, entries.size))
    held = sp.vstack(flat, format="csr") if flat else sp.csr_array((0, entries.size))
    held = held[np.asarray(abs(held).sum(axis=1)).ravel() > 0]  # other rows see zero weights only
    if not held.shape[0]:
        return chosen
    return chosen @ null_space(held.toarray()) if entries.size <= MOST_ENTRIES else None


def _smooth_or_separable(problem: Problem, term: Term, theta: Array, scores: Array, b: Array) -> Array | None:
    """Return the derivative of a quadratic or separable term by the weights; None if the term is neither."""
    atom, model = term.atom, problem.model
    if term.target == "function" and problem.given.kernel is not None:
        return 2.0 * term.scale * (scores - b)
    if term.scale == 0:
        return np.zeros_like(theta)
    if term.target == "weights" and atom.can("separable"):
        return np.asarray(term.scale * atom.separable().weights * np.sign(theta))
    if not atom.can("quadratic"):
        return None
    if term.target in ("scores", "values"):
        values = scores if term.target == "scores" else scores - b
        return model.adjoint(2.0 * term.scale * atom.quadratic(model.n_rows).apply(values))
    return 2.0 * term.scale * atom.quadratic(model.n_weights).apply(theta)


def in_words(problem: Problem, factors: dict[int, float]) -> str:
    """Return the new strengths, their ratio to the given ones, and the convention that explains it, if any does."""
    parts = []
    for number, factor in factors.items():
        term = problem.terms[number]
        parts.append(f"{replace(term, scale=factor * term.scale)!r}, {_times(factor)}")
    ratios = set(np.round(list(factors.values()), 6))
    reason = _reason(problem, factors) if len(ratios) == 1 else ""
    return " and ".join(parts) + reason


def _times(factor: float) -> str:
    for value, words in ((2.0, "twice your strength"), (0.5, "half your strength")):
        if abs(factor / value - 1.0) <= SAME:
            return words
    return f"{factor:.4g} times your strength"


def _reason(problem: Problem, factors: dict[int, float]) -> str:
    """Return the convention of other libraries that multiplies all of these strengths by the same factor."""
    factor = next(iter(factors.values()))
    losses = [term.atom for term in problem.terms if isinstance(term.atom, Loss)]
    n = sum(float(np.sum(loss.sample_weight)) for loss in losses)
    scales = [problem.terms[number].scale for number in factors]
    quadratic = all(problem.terms[number].atom.can("grad") for number in factors)
    everything = set(factors) == set(penalty_terms(problem))
    candidates: list[tuple[float, str]] = []
    if everything:
        squared = all(type(loss).__name__ == "Squared" for loss in losses)
        half = "the squared loss has no factor 1/2 there" if squared else "the loss is doubled there"
        candidates += [(n, "the loss is a mean over rows there, not a sum"), (1.0 / n, "the penalty is divided by n")]
        candidates += [(2.0 * n, "the loss is a mean over rows with a factor 1/2")] if squared else []
        candidates += [(n / 2.0, "the loss is a mean over rows without the factor 1/2")] if squared else []
        candidates += [(0.5, half)]
    if quadratic:
        candidates += [(0.5, "the square has a factor 1/2 there"), (n / 2.0, "a mean loss, and 1/2 before the square")]
    if everything and len(scales) == 1:
        C = scales[0]
        candidates += [(1.0 / C**2, "the strength is C before the loss there")]
        candidates += [(0.5 / C**2, "the strength is C before the loss there, and 1/2 before the square")]
    return next((f": {words}" for value, words in _distinct(candidates) if abs(factor / value - 1.0) <= LIKE), "")


def _distinct(candidates: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Leave out factors of 1, and join the reasons of equal factors."""
    joined: dict[float, str] = {}
    for value, words in candidates:
        if abs(value - 1.0) > LIKE:
            same = next((other for other in joined if abs(other / value - 1.0) <= SAME), value)
            joined[same] = f"{joined[same]}, or {words}" if same in joined else words
    return list(joined.items())
