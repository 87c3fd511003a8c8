"""Formulas of a penalty from outside of the library, read off the expression that defines it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.objective import Term
from cvxstructreg.expressions.from_expression import SAME, FromExpression
from cvxstructreg.expressions.recognition import recognised
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp

#: The sizes of the random points at which formulas are compared with the values of the penalty.
SIZES = (1.0, 1e-3, 1e3)


def parts_of_expression(atom: Atom, shape: tuple[int, int]) -> Sequence[Term]:
    """Terms whose sum is the atom: the penalties that its expression consists of, or else the atom itself.

    The terms are kept, and compared with the values of the atom each time: these may have changed since.
    """
    known = vars(atom).setdefault("_known_form", {})
    for renew in (False, True):
        if renew or shape not in known:
            known[shape] = _found(atom, shape)
        if known[shape] is None or _is_sum_of(known[shape], atom, shape):
            break
    else:
        known[shape] = None
    return known[shape] or (Term(atom, 1.0, atom.target),)


def _found(atom: Atom, shape: tuple[int, int]) -> tuple[Term, ...] | None:
    if shape[1] > 1:
        return None
    try:
        found = recognised(FromExpression(atom.expr, name=repr(atom), joint=True)._program(shape))
    except (ValueError, TypeError, ArithmeticError, cp.error.DCPError, cp.error.SolverError):
        return None  # whatever is wrong with the expression, the methods of the atom are used
    return None if found is None else tuple(found.terms())


def _is_sum_of(terms: Sequence[Term], atom: Atom, shape: tuple[int, int]) -> bool:
    """Whether the terms have the values of the atom at random points."""
    rng = np.random.default_rng(0)
    return all(_agree(terms, atom, size * rng.normal(size=shape)) for size in SIZES)


def _agree(terms: Sequence[Term], atom: Atom, z: Array) -> bool:
    expected, found = float(atom.value(z)), sum(term.value(z) for term in terms)
    return abs(found - expected) <= SAME * abs(expected) or found == expected
