"""The pieces of a plain objective: known functions of affine expressions, found by walking the tree.

The walk keeps the weights of the entries of each expression e, so that the objective is ``sum(weights * e)`` plus what
was found before. At a sum, a product with constants or a stack, the weights are passed on to the arguments. At a known
function of an affine expression the walk ends with a piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.objective import Objective
from cvxstructreg.cvx.reading import names
from cvxstructreg.cvx.reading.affine import Affine, Reader, flat, positions, spread_over_axes
from cvxstructreg.cvx.reading.refusal import UnrecognisedError, shown
from cvxstructreg.cvx.remembered import Remembered
from cvxstructreg.forms.quadratic_form import DENSE_LIMIT
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp


@dataclass(frozen=True, eq=False)
class Piece:
    """One function of an affine expression z.

    ==============  =====================================================================
    ``kind``        the function, with s the ``weights``
    ==============  =====================================================================
    kink            sum_i max(l_i z_i, u_i z_i); ``data`` = l, ``weights`` = u
    square          sum_i s_i z_i^2
    squared_pos     sum_i s_i (z_i)_+^2
    logistic        sum_i s_i log(1 + exp(z_i))
    exp             sum_i s_i exp(z_i)
    huber           sum_i s_i huber(z_i, M); ``data`` = M
    norm            sum_g s_g ||z_g|| over consecutive blocks; ``data`` = their sizes
    log_sum_exp     sum_i s_i log(sum_j exp(z_ij)) over the rows of a matrix z
    quadratic       s z'Pz; ``data`` = P
    atom            s f(z) for an atom f of this library; ``data`` = f
    ==============  =====================================================================
    """

    kind: str
    affine: Affine
    weights: Array
    source: Any
    data: Any = None


@dataclass(eq=False)
class Pieces:
    """All pieces of an objective, its constant, its affine part and the terms that have no known form."""

    constant: float = 0.0
    known: list[Piece] = field(default_factory=list)
    linear: list[tuple[Any, Array]] = field(default_factory=list)
    left: list[tuple[Any, Array]] = field(default_factory=list)


def pieces_of(objective: Any, sign: float, reader: Reader) -> Pieces:
    """The pieces of ``sign * objective``."""
    walk = _Walk(reader)
    walk.follow(objective, np.full(objective.shape, sign))
    return walk.found


class _Walk:
    def __init__(self, reader: Reader) -> None:
        self.reader, self.found = reader, Pieces()

    def follow(self, e: Any, w: Array) -> None:
        """Add the pieces of sum(w * e)."""
        if self.reader.is_constant(e):
            self.found.constant += float(np.sum(w * self.reader.number(e)))
            return
        if not np.any(w):
            return
        if self.reader.affine(e) is not None:
            self.found.linear.append((e, w))
            return
        passed = passed_on(self.reader, e, w)
        if passed is not None:
            for argument, weights in passed:
                self.follow(argument, weights)
            return
        rule = _rule_of(type(e))
        if rule is None or not rule(self, e, w):
            self.found.left.append((e, w))

    def add(self, kind: str, affine: Affine, weights: Any, source: Any, data: Any = None) -> bool:
        """Add a piece; a negative weight would make it concave."""
        s = flat(weights)
        if s.size and not s.min() >= 0:
            raise UnrecognisedError(
                f"{shown(source)} has a negative factor, so the problem is not convex (or not concave, if it is "
                "maximised)"
            )
        if s.size and not s.max() < np.inf:
            raise UnrecognisedError(f"the factor of {shown(source)} is not finite")
        self.found.known.append(Piece(kind, affine, s, source, data))
        return True

    def inner(self, e: Any) -> Affine | None:
        """The affine argument of an atom with one argument."""
        return self.reader.affine(e.args[0])


#: What was found for each class: the checks of the classes of CVXPY are slow.
_RULE_OF: dict[Any, Callable[[_Walk, Any, Array], bool] | None] = {}
_PASSES_ON: dict[Any, bool] = {}


def _rule_of(kind: Any) -> Callable[[_Walk, Any, Array], bool] | None:
    """The rule for a class of expressions."""
    if kind not in _RULE_OF:
        _RULE_OF[kind] = next((rule for known, rule in RULES if issubclass(kind, known)), None)
    return _RULE_OF[kind]


def _passes_on(kind: Any) -> bool:
    """Whether expressions of a class pass their weights on to their arguments."""
    if kind not in _PASSES_ON:
        known = (names.AddExpression, names.NegExpression, names.Sum, names.DivExpression, names.MulExpression)
        _PASSES_ON[kind] = issubclass(kind, (*known, *names.GATHERING)) and not issubclass(kind, Remembered)
    return _PASSES_ON[kind]


def passed_on(reader: Reader, e: Any, w: Array) -> list[tuple[Any, Array]] | None:
    """The weights of the arguments of a sum, a scaling, a product or a stack; None for any other expression."""
    if not _passes_on(type(e)):
        return None
    if isinstance(e, names.AddExpression):
        return [(argument, _folded(w, argument.shape)) for argument in e.args]
    if isinstance(e, names.NegExpression):
        return [(e.args[0], -w)]
    if isinstance(e, names.Sum):
        return [(e.args[0], spread_over_axes(w, e))]
    if isinstance(e, names.GATHERING):
        return _scattered(reader, e, w)
    constants = [reader.is_constant(argument) for argument in e.args]
    if isinstance(e, names.DivExpression) and constants[1]:
        return [(e.args[0], _folded(w / reader.number(e.args[1]), e.args[0].shape))]
    if isinstance(e, names.multiply) and any(constants):
        c, other = (e.args[0], e.args[1]) if constants[0] else (e.args[1], e.args[0])
        return [(other, _folded(w * reader.number(c), other.shape))]
    if isinstance(e, names.MulExpression) and any(constants) and max(a.ndim for a in e.args) <= 2:
        return [_through_product(reader, e, w, 0 if constants[0] else 1)]
    return None


def _folded(w: Array, shape: tuple[int, ...]) -> Array:
    """The sum of weights over the axes along which an array of this shape was broadcast."""
    if w.shape == shape:
        return w
    w = w.sum(axis=tuple(range(w.ndim - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and w.shape[i] != 1)
    return np.asarray(w.sum(axis=axes, keepdims=True)).reshape(shape)


def _scattered(reader: Reader, e: Any, w: Array) -> list[tuple[Any, Array]]:
    (at,) = reader.gathered_positions(e)
    total = np.bincount(at.ravel(), w.ravel(), sum(argument.size for argument in e.args))
    first, passed = 0, []
    for argument in e.args:
        passed.append((argument, total[first : first + argument.size].reshape(argument.shape, order="F")))
        first += argument.size
    return passed


def _through_product(reader: Reader, e: Any, w: Array, which: int) -> tuple[Any, Array]:
    """The weights of E in C @ E or E @ C."""
    C, E = e.args[which], e.args[1 - which]
    c = reader.value(C)
    if which == 0:
        A = c.reshape(1, -1) if C.ndim == 1 else c
        passed = A.T @ w.reshape((A.shape[0], -1), order="F")
    else:
        A = c.reshape(-1, 1) if C.ndim == 1 else c
        passed = w.reshape((-1, A.shape[1]), order="F") @ A.T
    return E, np.asarray(passed.toarray() if sp.issparse(passed) else passed).reshape(E.shape, order="F")


def _norm1(walk: _Walk, e: Any, w: Array) -> bool:
    return _absolute_values(walk, e, spread_over_axes(w, e))


def _absolute_values(walk: _Walk, e: Any, w: Array) -> bool:
    inner = walk.inner(e)
    if inner is not None:
        return walk.add("kink", inner, w, e, -flat(w))
    if not e.args[0].is_nonneg():
        return False
    walk.follow(e.args[0], w)  # |x| = x
    return True


def _pnorm(walk: _Walk, e: Any, w: Array) -> bool:
    inner = walk.inner(e)
    if float(e.p) == 1.0:
        return _absolute_values(walk, e, spread_over_axes(w, e))
    if float(e.p) != 2.0 or inner is None:
        return False
    return walk.add("norm", *_blocks(e, inner, w), e, _block_size(e))


def _blocks(e: Any, inner: Affine, w: Array) -> tuple[Affine, Array]:
    """The entries of each block one after the other, and the weights of the blocks."""
    if e.axis is None:
        return inner, flat(w)
    axes = e.axis if isinstance(e.axis, tuple) else (e.axis,)
    at = np.moveaxis(positions(inner.shape), axes, range(len(axes)))
    return inner.taken(at.ravel(order="F")), flat(w)


def _block_size(e: Any) -> int:
    axes = range(e.args[0].ndim) if e.axis is None else e.axis if isinstance(e.axis, tuple) else (e.axis,)
    return int(np.prod([e.args[0].shape[i] for i in axes], dtype=int))


def _power(walk: _Walk, e: Any, w: Array) -> bool:
    p = float(walk.reader.number(e.p).ravel()[0])
    if p == 1.0:
        walk.follow(e.args[0], w)
        return True
    return p == 2.0 and _squares(walk, e.args[0], w, e)


def _quad_over_lin(walk: _Walk, e: Any, w: Array) -> bool:
    if not walk.reader.is_constant(e.args[1]):
        return False
    y = float(walk.reader.number(e.args[1]).ravel()[0])
    return y > 0 and _squares(walk, e.args[0], spread_over_axes(w / y, e), e)


def _squares(walk: _Walk, e: Any, w: Array, source: Any) -> bool:
    """sum w e^2."""
    affine = walk.reader.affine(e)
    if affine is not None:
        return walk.add("square", affine, w, source)
    if isinstance(e, names.multiply | names.DivExpression):
        passed = passed_on(walk.reader, e, np.ones(e.shape))
        if passed is None or passed[0][0].shape != e.shape:
            return False
        return _squares(walk, passed[0][0], w * passed[0][1] ** 2, source)
    if isinstance(e, names.GATHERING) and len(e.args) == 1 and not isinstance(e, Remembered):
        return _squares(walk, e.args[0], _scattered(walk.reader, e, w)[0][1], source)
    if isinstance(e, names.NegExpression | names.absolute):
        return _squares(walk, e.args[0], w, source)
    if isinstance(e, names.Pnorm) and float(e.p) == 2.0:
        return _squares(walk, e.args[0], spread_over_axes(w, e), source)
    positive = _positive_part(walk, e)
    return positive is not None and walk.add("squared_pos", positive, w, source)


def _positive_part(walk: _Walk, e: Any) -> Affine | None:
    """z if e is max(z, 0), or -z if e is min(z, 0), which is -max(-z, 0)."""
    if not isinstance(e, names.maximum | names.minimum) or len(e.args) != 2:
        return None
    for zero, other in (e.args, reversed(e.args)):
        if walk.reader.is_constant(zero) and not np.any(walk.reader.number(zero)) and other.shape == e.shape:
            affine = walk.reader.affine(other)
            return affine.scaled(-1.0) if affine is not None and isinstance(e, names.minimum) else affine
    return None


def _maximum(walk: _Walk, e: Any, w: Array) -> bool:
    positive = _positive_part(walk, e)
    if positive is not None:
        return walk.add("kink", positive, w, e, np.zeros(positive.size))
    if len(e.args) != 2 or any(argument.shape not in (e.shape, ()) for argument in e.args):
        return False
    if _two_multiples(walk, e, w):
        return True
    first, second = e.args  # max(a, b) = b + max(a - b, 0)
    difference = walk.reader.affine(first - second)
    if difference is None or not walk.add("kink", difference, w, e, np.zeros(difference.size)):
        return False
    walk.follow(second, _folded(w, second.shape))
    return True


def _two_multiples(walk: _Walk, e: Any, w: Array) -> bool:
    """max(l z, u z) with numbers l <= 0 <= u."""
    (a, one), (b, other) = (_multiple(walk.reader, argument) for argument in e.args)
    left, right = walk.reader.affine(one), walk.reader.affine(other)
    sign = 0 if left is None or right is None or left.shape != e.shape else right.sign_of(left)
    lower, upper = sorted((a, sign * b))
    if not sign or left is None or lower > 0 or upper < 0:
        return False
    return walk.add("kink", left, upper * w, e, lower * flat(w))


def _multiple(reader: Reader, e: Any) -> tuple[float, Any]:
    """(c, z) if e is a number c times z; (1, e) if not."""
    if isinstance(e, names.NegExpression):
        c, z = _multiple(reader, e.args[0])
        return -c, z
    if isinstance(e, names.MulExpression | names.DivExpression):
        for constant, z in (e.args, reversed(e.args)):
            entrywise = isinstance(e, names.multiply | names.DivExpression) or constant.size == 1
            if entrywise and reader.is_constant(constant) and z.shape == e.shape:
                values = np.unique(reader.number(constant))
                if values.size == 1 and not (isinstance(e, names.DivExpression) and constant is e.args[0]):
                    c = float(values[0])
                    return (1.0 / c if isinstance(e, names.DivExpression) else c), z
    return 1.0, e


def _minimum(walk: _Walk, e: Any, w: Array) -> bool:
    if np.any(w > 0):
        return walk.add("kink", Affine((0,), {}, np.zeros(0)), -w, e)  # raises: not convex
    return _maximum(walk, cp.maximum(*[-argument for argument in e.args]), -w)


def _elementwise(kind: str) -> Callable[[_Walk, Any, Array], bool]:
    def rule(walk: _Walk, e: Any, w: Array) -> bool:
        inner = walk.inner(e)
        return inner is not None and walk.add(kind, inner, w, e)

    return rule


def _huber(walk: _Walk, e: Any, w: Array) -> bool:
    inner = walk.inner(e)
    return inner is not None and walk.add("huber", inner, w, e, float(walk.reader.number(e.M).ravel()[0]))


def _log_sum_exp(walk: _Walk, e: Any, w: Array) -> bool:
    inner = walk.inner(e)
    if inner is None or len(inner.shape) != 2 or e.axis not in (0, 1, (0,), (1,)):
        return False
    if e.axis in (0, (0,)):
        inner = inner.taken(positions(inner.shape).T.ravel(order="F"), inner.shape[::-1])
    return walk.add("log_sum_exp", inner, w, e)


def _quad_form(walk: _Walk, e: Any, w: Array) -> bool:
    inner = walk.inner(e)
    if inner is None or not walk.reader.is_constant(e.args[1]):
        return False
    P = walk.reader.value(e.args[1])
    if np.any(w < 0):
        P, w = -P, -w
    if P.shape[0] > DENSE_LIMIT and not cp.Constant(P).is_psd():  # smaller ones are checked by their eigenvalues
        raise UnrecognisedError(f"{shown(e)} is not convex")
    return walk.add("quadratic", inner, w, e, (P + P.T) / 2.0)


def _remembered(walk: _Walk, e: Any, w: Array) -> bool:
    inner = walk.reader.affine(e.argument)
    if inner is None or not inner.parts.keys() <= {variable.id for variable in e.args[0].variables()}:
        return False  # a copy with other variables: the argument is not what it was
    for term in (stated.now() for stated in Objective.of(e.atom).terms):
        walk.add("atom", inner, w if term.is_constraint else w * term.scale, e, term.atom)
    return True


#: What the walk knows of CVXPY's functions: the rule adds pieces, or returns False.
RULES: list[tuple[type, Callable[[_Walk, Any, Array], bool]]] = [
    (Remembered, _remembered),
    (names.norm1, _norm1),
    (names.absolute, _absolute_values),
    (names.Pnorm, _pnorm),
    (names.Power, _power),
    (names.quad_over_lin, _quad_over_lin),
    (names.maximum, _maximum),
    (names.minimum, _minimum),
    (names.logistic, _elementwise("logistic")),
    (names.exp, _elementwise("exp")),
    (names.huber, _huber),
    (names.log_sum_exp, _log_sum_exp),
    (names.QuadForm, _quad_form),
]
