"""The base class for penalties of your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.objective import Term

#: What an atom of no known form may define; whoever knows more about a function says so by other capabilities.
FORMLESS = frozenset({"value", "prox", "conj", "dual_norm"})


class Penalty(Atom):
    """Base class for a penalty of your own: define ``expr(z)``, and as many other methods of an atom as you know.

    The table of methods is in the docstring of :class:`cvxstructreg.core.atom.Atom`, and
    ``cvxstructreg.testing.check_atom`` compares each of them with ``expr``. If ``expr`` is all that a class defines,
    known structure is recognised in it, and the prox and a bound of the conjugate are computed, as by
    :class:`cvxstructreg.FromExpression`. ``Penalty(function)`` is short for ``FromExpression(function)``.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import cvxstructreg as csr
    >>> class Largest(csr.Penalty):
    ...     '''max_j |w_j|.'''
    ...
    ...     def expr(self, z):
    ...         return cp.max(cp.abs(z))
    >>> Largest()([1.0, -3.0])
    3.0
    >>> csr.Penalty(cp.norm_inf)([1.0, -3.0])
    3.0
    """

    convention: ClassVar[str] = "intercepts are not penalised"

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """An instance of a subclass; the base class itself makes a penalty of a function of the weights."""
        if cls is not Penalty:
            return super().__new__(cls)
        if not given:
            raise TypeError(
                "Penalty is a base class; derive a class with the method expr(z) from it, or pass a function of the "
                "weights: Penalty(lambda w: cp.norm1(w))"
            )
        from cvxstructreg.expressions import FromExpression

        return FromExpression(*given, **named)  # type: ignore[return-value]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.capabilities <= {"value"}:
            cls.parts = _parts_of_expression  # type: ignore[method-assign, assignment]
            cls.capabilities |= {"parts"}


def _parts_of_expression(self: Penalty, shape: tuple[int, int]) -> Any:
    """The parts of the expression, for a class that defines nothing else."""
    known = vars(self).get("_expression")
    if known is None:
        from cvxstructreg.expressions import FromExpression

        made = FromExpression(self.expr, name=repr(self), joint=True)
        known = vars(self).setdefault("_expression", made)
    return known.parts(shape)


def has_parts(atom: Atom) -> bool:
    """Whether the atom is stated as a sum of terms, or is from outside of the library and states no form."""
    return atom.can("parts") or _is_from_outside(atom)


def parts_of(atom: Atom, shape: tuple[int, int]) -> Sequence[Term]:
    """The terms on the weights whose sum is the atom, if :func:`has_parts`.

    A penalty from outside of the library that states no form of its own has the form of its expression.
    """
    if atom.can("parts"):
        return atom.parts(shape)
    from cvxstructreg.expressions.known_form import parts_of_expression

    return parts_of_expression(atom, shape)


def _is_from_outside(atom: Atom) -> bool:
    """Whether a penalty has no known form, and the library did not define it: its expression may say more."""
    outside = type(atom).__module__.partition(".")[0] != "cvxstructreg"
    return outside and atom.target == "weights" and atom.capabilities <= FORMLESS
