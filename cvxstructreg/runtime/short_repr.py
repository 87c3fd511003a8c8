"""One-line reprs of dataclasses, with arrays shown by their size."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Collections with more items, and reprs with more characters, are shown by their size or type.
MOST_ITEMS, LONGEST = 4, 120


def short_repr(instance: Any) -> str:
    """Return ``Name(field=value, ...)`` for the fields that differ from their defaults; ``Name()`` for other classes.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Costs:
    ...     values: np.ndarray
    ...     power: int = 1
    ...     __repr__ = short_repr
    >>> Costs(np.ones((10_000, 2)), power=2)
    Costs(values=<10000 x 2 numbers>, power=2)
    """
    return f"{type(instance).__name__}({', '.join(shown_fields(instance))})"


def shown_fields(instance: Any, but: Collection[str] = ()) -> list[str]:
    """Return ``field=value`` for each field of a dataclass that differs from its default, except those in ``but``."""
    return [
        f"{field.name}={shortened(getattr(instance, field.name))}"
        for field in (fields(instance) if is_dataclass(instance) else ())
        if field.repr and field.name not in but and not _is_default(field, getattr(instance, field.name))
    ]


def shortened(value: Any) -> str:
    """Return a short text for the value: its repr if that is short, otherwise its size or type."""
    if sp.issparse(value):
        return f"<{size_of(value)} sparse>"
    if isinstance(value, np.ndarray | np.generic):
        if value.ndim == 0:
            return f"{value:g}" if value.dtype.kind == "f" else repr(value.item())
        return f"<{size_of(value)} {'numbers' if value.dtype.kind in 'biuf' else 'entries'}>"
    if isinstance(value, list | tuple | set | frozenset | dict) and len(value) > MOST_ITEMS:
        return f"<{len(value)} items>"
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {shortened(item)}" for key, item in value.items()) + "}"
    if type(value) in (list, tuple):
        return "(" + ", ".join(map(shortened, value)) + ")"
    text = repr(value)
    return f"<{type(value).__name__}>" if len(text) > LONGEST or "\n" in text else text


def size_of(matrix: Any) -> str:
    """Return the shape of an array or matrix as text, such as ``10000 x 2``."""
    return " x ".join(map(str, matrix.shape))


def _is_default(field: Field[Any], value: Any) -> bool:
    if field.default is MISSING:
        return False
    return value is field.default or (np.ndim(value) == 0 and bool(np.all(value == field.default)))
