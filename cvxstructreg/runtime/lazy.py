"""Attributes that are computed on first access, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers see the class of the standard library
    from functools import cached_property
else:

    class cached_property:  # noqa: N801
        """Like ``functools.cached_property`` of Python 3.12, with one value for all threads.

        Two threads may both compute the value; both get the value that is stored first. Python 3.11 holds one lock per
        property, shared by all instances: a process forked while another thread computes such a value would wait for
        that lock forever.

        Examples
        --------
        >>> class Square:
        ...     @cached_property
        ...     def area(self):
        ...         return [4.0]
        >>> square = Square()
        >>> square.area is square.area
        True
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.name, self.compute(instance))


def cached_names(cls: type) -> set[str]:
    """The names of all cached properties of a class."""
    return {name for base in cls.__mro__ for name, kept in vars(base).items() if isinstance(kept, cached_property)}


__all__ = ["cached_names", "cached_property"]
