"""A penalty in one line: a convex CVXPY expression is all that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.objective import Term
from cvxstructreg.expressions.cone_program import ConeProgram
from cvxstructreg.expressions.cone_solver import ConeSolver
from cvxstructreg.expressions.conic_atoms import conic_penalty
from cvxstructreg.expressions.given import GIVEN, with_formulas
from cvxstructreg.expressions.of_variable import OfVariable
from cvxstructreg.expressions.recognition import recognised
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp

#: A minimum below minus this, relative to the value at zero, makes a function negative.
NEGATIVE = 1e-7
#: The sum of recognised parts may differ from the expression by this, relative to it.
SAME = 1e-8


class FromExpression(Atom):
    """f(w) = a convex, nonnegative CVXPY expression of the weights; no formula is needed.

    The expression is compiled to a cone program once for each number of weights. Absolute values, norms, squares and
    Huber functions of linear maps are recognised in it, so that the fastest solvers accept the penalty. For any other
    expression, the prox is one solve of the cone program, and the conjugate is bounded by its dual: the residuals of
    the cone solver are charged to the bound, so that the duality gap is valid.

    Parameters
    ----------
    function : function of a CVXPY expression, or an expression
        Given ``w`` of shape (d,), it returns a scalar expression. With several outputs the penalty is the sum over the
        columns of the weights, unless ``joint``. An expression of one variable, such as ``cp.norm1(w)``, is taken as a
        function of this variable, of shape (d,) or, for several outputs, (d, k).
    name : str, optional
        The name in ``describe()``, in messages and in the repr; by default the text of the expression.
    joint : bool
        Whether the function takes the whole matrix of weights, of shape (d, k).
    prox, conj, dual_norm, grad, hessp, lipschitz : functions, optional
        Known formulas, as the methods of the same names of an atom (``lipschitz`` may be a number). They are used
        instead of the cone program, and compared with it once for each number of weights. With ``grad``, the penalty
        is smooth.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> import cvxstructreg as csr
    >>> penalty = csr.FromExpression(lambda w: cp.tv(w) + 0.5 * cp.norm1(w), name="sparse total variation")
    >>> penalty([0.0, 2.0, 2.0])
    4.0
    >>> X, y = np.eye(4), [0.1, 3.0, 3.2, 0.0]
    >>> solution = csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 0.5 * penalty).solve()
    >>> solution.status, solution.coef.round(3).tolist()
    ('optimal', [0.35, 2.35, 2.35, 0.25])

    In a sum, an expression is enough:

    >>> w = cp.Variable(4)
    >>> csr.Problem(csr.Linear(X, intercept=False), csr.Squared(y) + 0.5 * cp.norm1(w)).solve().coef.round(3).tolist()
    [0.0, 2.5, 2.7, 0.0]
    """

    formula: ClassVar[str] = "expression of w"
    convention: ClassVar[str] = "given as a CVXPY expression; intercepts are not penalised"

    def __init__(
        self, function: Callable[..., Any], name: str | None = None, joint: bool = False, **formulas: Any
    ) -> None:
        if isinstance(function, cp.Expression):
            function = OfVariable(function)
            joint = joint or function.is_joint
        if not callable(function):
            raise TypeError(f"FromExpression takes a function of the weights, got {type(function).__name__}")
        unknown = sorted(set(formulas) - set(GIVEN))
        if unknown:
            raise TypeError(f"FromExpression has no argument {unknown[0]!r}; the formulas are {', '.join(GIVEN)}")
        given = {key: value for key, value in formulas.items() if value is not None}
        self.function, self.name, self.joint, self.given = function, name, bool(joint), given
        self._known: dict[Any, Any] = {}  # programs and parts, by shape
        if name is not None:
            vars(self)["formula"] = name

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_known": {key: value for key, value in self._known.items() if key == "text"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition: the sum over the columns of z, or the function of z if it is joint."""
        if self.joint:
            return self._applied(z)
        columns = [self._applied(z[:, j]) for j in range(z.shape[1])]
        return columns[0] if len(columns) == 1 else cp.sum(columns)

    def _applied(self, w: Any) -> cp.Expression:
        try:
            result = self.function(w)
        except Exception as error:
            raise ValueError(
                f"{self!r} cannot be applied to weights of shape {w.shape}: {type(error).__name__}: {error}"
            ) from error
        if isinstance(result, (int, float, np.number)):
            result = cp.Constant(result)
        if not isinstance(result, cp.Expression):
            raise TypeError(f"{self!r} must return a CVXPY expression, got {type(result).__name__}")
        if result.size != 1:
            raise ValueError(f"{self!r} must return one number, got {_short(result)} of shape {result.shape}; sum it")
        return result

    def value(self, z: Array) -> float:
        """f(z); infinite outside the domain."""
        with np.errstate(all="ignore"):
            found = Atom.value(self, z)
        return np.inf if np.isnan(found) else found

    def prox(self, v: Array, t: float) -> Array:
        """The prox of its only part, or that of the cone program."""
        parts = self.parts(v.shape)
        if len(parts) == 1 and parts[0].can("prox"):
            return parts[0].prox(v, t)
        atom: Atom = self._conic(v.shape)
        return atom.prox(v, t)

    def parts(self, shape: tuple[int, int]) -> Sequence[Term]:
        """Recognised penalties, or one penalty with the prox and the conjugate of the cone program."""
        key = ("parts", tuple(shape))
        known = self._known.get(key)
        return known if known is not None else self._known.setdefault(key, self._find_parts((shape[0], shape[1])))

    def _find_parts(self, shape: tuple[int, int]) -> tuple[Term, ...]:
        if self.given:
            return (1.0 * with_formulas(self._conic(shape), self.given),)
        if not self.joint or shape[1] == 1:
            found = recognised(self._program(shape))
            if found is not None and (shape[1] == 1 or found.acts_by_column):
                terms = tuple(found.terms())
                if self._is_sum_of(terms, shape):
                    return terms
        return (1.0 * self._conic(shape),)

    def _is_sum_of(self, terms: Sequence[Term], shape: tuple[int, int]) -> bool:
        """Whether the terms add up to the expression at a random point."""
        z = np.random.default_rng(0).normal(size=shape)
        expected = self.value(z)
        return abs(sum(term.value(z) for term in terms) - expected) <= SAME * (1.0 + abs(expected))

    def _conic(self, shape: tuple[int, ...]) -> Any:
        key = ("conic", shape)
        known = self._known.get(key)
        if known is None:
            known = self._known.setdefault(key, conic_penalty(self, (shape[0], shape[1]), self._program(shape)))
        return known

    def _program(self, shape: tuple[int, ...]) -> ConeProgram:
        """The cone program for one column, or for all if the function is joint; compiled once."""
        key = ("program", shape if self.joint else shape[:1])
        known = self._known.get(key)
        if known is None:
            x = cp.Variable(shape if self.joint else shape[0], name="w")
            known = self._known.setdefault(key, self._compiled(x))
        return known

    def _compiled(self, x: cp.Variable) -> ConeProgram:
        expression = self._applied(x)
        self._known["text"] = _short(expression, 80)
        if self.name is None:
            vars(self)["formula"] = self._known["text"]
        if expression.parameters():
            names = ", ".join(parameter.name() for parameter in expression.parameters())
            raise ValueError(
                f"{self!r} contains the CVXPY parameter {names}; use its number, as in {names}.value. A strength "
                "belongs in front: 0.5 * FromExpression(...), and a path changes it"
            )
        if not expression.is_convex():
            raise ValueError(
                f"{self!r} is not convex by the rules of CVXPY: the curvature of {_short(expression)} is "
                f"{expression.curvature}. If the function is convex, write it with other CVXPY functions"
            )
        if not any(variable.id == x.id for variable in expression.variables()):
            raise ValueError(f"{self!r} does not depend on the weights: {_short(expression)}")
        program = ConeProgram.compiled(expression, x)
        if not expression.is_nonneg():
            self._require_nonnegative(expression, program)
        return program

    def _require_nonnegative(self, expression: cp.Expression, program: ConeProgram) -> None:
        """Raise unless the smallest value, found by the cone solver, is at least zero up to its accuracy."""
        answer = ConeSolver(program, False).solve(program.c)
        v = answer.v
        lowest = float(program.c @ v + 0.5 * v @ (program.P @ v)) + program.constant if answer.solved else -np.inf
        floor = NEGATIVE * (1.0 + abs(program.constant) + float(np.abs(program.c) @ np.abs(v)))
        if lowest >= -floor:
            return
        where = f"it is {lowest:.6g} at its minimum" if answer.solved else f"it has no minimum ({answer.status})"
        raise ValueError(
            f"{self!r} is not nonnegative, as a penalty must be: {where}. The expression is {_short(expression)}; add "
            "a constant, or a term that bounds it from below"
        )

    @property
    def variable(self) -> cp.Variable | None:
        """The variable, if the penalty was given as an expression."""
        return self.function.variable if isinstance(self.function, OfVariable) else None

    @property
    def size(self) -> int | None:
        """The length of this variable."""
        return None if self.variable is None else (self.variable.shape or (1,))[0]

    def check_rows(self, m: int, what: str) -> None:
        """Compile the expression for m rows, which checks that it is convex and nonnegative."""
        super().check_rows(m, what)
        if not self.joint:
            self._program((m, 1))

    def __repr__(self) -> str:
        label = self.name or self._known.get("text") or getattr(self.function, "__name__", "function")
        return f"FromExpression({label})"

    @classmethod
    def examples(cls, rng: np.random.Generator) -> Sequence[tuple[FromExpression, tuple[int, int]]]:
        """Small instances with the shape they act on."""
        K = rng.normal(size=(3, 4))
        return [
            (cls(lambda w: cp.tv(w) + 0.5 * cp.norm1(w), name="sparse total variation"), (4, 1)),
            (cls(lambda w: cp.sum(cp.huber(K @ w, 0.5)) + cp.norm(w, 2), name="huber and norm"), (4, 1)),
            (cls(lambda w: cp.norm_inf(w), name="largest weight"), (3, 2)),
            (cls(lambda w: cp.norm1(K @ w - 1.0) + cp.sum_squares(w), name="offset"), (4, 1)),
            (cls(lambda W: cp.normNuc(W), name="nuclear norm", joint=True), (3, 2)),
        ]


def term_of(expression: cp.Expression) -> Term:
    """The term of a CVXPY expression in a sum; a factor in front of the expression is the strength."""
    if isinstance(expression, cp.multiply) and expression.size == 1:
        for factor, rest in (expression.args, reversed(expression.args)):
            if factor.is_constant() and not rest.is_constant():
                return factor * FromExpression(rest)
    return 1.0 * FromExpression(expression)


def _short(expression: cp.Expression, most: int = 200) -> str:
    text = " ".join(str(expression).split())
    return text if len(text) <= most else text[: most - 3] + "..."
