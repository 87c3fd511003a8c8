"""Losses with an offset: scores that are known in advance and added to the scores of the model.

    loss with offset o:     z -> f(z + o),      conjugate  u -> f*(u) - <u, o>,      prox  v -> prox_f(v + o) - o

Every loss writes its formulas without an offset. A loss that is given one becomes an instance of a subclass, made here
once for each class of losses, whose methods call those of the same loss without offset. The subclass lacks the
capabilities that describe the function by labels and weights only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.lazy_cvxpy import cp

if TYPE_CHECKING:
    from cvxstructreg.core.loss import Loss

#: Capabilities whose results have no place for an offset.
WITHOUT_OFFSET = frozenset({"hinges", "centred_hinges"})


#: The subclasses made so far; two threads that make the same one both get the first that is stored.
_MADE: dict[Any, type[Loss]] = {}


def with_offset(cls: type[Loss]) -> type[Loss]:
    """The subclass of a class of losses for instances with an offset."""
    return _MADE[cls] if cls in _MADE else _MADE.setdefault(cls, _subclass(cls))


def _subclass(cls: type[Loss]) -> type[Loss]:
    moved = {name: method for name, method in vars(_Moved).items() if name in cls.capabilities}
    always = {name: vars(_Moved)[name] for name in ("without_offset", "expr", "value", "constants", "__reduce__")}
    own = {"plain_class": cls, "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    made = cast("type[Loss]", type(cls.__name__, (cls,), {**moved, **always, **own}))
    made.capabilities = cls.capabilities - WITHOUT_OFFSET
    return made


class _Moved:
    """The methods of the subclass; ``self`` is a loss with an offset."""

    offset: Array
    plain_class: type[Loss]

    @cached_property
    def without_offset(self) -> Any:
        """The same loss without offset."""
        plain = object.__new__(self.plain_class)
        plain.__dict__.update(cast("dict[str, Any]", self.__getstate__()), offset=None)
        return plain

    def expr(self, z: cp.Expression) -> cp.Expression:
        """The definition."""
        return self.without_offset.expr(z + self.offset)

    def value(self, z: Array) -> float:
        """f(z + o)."""
        return float(self.without_offset.value(z + self.offset))

    def grad(self, z: Array) -> Array:
        """The gradient at z + o."""
        return np.asarray(self.without_offset.grad(z + self.offset))

    def hessp(self, z: Array, p: Array) -> Array:
        """The Hessian at z + o times p."""
        return np.asarray(self.without_offset.hessp(z + self.offset, p))

    def hess_diag(self, z: Array) -> Array:
        """The diagonal of the Hessian at z + o."""
        return np.asarray(self.without_offset.hess_diag(z + self.offset))

    def derivatives(self, z: Array) -> tuple[float, Array, Array]:
        """Value, gradient and diagonal of the Hessian at z + o."""
        value, gradient, diagonal = self.without_offset.derivatives(z + self.offset)
        return value, gradient, diagonal

    def hess_rows(self, z: Array) -> tuple[Array, Array]:
        """The parts of the Hessian at z + o."""
        diagonal, root = self.without_offset.hess_rows(z + self.offset)
        return diagonal, root

    def hess_factor(self, z: Array) -> tuple[Array, Array]:
        """The parts of the Hessian at z + o."""
        diagonal, factor = self.without_offset.hess_factor(z + self.offset)
        return diagonal, factor

    def hess_bound(self, z: Array) -> Array:
        """The bound of the Hessian at z + o."""
        return np.asarray(self.without_offset.hess_bound(z + self.offset))

    def prox(self, v: Array, t: float) -> Array:
        """prox_f(v + o) - o; entries that the prox leaves as they are stay exactly v."""
        moved = v + self.offset
        result = self.without_offset.prox(moved, t)
        return np.where(result == moved, v, result - self.offset)

    def conj(self, u: Array) -> float:
        """f*(u) - <u, o>."""
        return float(self.without_offset.conj(u) - np.vdot(u, self.offset))

    def kinks(self) -> tuple[Array, Array, Array]:
        """The slopes, and the kinks minus o."""
        lower, upper, at = self.without_offset.kinks()
        return lower, upper, at - self.offset

    def constants(self) -> list[Array]:
        """By the kinks, or candidates only: the constants of the loss without offset, minus the mean of the offset."""
        plain = self.without_offset
        if plain.can("kinks"):
            from cvxstructreg.core.loss import lowest_constants

            return [lowest_constants(*self.kinks())]
        mean = np.average(self.offset, axis=0, weights=plain.sample_weight)
        return [row - mean for row in plain.constants()]

    def __reduce__(self) -> Any:
        return restored, (self.plain_class, self.__getstate__())


def restored(cls: type[Loss], state: dict[str, Any]) -> Loss:
    """A copy of a loss with an offset, for :mod:`copy` and :mod:`pickle`."""
    loss = object.__new__(with_offset(cls))
    loss.__dict__.update(state)
    return loss
