"""The objective as the user writes it: a sum of scaled atoms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from cvxstructreg.core.atom import Atom, as_argument, conjugate, has_conjugate, is_zero, no_array, remembered
from cvxstructreg.core.columns import ARRAY_METHODS, accept_vectors
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp, is_expression

#: A repr names this many terms of an objective.
MOST_SHOWN = 5
#: A real number; the first is the usual one, and found at once.
NUMBER = float, Real
#: What the targets are called in messages.
_TARGET_NAMES = {
    "rows": "the scores of labelled rows",
    "scores": "the scores",
    "values": "the scores without intercept",
    "function": "the function of a model",
}


@dataclass(frozen=True, eq=False)
class Term:
    """``scale * atom( map(theta, b) )``: the strength is stored here, never in the atom.

    A term is a function of the same argument as its atom: ``value``, ``expr``, ``prox``, ``conj`` and ``dual_norm``,
    ``grad`` and ``hessp`` are those of ``scale * f`` wherever the atom f defines them. A term of strength zero is the
    zero function. A constraint (see :attr:`is_constraint`) is the same at every strength.

    The strength may be a ``cp.Parameter``, or a product of parameters and numbers. Its value is read when it is needed:
    a problem solved again after ``lam.value`` changed is solved at the new strength.

    Examples
    --------
    >>> from cvxstructreg import L1, Box
    >>> term = 2.0 * L1()
    >>> term.value([1.0, -3.0])
    8.0
    >>> term.prox([1.0, -3.0], 0.5)
    array([ 0., -2.])
    >>> term.dual_norm([1.0, -3.0]), term.conj([1.0, -2.0]), term.conj([1.0, -3.0])
    (1.5, 0.0, inf)
    >>> (2.0 * Box(-1, 1)).prox([1.0, -3.0], 0.5)
    array([ 1., -1.])

    >>> import cvxpy as cp
    >>> lam = cp.Parameter(nonneg=True, value=2.0, name="lam")
    >>> lam * L1(), (lam * L1()).value([1.0, -3.0])
    (lam * L1(), 8.0)
    """

    atom: Atom
    scale: Any
    target: str

    __array_ufunc__ = None  # as in Atom

    def __post_init__(self) -> None:
        if not isinstance(self.scale, float) and is_expression(self.scale):
            self._check_parameters(self.scale)
            if self.scale.parameters():
                return
            object.__setattr__(self, "scale", float(self.scale.value))
        if isinstance(self.scale, bool) or not isinstance(self.scale, NUMBER):
            raise TypeError(f"a strength must be a real number, got {type(self.scale).__name__}")
        object.__setattr__(self, "scale", self._checked(float(self.scale)))

    def _check_parameters(self, scale: Any) -> None:
        if scale.variables() or scale.size != 1:
            what = "has variables" if scale.variables() else f"has shape {scale.shape}"
            raise TypeError(
                f"a strength must be a number or a CVXPY parameter, got {scale}, which {what}. Apply the penalty to "
                "CVXPY variables first, as in L1()(w), to multiply its expression"
            )

    def _checked(self, scale: float) -> float:
        if not math.isfinite(scale) or scale < 0:
            name = type(self.atom).__name__
            raise ValueError(f"the strength of {name} must be finite and at least 0 to stay convex, got {scale}")
        return scale

    @property
    def has_parameters(self) -> bool:
        """Whether the strength depends on a CVXPY parameter."""
        return not isinstance(self.scale, float)  # else it is an expression, see __post_init__

    def now(self) -> Term:
        """The term at the current values of the parameters of its strength; itself if there are none."""
        if not self.has_parameters:
            return self
        if self.scale.value is None:
            names = ", ".join(parameter.name() for parameter in self.scale.parameters() if parameter.value is None)
            raise ValueError(f"the parameter {names} in the strength of {self!r} has no value; set {names}.value first")
        return replace(self, scale=float(np.ravel(self.scale.value)[0]))

    @property
    def is_constraint(self) -> bool:
        """Whether the term consists of bounds only: its strength then has no effect."""
        return self.atom.can("separable") and not np.any(self.atom.separable().weights)

    def on_model(self, model: Any) -> Term:
        """The term with the atom to use for this model; see :meth:`Atom.on_model`."""
        atom = self.atom.on_model(model) if self.target == "weights" else self.atom
        return self if atom is self.atom else replace(self, atom=atom, target=atom.target)

    @property
    def _strength(self) -> float:
        return 1.0 if self.is_constraint else self.now().scale

    def can(self, *names: str) -> bool:
        """Whether the atom of the term defines all of these capabilities."""
        return self.atom.can(*names)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless the atom can act on arrays of this shape (m, k)."""
        self.atom.check_shape(shape)

    def _require(self, name: str) -> None:
        if self.atom.can(name):
            return
        kind = type(self.atom).__name__
        why = f"{kind} does not define it"
        if name in ("grad", "lipschitz"):
            smooth = self.atom.can("grad")
            why = f"the curvature of {kind} has no known bound" if smooth else f"{kind} is not smooth"
        raise AttributeError(f"{self!r} has no {name}: {why}; value, expr and prox are always defined")

    def expr(self, z: cp.Expression) -> cp.Expression:
        """scale * f(z) as a CVXPY expression."""
        if self.has_parameters and not self.is_constraint:
            return self.scale * self.atom.expr(z)
        if self._strength == 0:
            return cp.Constant(0.0)
        return self.atom.expr(z) if self._strength == 1 else self.scale * self.atom.expr(z)

    def value(self, z: Array) -> float:
        """scale * f(z)."""
        return 0.0 if self._strength == 0 else self._strength * self.atom.value(z)

    def prox(self, v: Array, t: float) -> Array:
        """argmin_x  t scale f(x) + 1/2 ||x - v||^2."""
        return v.copy() if self._strength == 0 else self.atom.prox(v, t * self._strength)

    def grad(self, z: Array) -> Array:
        """scale * grad f(z)."""
        self._require("grad")
        return np.zeros_like(z) if self._strength == 0 else self._strength * self.atom.grad(z)

    def hessp(self, z: Array, p: Array) -> Array:
        """scale * the Hessian of f at z, times p."""
        self._require("hessp")
        return np.zeros_like(p) if self._strength == 0 else self._strength * self.atom.hessp(z, p)

    def lipschitz(self) -> float:
        """scale * an upper bound of the Lipschitz constant of the gradient of f."""
        self._require("lipschitz")
        return self._strength * self.atom.lipschitz()

    def conj(self, u: Array) -> float:
        """(scale f)*(u) = scale f*(u / scale); for strength zero 0 if u = 0, else infinite."""
        if not has_conjugate(self.atom):
            kind = type(self.atom).__name__
            raise AttributeError(f"{self!r} has no conj: {kind} defines neither conj nor dual_norm; add one of them")
        if self._strength == 0:
            return np.inf if np.any(u) else 0.0
        return self._strength * conjugate(self.atom, u / self._strength)

    def dual_norm(self, u: Array) -> float:
        """The dual norm of f at u, divided by scale; for strength zero 0 if u = 0, else infinite."""
        self._require("dual_norm")
        if self._strength == 0:
            return np.inf if np.any(u) else 0.0
        return self.atom.dual_norm(u) / self._strength

    def __call__(self, z: Any) -> Any:
        """``scale * f`` as an expression if z is a CVXPY expression, else the number ``scale * f(z)``."""
        columns = as_argument(z)
        self.check_shape(columns.shape)
        return remembered(self, columns) if is_expression(columns) else self.value(columns)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise no_array(self)

    def __rmul__(self, scale: Any) -> Term:
        return replace(self, scale=self.scale * Term(self.atom, scale, self.target).scale)

    __mul__ = __rmul__

    def __add__(self, other: Any) -> Objective:
        return Objective.of(self) + other

    def __radd__(self, other: Any) -> Objective:
        return Objective.of(self) if is_zero(other) else Objective.of(other) + self

    def __repr__(self) -> str:
        moved = {"scores": ".on_scores()", "values": ".on_function()"}
        name = repr(self.atom) + (moved.get(self.target, "") if self.target != type(self.atom).target else "")
        if self.has_parameters:
            return f"{self.scale} * {name}"
        return name if self.scale == 1 else f"{self.scale:g} * {name}"


accept_vectors(Term)


@dataclass(frozen=True, eq=False)
class Objective:
    """A sum of terms, made by adding atoms: ``Logistic(y) + 0.1 * Ridge()``.

    If all terms act on the weights, the sum has ``value`` and ``expr``. With a loss, use a
    :class:`~cvxstructreg.Problem`: the model computes the scores that the loss acts on.

    Examples
    --------
    >>> from cvxstructreg import L1, Ridge
    >>> penalty = 2.0 * L1() + 0.5 * Ridge()
    >>> penalty.value([1.0, -2.0])
    8.5
    """

    terms: tuple[Term, ...]

    __array_ufunc__ = None  # as in Atom

    def __post_init__(self) -> None:
        stated = [term.atom.variable for term in self.terms if term.atom.variable is not None]
        if len({variable.id for variable in stated}) > 1:
            names = ", ".join(dict.fromkeys(variable.name() for variable in stated))
            raise ValueError(
                f"the CVXPY expressions of an objective have different variables, {names}; all act on the weights, so "
                "write them with one variable. A problem of several variables is a cp.Problem for from_cvxpy"
            )

    @classmethod
    def of(cls, item: Any) -> Objective:
        """An objective from an atom, a term or an objective."""
        if isinstance(item, Objective):
            return item
        if isinstance(item, Term):
            return cls((item,))
        if isinstance(item, Atom):
            return cls((Term(item, 1.0, item.target),))
        if is_expression(item):
            return cls.of(_expressions().term_of(item))
        if callable(item) and not isinstance(item, type):
            return cls.of(_expressions().FromExpression(item))
        raise TypeError(
            f"an objective is a sum of atoms such as Logistic(y) + 0.1 * Ridge(); got {type(item).__name__}"
        )

    def value(self, z: Any) -> float:
        """The sum at weights of shape (d,) or (d, k)."""
        self._require_weights("value(coef, intercept)")
        return sum(term.value(z) for term in self.terms)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The sum as a CVXPY expression of weights of shape (d, k)."""
        self._require_weights("to_cvxpy()")
        return cp.sum([term.expr(z) for term in self.terms])

    def __call__(self, z: Any) -> Any:
        """The sum as an expression if z is a CVXPY expression, else as a number."""
        columns = as_argument(z)
        return remembered(self, columns) if is_expression(columns) else self.value(columns)

    def _require_weights(self, remedy: str) -> None:
        for term in self.terms:
            if term.target != "weights":
                raise ValueError(
                    f"{term!r} acts on {_TARGET_NAMES.get(term.target, term.target)}, not on the weights; "
                    f"use Problem(model, objective).{remedy}"
                )

    def __getattr__(self, name: str) -> Any:
        if name in ARRAY_METHODS:
            raise AttributeError(
                f"a sum of terms has no {name}, only value and expr; call {name} of one of objective.terms"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise no_array(self)

    def __add__(self, other: Any) -> Objective:
        return Objective(self.terms + Objective.of(other).terms)

    def __radd__(self, other: Any) -> Objective:
        return self if is_zero(other) else Objective.of(other) + self

    def __rmul__(self, scale: Any) -> Objective:
        return Objective(tuple(scale * term for term in self.terms))

    __mul__ = __rmul__

    def __repr__(self) -> str:
        shown = list(map(repr, self.terms[:MOST_SHOWN]))
        if len(self.terms) > MOST_SHOWN:
            shown.append(f"... ({len(self.terms) - MOST_SHOWN} more terms)")
        return " + ".join(shown)


def _expressions() -> Any:
    """What makes penalties of functions and of CVXPY expressions, imported when one is first used."""
    from cvxstructreg.expressions import from_expression

    return from_expression
