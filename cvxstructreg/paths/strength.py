"""The terms of a problem whose strength a path changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral

from cvxstructreg.core.objective import Objective, Term
from cvxstructreg.core.problem import Problem


def sparsifying_terms(problem: Problem) -> tuple[int, ...]:
    """The numbers of the terms of the weights with a kink at zero: absolute values, group norms, fused differences."""
    return tuple(
        number
        for number, term in enumerate(problem.terms)
        if term.target == "weights" and not term.is_constraint and not term.atom.can("grad")
    )


def weight_terms(problem: Problem) -> tuple[int, ...]:
    """The numbers of all terms of the weights but bounds."""
    return tuple(
        number
        for number, term in enumerate(problem.terms)
        if term.target == "weights" and not term.is_constraint and term.scale > 0
    )


def checked_terms(problem: Problem, terms: Iterable[int] | None) -> tuple[int, ...]:
    """``terms`` as numbers of terms of the problem; the sparsifying ones by default."""
    if terms is None:
        numbers = sparsifying_terms(problem)
        if not numbers:
            raise ValueError(
                "no term of the weights has a kink at zero (such as L1 or GroupLasso), so there is no strength at "
                "which weights become zero; name the terms to change with terms=, and give strengths="
            )
        return numbers
    numbers = tuple(terms)
    for number in numbers:
        if not isinstance(number, Integral) or not 0 <= number < len(problem.terms):
            raise ValueError(f"terms must be numbers from 0 to {len(problem.terms) - 1} of terms, got {number!r}")
    if not numbers:
        raise ValueError("terms must name at least one term")
    return numbers


def with_strength(problem: Problem, strength: float, numbers: tuple[int, ...]) -> Problem:
    """The problem with the scales of these terms multiplied by ``strength``; the model is shared."""

    def scaled(number: int, term: Term) -> Term:
        return replace(term, scale=strength * term.scale) if number in numbers else term

    return Problem(problem.model, Objective(tuple(scaled(*item) for item in enumerate(problem.terms))))
