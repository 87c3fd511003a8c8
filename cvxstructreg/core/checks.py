"""Checks of user input: names, indices, counts, weights; and helpers for error messages."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Names = tuple[str, ...] | None


def checked_names(names: Iterable[str] | None, count: int | None, kind: str, unique: bool = True) -> Names:
    """Return the names, if any, as a tuple of strings, after checking their number and (if ``unique``) repetitions."""
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"{kind} names must be a list of strings, not the single string {names!r}")
    given = tuple(names.tolist() if hasattr(names, "tolist") else names)
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"{kind} names must be strings, not {name!r}; use [str(name) for name in names]")
    if count is not None and len(given) != count:
        raise ValueError(f"{plural(len(given), f'{kind} name')} for {plural(count, kind)}; give one for each")
    if unique and len(set(given)) < len(given):
        name, times = Counter(given).most_common(1)[0]
        raise ValueError(f"{kind} name {name!r} occurs {times} times; make the names distinct")
    return tuple(map(str, given))


def checked_count(count: int, argument: str) -> int:
    """Return the count as an int, after checking that it is a positive integer."""
    if not isinstance(count, int | np.integer):
        raise TypeError(f"{argument} must be an integer, not {count!r}")
    if count < 1:
        raise ValueError(f"{argument} must be at least 1, not {count}")
    return int(count)


def inferred_count(count: int | None, names: Names, indices: NDArray[np.int64], argument: str) -> int:
    """Return the given count, else the number of names, else the largest index plus one."""
    if count is not None:
        return checked_count(count, argument)
    if names is not None:
        return len(names)
    if indices.size == 0:
        raise ValueError(f"cannot infer {argument} from empty input; pass {argument} or the names")
    return max(0, int(indices.max())) + 1


def indices_of(items: NDArray[Any], names: Names, kind: str) -> NDArray[np.int64]:
    """Return a new array of indices for items that are indices already or names to look up."""
    if items.size == 0:
        return np.zeros(items.shape, dtype=np.int64)
    if items.dtype.kind in "iu":
        return items.astype(np.int64)
    if items.dtype.kind not in "UTO":
        remedy = "use np.flatnonzero(mask)" if items.dtype == bool else "convert them with .astype(int)"
        raise TypeError(f"{kind}s must be integer indices or names, not {items.dtype} values; {remedy}")
    given = items.ravel().tolist()
    if names is None:
        raise TypeError(f"{given[0]!r} is not a {kind} index; use integers, or pass the {kind} names as well")
    position = {name: index for index, name in enumerate(names)}
    try:
        found = [position[name] for name in given]
    except KeyError as error:
        raise ValueError(f"unknown {kind} name {error}; the names are {reprlib.repr(names)}") from None
    return np.array(found, dtype=np.int64).reshape(items.shape)


def check_range(indices: NDArray[np.int64], count: int, kind: str, where: str | Callable[[int], str]) -> None:
    """Raise unless all indices are from 0 to count - 1; ``where`` names their place, or finds it by position."""
    outside = (indices < 0) | (indices >= count)
    if outside.any():
        first = int(np.argmax(outside))  # in the flattened array
        place = where(first) if callable(where) else where
        raise ValueError(
            f"{kind} index {indices.flat[first]} in {place} is out of range for {plural(count, kind)}, "
            f"numbered from 0; correct the index or n_{kind}s"
        )


def real_array(values: Any, what: str) -> NDArray[np.float64]:
    """Return the values as a new float64 array, after checking that they are real numbers."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{what} must be real numbers, not {array.dtype}; use .real or .astype(float) first")
    return array.astype(np.float64)


def real_number(value: Any, what: str) -> float:
    """Return the value as a float, after checking that it is a single real number."""
    if isinstance(value, bool) or np.ndim(value) != 0 or np.asarray(value).dtype.kind not in "iuf":
        raise TypeError(f"{what} must be a single number, got {reprlib.repr(value)}")
    return float(value)


def weight_array(weights: ArrayLike | None, count: int, kind: str) -> NDArray[np.float64]:
    """Return a new array of weights: ones by default, a repeated scalar, or one weight for each."""
    values = real_array(1.0 if weights is None else weights, f"{kind} weights")
    if values.ndim == 0:
        return np.full(count, values)
    if values.shape != (count,):
        given = f"weights have shape {values.shape} for {plural(count, kind)}"
        raise ValueError(f"{given}; give a scalar or one weight per {kind}")
    return values


def index_type(largest: int) -> type[np.signedinteger[Any]]:
    """Return the integer type that scipy.sparse uses for indices and counts up to ``largest``."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def chosen_names(names: Names, indices: Iterable[int]) -> Names:
    """Return the names at these indices, or None if there are no names."""
    return None if names is None else tuple(names[index] for index in indices)


def show(names: Names, *indices: int) -> str:
    """Return the quoted names at these indices, or the indices themselves, for a message."""
    return ", ".join(str(index) if names is None else repr(names[index]) for index in indices)


def plural(count: int, noun: str) -> str:
    """Return the count with its noun, as in "1 node" and "2 nodes"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def column_names(table: Any) -> Names:
    """Return the column names of a data frame if all are strings, else None."""
    columns = getattr(table, "columns", ())
    names = () if callable(columns) else tuple(columns)
    return names if names and all(isinstance(name, str) for name in names) else None
