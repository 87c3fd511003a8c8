"""The names of the columns of X, and the columns that belong to given names."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.checks import checked_names, plural


def vocabulary_names(vocabulary: Any) -> tuple[str, ...]:
    """Return the name of column 0, 1, ... of X.

    Parameters
    ----------
    vocabulary : fitted vectorizer, sequence of str, or dict from name to column
        A vectorizer is anything with ``get_feature_names_out()``, such as a fitted CountVectorizer.

    Examples
    --------
    >>> vocabulary_names({"star": 1, "moon": 0})
    ('moon', 'star')
    """
    if hasattr(vocabulary, "get_feature_names_out"):
        return _names_of_vectorizer(vocabulary)
    if hasattr(vocabulary, "fit") and hasattr(vocabulary, "transform"):
        raise TypeError(
            f"a {type(vocabulary).__name__} has no feature names; use a CountVectorizer or TfidfVectorizer, "
            "or pass the list of names"
        )
    if isinstance(vocabulary, Mapping):
        return _names_of_mapping(vocabulary)
    if not isinstance(vocabulary, Iterable):
        raise TypeError(
            f"the vocabulary must be a fitted vectorizer, a list of names or a dict from name to column, "
            f"not {reprlib.repr(vocabulary)}"
        )
    names = checked_names(vocabulary, None, "feature")
    if not names:
        raise ValueError("the vocabulary is empty; it must name the columns of X")
    return names


def _names_of_vectorizer(vectorizer: Any) -> tuple[str, ...]:
    try:
        names = vectorizer.get_feature_names_out()
    except (ValueError, AttributeError) as error:  # both are scikit-learn's NotFittedError
        raise ValueError(
            f"the {type(vectorizer).__name__} is not fitted, so its vocabulary is unknown; "
            "fit it on the documents from which X is made"
        ) from error
    return checked_names(names, None, "feature") or ()


def _names_of_mapping(mapping: Mapping[Any, Any]) -> tuple[str, ...]:
    columns = np.array([*mapping.values()] or [0])
    if len(mapping) == 0:
        raise ValueError("the vocabulary is empty; it must name the columns of X")
    if columns.dtype.kind not in "iu" or not np.array_equal(np.sort(columns), np.arange(len(columns))):
        raise ValueError(
            f"a vocabulary that is a dict must number its {plural(len(mapping), 'name')} from 0 to "
            f"{len(mapping) - 1}, each once; got {reprlib.repr(dict(mapping))}"
        )
    return checked_names(sorted(mapping, key=lambda name: int(mapping[name])), None, "feature") or ()


class ColumnFinder:
    """Finds the columns that belong to given names.

    Parameters
    ----------
    names : the vocabulary, or None if columns can only be given by number
    n_features : number of columns
    missing : {"ignore", "error"}
        What to do with names that are not in the vocabulary.

    Examples
    --------
    >>> ColumnFinder(("moon", "star"), 2).find(["star", "salt", 0], "word")
    (array([1, 0]), ['salt'])
    """

    def __init__(self, names: tuple[str, ...] | None, n_features: int, missing: str = "ignore"):
        check_choice(missing, ("ignore", "error"), "missing")
        self.n_features, self.missing = n_features, missing
        self._position = None if names is None else {name: column for column, name in enumerate(names)}

    def find(self, items: Iterable[Any], what: str) -> tuple[NDArray[np.int64], list[str]]:
        """Return the columns of the known items (names or numbers), and the names that are unknown."""
        found, unknown = [], []
        for item in items:
            column = self._column(item, what)
            if column is None:
                unknown.append(item)
            else:
                found.append(column)
        if unknown and self.missing == "error":
            raise ValueError(
                f"{plural(len(unknown), what)} not in the vocabulary: {reprlib.repr(unknown)}; "
                'remove them, or pass missing="ignore"'
            )
        return np.array(found, dtype=np.int64), unknown

    def _column(self, item: Any, what: str) -> int | None:
        if isinstance(item, str):
            if self._position is None:
                raise ValueError(f"{what} {item!r} is a name, but the columns of X have no names; pass vocabulary=...")
            return self._position.get(item)
        if not isinstance(item, int | np.integer) or isinstance(item, bool):
            raise TypeError(f"a {what} must be a name or a column number, not {item!r}")
        if not 0 <= item < self.n_features:
            raise ValueError(f"{what} {item} is out of range for {plural(self.n_features, 'feature')}")
        return int(item)


def check_choice(value: Any, choices: tuple[str, ...], argument: str) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        allowed = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"{argument} must be one of {allowed}, not {value!r}")
