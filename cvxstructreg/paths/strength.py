"""Which terms of a problem a path scales, and the problem with those terms scaled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral

from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.penalty import has_parts, parts_of
from cvxstructreg.core.problem import Problem


def sparsifying_terms(problem: Problem) -> tuple[int, ...]:
    """Return the indices of the terms on the weights that have a kink at zero: L1, group norms, fused lasso."""
    return tuple(
        number
        for number, term in enumerate(problem.terms)
        if term.target == "weights" and not term.is_constraint and not is_smooth(problem, term)
    )


def simple_parts(problem: Problem, term: Term) -> tuple[Term, ...]:
    """Return the parts of a term that is a sum of them, else the term itself."""
    if not has_parts(term.atom):
        return (term,)
    rows = problem.given.n_rows if term.target == "scores" else problem.given.n_weights
    return tuple(parts_of(term.atom, (rows, problem.n_outputs)))


def is_smooth(problem: Problem, term: Term) -> bool:
    """Whether the term, with all its parts, has a gradient."""
    outers = [part.atom.split()[0] if part.atom.can("split") else part.atom for part in simple_parts(problem, term)]
    return all(outer.can("grad") or outer.can("quadratic") for outer in outers)


def weight_terms(problem: Problem) -> tuple[int, ...]:
    """Return the indices of all terms on the weights except bounds."""
    return tuple(
        number
        for number, term in enumerate(problem.terms)
        if term.target == "weights" and not term.is_constraint and term.scale > 0
    )


def checked_terms(problem: Problem, terms: Iterable[int] | None) -> tuple[int, ...]:
    """Return ``terms`` as checked indices of terms of the problem; by default the sparsifying terms."""
    if terms is None:
        numbers = sparsifying_terms(problem)
        if not numbers:
            raise ValueError(
                "no term on the weights has a kink at zero (as L1 and GroupLasso have), so no strength makes weights "
                "zero; choose the terms to scale with terms=, and give strengths="
            )
        return numbers
    numbers = tuple(terms)
    for number in numbers:
        if not isinstance(number, Integral) or not 0 <= number < len(problem.terms):
            raise ValueError(f"terms must be indices of terms, from 0 to {len(problem.terms) - 1}, got {number!r}")
    if not numbers:
        raise ValueError("terms is empty; give the index of at least one term")
    return numbers


def with_strength(problem: Problem, strength: float, numbers: tuple[int, ...]) -> Problem:
    """Return the problem with the scales of these terms multiplied by ``strength``; the model is shared."""

    def scaled(number: int, term: Term) -> Term:
        return replace(term, scale=strength * term.scale) if number in numbers else term

    return Problem(problem.model, Objective(tuple(scaled(*item) for item in enumerate(problem.terms))))
