"""Atoms: the convex, nonnegative functions that objectives are built from.

One letter means one thing everywhere in the package:

    X, y        data and labels                    W      graph weights
    w / theta   weights (d x k), b intercepts      K      a linear map
    z / F       scores (rows x k)                  gram   a kernel matrix
    v, t        prox point and step                lam    a strength
    u           a dual point

Inside an atom every array has the shape ``(m, k)``, with one column for each output. Callers may also pass ``(m,)`` for
``(m, 1)``, or lists: :mod:`cvxstructreg.core.columns` wraps the methods of every atom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.checks import real_array
from cvxstructreg.core.columns import accept_vectors
from cvxstructreg.core.default_prox import default_prox
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.numerics.round_off import UNIT
from cvxstructreg.runtime import deadline
from cvxstructreg.runtime.lazy_cvxpy import cp, is_expression
from cvxstructreg.runtime.short_repr import short_repr

if TYPE_CHECKING:
    from cvxstructreg.core.objective import Objective, Term
    from cvxstructreg.forms.centred_hinge import CentredHinges
    from cvxstructreg.forms.quadratic_form import QuadraticForm
    from cvxstructreg.forms.separable import Separable

_Method = TypeVar("_Method", bound=Callable[..., Any])

#: The optional methods of an atom. A class has the capabilities that it defines; none is found by trial and error.
CAPABILITIES = (
    "value",
    "prox",
    "grad",
    "hessp",
    "hess_diag",
    "derivatives",
    "hess_rows",
    "hess_factor",
    "hess_bound",
    "lipschitz",
    "conj",
    "dual_norm",
    "split",
    "parts",
    "quadratic",
    "separable",
    "blocks",
    "latent_groups",
    "hinges",
    "kinks",
    "centred_hinges",
    "repair",
    "dual_box",
    "rebalance",
)


class Atom:
    """A convex, nonnegative function f, defined by :meth:`expr`.

    A subclass must define :meth:`expr`. The methods below are optional: they compute with the same function faster, and
    :func:`cvxstructreg.testing.check_atom` compares each of them with ``expr``.

    ========================  ==============================================================================
    ``value(z)``              f(z)
    ``prox(v, t)``            argmin_x  t f(x) + 1/2 ||x - v||^2
    ``grad(z)``               the gradient; present if and only if f is smooth
    ``hessp(z, p)``           the Hessian at z times p
    ``hess_diag(z)``          the diagonal of the Hessian at z, for an f whose Hessian is diagonal (a sum over entries)
    ``derivatives(z)``        (f(z), the gradient, ``hess_diag``) at once, where that takes less time
    ``hess_rows(z)``          (D, R) with the Hessian at z being diag(D_i) - R_i R_i' for each row i
    ``hess_factor(z)``        (D, L) with the Hessian at z being diag(D) - L L', for one output and coupled rows
    ``hess_bound(z)``         D such that diag(D) minus the Hessian at z is positive semidefinite, for coupled rows
    ``lipschitz()``           an upper bound of the gradient's Lipschitz constant, if it has one
    ``conj(u)``               sup_z <u, z> - f(z)
    ``dual_norm(u)``          for a norm f: its dual norm, so that conj(u) is 0 if dual_norm(u) <= 1, else inf
    ``split()``               (outer, K) with f(w) = outer(K w)
    ``parts(shape)``          terms on the weights whose sum is f, for arguments of this shape
    ``quadratic(m)``          f(w) = w'Mw: the :class:`~cvxstructreg.forms.quadratic_form.QuadraticForm` M
    ``separable()``           f(w) = sum of c_j |w_j| and bounds: a :class:`~cvxstructreg.forms.separable.Separable`
    ``blocks()``              (indptr, c) with f(z) = sum_g c_g ||z_g||, g the rows indptr[g] to indptr[g + 1] - 1
    ``latent_groups()``       (indptr, j, c) with f(w) = min sum_g c_g ||v_g|| over w = sum_g v_g, where v_g has the
                              features j[indptr[g]] to j[indptr[g + 1] - 1]
    ``hinges()``              (y, s) with f(z) = sum_i s_i (1 - y_i z_i)_+, y_i = -1 or +1, one number for each row
    ``kinks()``               (l, u, o) with f(z) = sum_i max(l_i (z_i - o_i), u_i (z_i - o_i)), arrays like z
    ``centred_hinges(k)``     sums of hinges of centred rows: :class:`~cvxstructreg.forms.centred_hinge.CentredHinges`
    ``repair(u, K, ...)``     a better u for the bound of a certificate; see ``BlockNorms.repair``
    ``dual_box()``            (lower, upper): conj(u) is finite if and only if lower <= u <= upper, entry by entry
    ``rebalance(u, target)``  a u' near u with conj(u') finite and column sums ``target``; None if there is none
    ========================  ==============================================================================

    Examples
    --------
    >>> import cvxpy as cp
    >>> import cvxstructreg as csr
    >>> class Largest(csr.Penalty):
    ...     def expr(self, z):
    ...         return cp.norm_inf(cp.vec(z, order="C"))
    >>> Largest()([1.0, -3.0])
    3.0
    """

    #: What the atom acts on in a problem: "weights", "scores" (all rows), "rows" (labelled rows), "values" (the scores
    #: of all rows without intercept) or "function" (the norm of a kernel model).
    target: ClassVar[str] = "weights"
    #: The formula that ``Problem.describe`` prints, and the conventions that users ask about.
    formula: ClassVar[str] = "f(w)"
    convention: ClassVar[str] = ""
    capabilities: ClassVar[frozenset[str]] = frozenset()
    #: NumPy would make an array of terms of an array times an atom; with None, :meth:`__rmul__` raises an error.
    __array_ufunc__ = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        accept_vectors(cls)
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # so that a dataclass adds none that prints arrays
        own = {name: getattr(cls, name, None) for name in CAPABILITIES}
        defined = {name for name, method in own.items() if method is not getattr(Atom, name, None)}
        defined -= set() if _is_newest(cls, "derivatives", ("value", "grad", "hess_diag")) else {"derivatives"}
        cls.capabilities = frozenset(name for name in defined if defined.issuperset(getattr(own[name], "needs", ())))

    @classmethod
    def can(cls, *names: str) -> bool:
        """Whether the class defines all of these capabilities."""
        return cls.capabilities.issuperset(names)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition: a DCP-convex, nonnegative CVXPY expression of ``z``, an (m, k) expression."""
        raise TypeError(f"{type(self).__name__} does not define expr(z); every atom needs this method")

    if TYPE_CHECKING:  # the optional part of the interface, for type checkers only

        def grad(self, z: Array) -> Array: ...
        def hessp(self, z: Array, p: Array) -> Array: ...
        def hess_diag(self, z: Array) -> Array: ...
        def derivatives(self, z: Array) -> tuple[float, Array, Array]: ...
        def hess_rows(self, z: Array) -> tuple[Array, Array]: ...
        def hess_factor(self, z: Array) -> tuple[Array, Array]: ...
        def hess_bound(self, z: Array) -> Array: ...
        def lipschitz(self) -> float: ...
        def conj(self, u: Array) -> float: ...
        def dual_norm(self, u: Array) -> float: ...
        def split(self) -> tuple[Atom, Any]: ...
        def parts(self, shape: tuple[int, int]) -> Sequence[Term]: ...
        def quadratic(self, m: int) -> QuadraticForm: ...
        def separable(self) -> Separable: ...
        def blocks(self) -> tuple[NDArray[np.int64], Array]: ...
        def latent_groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]: ...
        def hinges(self) -> tuple[Array, Array]: ...
        def kinks(self) -> tuple[Array, Array, Array]: ...
        def centred_hinges(self, k: int) -> CentredHinges: ...
        def repair(self, u: Array, K: Any, left: Array, bound: Array, scale: float, sweeps: int) -> Array: ...
        def dual_box(self) -> tuple[Array, Array]: ...
        def rebalance(self, u: Array, target: Array) -> Array | None: ...
        @classmethod
        def examples(cls, rng: np.random.Generator) -> Sequence[tuple[Self, tuple[int, int]]]: ...

    def into_domain(self, u: Array) -> Array:
        """A point near u in the domain of the conjugate: inside the dual ball for a norm, else u itself."""
        size = self.dual_norm(u) if self.can("dual_norm") and not self.can("conj") else 1.0
        return u / size if 1.0 < size < np.inf else u

    def largest_factor(self, u: Array) -> float | None:
        """The largest s for which conj(s u) is finite, if there is a formula; None: certificates search for it."""
        return None

    def on_model(self, model: Any) -> Atom:
        """The atom to use on the weights of this model: itself, or an equal one that more solvers recognise."""
        return self

    def for_outputs(self, k: int) -> Atom:
        """The atom to use on k outputs: itself, or an equal one that more solvers recognise."""
        return self

    @property
    def has_closed_prox(self) -> bool:
        """Whether ``prox`` takes no iterations, for these data."""
        return self.can("prox")

    def flat(self) -> Array | None:
        """An orthonormal basis (m x q) of directions along which f does not change, in each column; None: no such."""
        return None

    def is_nonnegative(self, shape: tuple[int, int]) -> bool:
        """Whether f >= 0 is known: always for norms, quadratic and separable atoms, else by the sign rules of CVXPY."""
        if self.can("dual_norm") or self.can("quadratic") or self.can("separable"):
            return True
        return bool(self.expr(cp.Variable(shape)).is_nonneg())

    @property
    def size(self) -> int | None:
        """The number of rows m that the atom acts on; None means any number."""
        return None

    @property
    def variable(self) -> cp.Variable | None:
        """The CVXPY variable of the expression that the atom was made of, if any."""
        return None

    @property
    def row_names(self) -> tuple[str, ...] | None:
        """The names of these rows, if the graph or the groups of the atom have names."""
        return None

    @property
    def needs_names(self) -> bool:
        """Whether the rows are known by their names only, so that the data must have names."""
        return False

    def aligned(self, names: tuple[str, ...]) -> Atom:
        """The same function of features of these names, which include all of :attr:`row_names`."""
        return self

    def check_rows(self, m: int, what: str) -> None:
        """Raise unless the atom can act on m rows; ``what`` names them in the message: features, examples."""
        if self.size is not None and self.size != m:
            few = self.size < m and (hasattr(self, "groups") or hasattr(self, "graph"))
            remedy = (
                f"; if the last are in none, pass Groups(lists, n_features={m})"
                if hasattr(self, "groups")
                else (f"; if the last have no edges, pass Graph.from_edges(pairs, n_nodes={m})")
            )
            raise ValueError(f"{self!r} acts on {self.size} rows, but the model has {m} {what}{remedy if few else ''}")

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless the atom can act on arrays of this shape (m, k)."""
        size = self.size
        if size is not None and size != shape[0]:
            raise ValueError(f"{self!r} acts on {size} rows, got an array of shape {shape}; pass {size} rows")

    def value(self, z: Array) -> float:
        """f(z), by evaluating ``expr``, minimised over its auxiliary variables if there are any."""
        expression = self.expr(cp.Constant(z))
        if not expression.variables():
            return float(expression.value)
        if _is_infinite(expression):
            return np.inf
        x = cp.Variable(z.shape)  # not a constant: CVXPY cannot minimise with indicators of constants
        problem = cp.Problem(cp.Minimize(self.expr(x)), [x == z])
        value = problem.solve(solver=cp.CLARABEL, **deadline.clarabel_limit())
        if problem.status == cp.USER_LIMIT:
            deadline.check()
        return float(value)

    def prox(self, v: Array, t: float) -> Array:
        """argmin_x  t f(x) + 1/2 ||x - v||^2, by a CVXPY problem that is compiled once for each shape."""
        return default_prox(self, v, t)

    def __call__(self, z: Any) -> Any:
        """f as an expression if z is a CVXPY expression, else the number f(z).

        The expression remembers the atom, so that ``prob.solve(method="structreg")`` recognises it.
        """
        columns = as_argument(z)
        self.check_shape(columns.shape)
        return remembered(self, columns) if is_expression(columns) else self.value(columns)

    def on_scores(self) -> Term:
        """The same function, applied to the scores F of all rows instead of the weights."""
        if self.target not in ("weights", "scores"):
            raise ValueError(f"{type(self).__name__} acts on the {self.target}; on_scores() is for weight penalties")
        return _objectives().Term(self, 1.0, "scores")

    def on_function(self) -> Term:
        """The same quadratic function, applied to the values h = F - 1 b' of all rows: scores without intercepts."""
        if self.target not in ("weights", "scores") or not self.can("quadratic"):
            raise ValueError(f"{self!r}.on_function() is for quadratic penalties only; use on_scores() for others")
        return _objectives().Term(self, 1.0, "values")

    def __rmul__(self, scale: Any) -> Term:
        return _objectives().Term(self, scale, self.target)

    __mul__ = __rmul__

    def __add__(self, other: Any) -> Objective:
        return _objectives().Objective.of(self) + other

    def __radd__(self, other: Any) -> Objective:
        Objective = _objectives().Objective
        return Objective.of(self) if is_zero(other) else Objective.of(other) + self

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise no_array(self)

    def __repr__(self) -> str:
        return short_repr(self)


accept_vectors(Atom)


@cache
def _objectives() -> Any:
    """The module of terms and objectives, which imports this one; a kept module takes less time than an import."""
    from cvxstructreg.core import objective

    return objective


def _is_newest(cls: type[Atom], name: str, others: Sequence[str]) -> bool:
    """Whether no base class between this class and the one that defines a method defines one of the others."""
    place = {one: at for at, base in reversed(list(enumerate(cls.__mro__))) for one in vars(base)}
    return name in place and all(place[name] <= place.get(other, len(place)) for other in others)


def _is_infinite(expression: cp.Expression) -> bool:
    """Whether a constant part of the expression is infinite, such as a violated bound."""
    if expression.is_constant():
        return bool(expression.size == 1 and expression.value == np.inf)
    return any(_is_infinite(argument) for argument in expression.args)


class NotAnArrayError(TypeError, ValueError):
    """A penalty inside an array. Also a ValueError, after which ``GridSearchCV`` lists penalties as objects."""


def no_array(item: Any) -> TypeError:
    """The error for a penalty or a sum of penalties inside a CVXPY expression or an array."""
    return NotAnArrayError(
        f"{item!r} is not a number or an array. A strength is a number or a CVXPY parameter in front of a penalty: "
        "0.5 * L1(). Inside a CVXPY expression, apply the penalty to CVXPY variables: L1()(w)"
    )


def is_zero(item: Any) -> bool:
    """Whether the item is the number 0, with which ``sum`` starts."""
    return isinstance(item, Real) and item == 0


def needs(*names: str) -> Callable[[_Method], _Method]:
    """Mark a default method of a base class: a subclass has it only if it defines these other capabilities."""

    def marked(method: _Method) -> _Method:
        method.__dict__["needs"] = names
        return method

    return marked


def as_columns(values: Any, name: str) -> Array:
    """A finite float array of shape (m, k); a vector becomes one column."""
    array = real_array(values, name)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two dimensions, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinite values")
    return array.reshape(-1, 1) if array.ndim == 1 else array


def as_argument(z: Any) -> Any:
    """The argument as an (m, k) CVXPY expression or array; a vector becomes one column."""
    if not is_expression(z):
        return as_columns(z, "z")
    return z if z.ndim == 2 else cp.reshape(z, (z.size, 1), order="F")


def remembered(function: Any, z: cp.Expression) -> cp.Expression:
    """The expression of an atom, a term or an objective at z, which knows what it is the expression of."""
    from cvxstructreg.cvx.remembered import expression_of

    return expression_of(function, z)


def freeze(instance: Any, **fields: Any) -> None:
    """Set validated fields of a frozen dataclass; arrays become read-only."""
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flags.writeable = False
        object.__setattr__(instance, name, value)


def conjugate(atom: Atom, u: Array) -> float:
    """f*(u) by ``conj``, or by ``dual_norm`` for a norm (0 inside its dual ball up to round-off, else inf).

    Infinite if the atom has neither. The true conjugate is no larger, so a bound from this value is valid but trivial.
    """
    if atom.can("conj"):
        return atom.conj(u)
    if not atom.can("dual_norm"):
        return np.inf
    return 0.0 if atom.dual_norm(u) <= 1.0 + UNIT else np.inf


def has_conjugate(atom: Atom) -> bool:
    """Whether the atom has a conjugate, which a duality gap needs."""
    return atom.can("conj") or atom.can("dual_norm")
