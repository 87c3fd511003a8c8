"""The terms of a problem, after those that are sums of parts were replaced by their parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cvxstructreg.core.objective import Term
from cvxstructreg.core.penalty import has_parts, parts_of

if TYPE_CHECKING:
    from cvxstructreg.core.problem import Problem


def simple_terms(problem: Problem) -> Iterator[tuple[int, Term]]:
    """The terms with their numbers; a term whose atom is a sum of parts is replaced by these."""
    fresh = itertools.count(len(problem.terms))
    for number, term in enumerate(problem.terms):
        if not has_parts(term.atom):
            yield number, term
        elif term.scale > 0:
            rows = problem.given.n_rows if term.target == "scores" else problem.given.n_weights
            for place, part in enumerate(parts_of(term.atom, (rows, problem.n_outputs))):
                simple = Term(part.atom, term.scale * part.scale, term.target)
                yield (number if place == 0 else next(fresh)), simple
