"""Plain CVXPY problems as problems of this library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.cvx.bounds import Bounds
from cvxstructreg.cvx.left_over import LeftOver
from cvxstructreg.cvx.linear_terms import absorbed, into_squares
from cvxstructreg.cvx.parts import Parts
from cvxstructreg.cvx.penalties import is_penalty
from cvxstructreg.cvx.plain_problem import PlainProblem
from cvxstructreg.cvx.reading.affine import Affine, Reader
from cvxstructreg.cvx.reading.layout import Layout
from cvxstructreg.cvx.reading.maps import Picks, matrix, multiplied
from cvxstructreg.cvx.reading.pieces import Piece, Pieces, pieces_of
from cvxstructreg.cvx.reading.refusal import UnrecognisedError, shown
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp

#: Eigenvalues of a quadratic form that count as zero, and as negative, relative to the largest.
ZERO, NEGATIVE = 1e-14, 1e-9
#: The largest quadratic form that is factored.
MOST_FACTORED = 2000
#: Kinds of pieces that become the loss if there is no other, in this order.
PROMOTED = ("square", "quadratic", "huber", "kink")
#: The remedy of all refusals.
REMEDY = "prob.solve() without method= solves it with CVXPY"


def from_cvxpy(prob: cp.Problem) -> PlainProblem:
    """Recognise a plain CVXPY problem: its losses, its penalties and its bounds.

    The walk through the expressions of the problem knows the spellings that people write: see the page *Plain CVXPY
    problems*. Terms and constraints that it does not know become one :class:`~cvxstructreg.FromExpression` penalty.
    Parameters are read at their current values.

    Parameters
    ----------
    prob : cp.Problem
        A convex minimisation or a concave maximisation.

    Returns
    -------
    Problem
        With the maps ``values_of(solution)`` to the variables of ``prob`` and ``weights_at(values)`` back.

    Raises
    ------
    UnrecognisedError
        A ``ValueError`` that names the first term without a known form.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> X, y = np.eye(3), np.array([3.0, -2.0, 0.5])
    >>> w = cp.Variable(3)
    >>> problem = csr.from_cvxpy(cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ w - y) + cp.norm1(w))))
    >>> print(problem.describe().splitlines()[0])
    minimize over w in R^3
    >>> problem.values_of(problem.solve())[w].round(6).tolist()
    [2.0, -1.0, 0.0]
    """
    if not isinstance(prob, cp.Problem):
        raise TypeError(f"from_cvxpy takes a cp.Problem, got {type(prob).__name__}")
    return problem_of(parts_of(prob))


def parts_of(prob: cp.Problem) -> Parts:
    """The parts of the problem: losses, penalties, bounds, and what no rule knows."""
    with _remedy():
        return _sorted(prob)


def problem_of(parts: Parts) -> PlainProblem:
    """The problem with these parts."""
    with _remedy():
        return parts.problem()


@contextmanager
def _remedy() -> Iterator[None]:
    """Add the remedy to refusals."""
    try:
        yield
    except UnrecognisedError as error:
        raise UnrecognisedError(f"{error}. {REMEDY}") from None


def problem_sign(prob: cp.Problem) -> float:
    """-1 for a maximisation, else 1."""
    return -1.0 if isinstance(prob.objective, cp.Maximize) else 1.0


def _sorted(prob: cp.Problem) -> Parts:
    reader = Reader()
    sign = problem_sign(prob)
    pieces = pieces_of(prob.objective.args[0], sign, reader)
    layout = Layout(_variables(prob, pieces))
    bounds = Bounds(layout)
    others = [constraint for constraint in prob.constraints if not bounds.take(constraint, reader, layout)]
    for constraint in others:
        if not constraint.is_dcp():
            raise UnrecognisedError(f"the constraint {shown(constraint)} is not convex by the rules of CVXPY")
    pieces.known = [piece for piece in pieces.known if not _is_taken(piece, bounds, layout)]
    bounds.check()
    gradient = absorbed(pieces, layout, reader)
    pieces.known = [_with_square_form(piece) for piece in pieces.known]
    if np.any(gradient):
        gradient = _into_known_pieces(pieces, gradient, layout, bounds)
    left = LeftOver(_with_norms(pieces), gradient, others, bounds, reader)
    losses = _losses(pieces, left)
    return Parts(prob, sign, layout, bounds, pieces, losses, left)


def _variables(prob: cp.Problem, pieces: Pieces) -> list[Any]:
    """The variables of the problem, without the auxiliary ones of atoms of this library."""
    hidden: set[int] = set()
    for piece in pieces.known:
        if piece.kind == "atom":
            own = {variable.id for variable in piece.source.argument.variables()}
            hidden |= {variable.id for variable in piece.source.args[0].variables()} - own
    found = [variable for variable in prob.variables() if variable.id not in hidden]
    if not found:
        raise UnrecognisedError("the problem has no variables")
    return found


def _with_square_form(piece: Piece) -> Piece:
    """(Kx + o)'P(Kx + o) as a sum of squares if there is an offset o."""
    return _factored(piece) if piece.kind == "quadratic" and np.any(piece.affine.offset) else piece


def _factored(piece: Piece) -> Piece:
    """A quadratic form as a sum of squares."""
    P = matrix(piece.data)
    P = P.toarray() if hasattr(P, "toarray") else P
    if len(P) > MOST_FACTORED:
        raise UnrecognisedError(f"the quadratic form {shown(piece.source)} is too large to be factored")
    values, vectors = np.linalg.eigh(P)
    top = float(np.abs(values).max(initial=0.0))
    if np.any(values < -NEGATIVE * top):
        raise UnrecognisedError(f"{shown(piece.source)} is not convex: its smallest eigenvalue is {values[0]:.3g}")
    kept = values > ZERO * top
    F = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    parts = {v: multiplied(F, m) for v, m in piece.affine.parts.items()}
    affine = Affine((len(F),), parts, F @ piece.affine.offset)
    return replace(piece, kind="square", affine=affine, weights=np.full(len(F), piece.weights[0]), data=None)


def _into_known_pieces(pieces: Pieces, gradient: Array, layout: Layout, bounds: Bounds) -> Array:
    """Linear terms of nonnegative entries as absolute values, others as part of squares; what remains."""
    costs = np.where((bounds.lower >= 0) & (gradient > 0), gradient, 0.0)
    costs += np.where((bounds.upper <= 0) & (gradient < 0), -gradient, 0.0)
    for variable in layout.variables:
        first = layout.first[variable.id]
        own = costs[first : first + variable.size]
        at = np.flatnonzero(own)
        if at.size:
            affine = Affine((at.size,), {variable.id: Picks(at, None, variable.size)}, np.zeros(at.size))
            pieces.known.append(Piece("kink", affine, own[at], variable, -own[at]))
    gradient = np.where(costs > 0, 0.0, gradient)
    if not np.any(gradient) or into_squares(pieces, gradient, layout):
        return np.zeros_like(gradient)
    forms = [piece for piece in pieces.known if piece.kind == "quadratic"]
    for piece in forms:
        square = _factored(piece)
        trial = replace(pieces, known=[square])
        if into_squares(trial, gradient, layout):
            pieces.constant, pieces.known = trial.constant, [p for p in pieces.known if p is not piece] + trial.known
            return np.zeros_like(gradient)
    return gradient


def _is_taken(piece: Piece, bounds: Bounds, layout: Layout) -> bool:
    """Whether the piece is a bound by an atom of this library, which becomes a bound of the problem."""
    if piece.kind != "atom" or not piece.data.can("separable"):
        return False
    part = piece.data.separable()
    return bool(part.bounded and not np.any(part.weights) and bounds.take_atom(piece.affine, part, layout))


def _with_norms(pieces: Pieces) -> list[tuple[Any, Array]]:
    """The terms that are left, with norms and atoms that have an offset, and log_sum_exp without labels."""
    moved = [p for p in pieces.known if p.kind in ("norm", "atom", "log_sum_exp") and _is_moved(p)]
    pieces.known = [piece for piece in pieces.known if piece not in moved]
    return pieces.left + [_as_expression(piece) for piece in moved]


def _is_moved(piece: Piece) -> bool:
    if isinstance(piece.data, Loss):
        return False
    if piece.kind == "log_sum_exp":
        return piece.data is None
    bounded = piece.kind == "atom" and piece.data.can("separable") and piece.data.separable().bounded
    return bounded or bool(np.any(piece.affine.offset))


def _as_expression(piece: Piece) -> tuple[Any, Array]:
    if piece.kind == "atom":
        return piece.data.expr(piece.source.argument), piece.weights[0]
    return piece.source, np.reshape(piece.weights, piece.source.shape, order="F")


def _losses(pieces: Pieces, left: LeftOver) -> list[Piece]:
    """The pieces that are losses; if there is none, a penalty becomes the loss."""
    losses = [piece for piece in pieces.known if not is_penalty(piece)]
    for kind in PROMOTED:
        if losses:
            return losses
        losses = [piece for piece in pieces.known if piece.kind == kind and np.any(piece.weights)]
        if kind == "quadratic" and losses:
            square = _factored(losses[0])
            pieces.known = [square if piece is losses[0] else piece for piece in pieces.known]
            losses = [square]
    if losses:
        return losses
    first = "" if left.is_empty else f"; the first term that is left is {left.first}"
    raise UnrecognisedError(f"the objective has no term that could be a loss{first}")
