"""Mute warnings in one thread only: ``warnings.catch_warnings`` changes the filters of all threads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_MUTED: ContextVar[tuple[type[Warning], ...]] = ContextVar("cvxstructreg_muted", default=())


@contextmanager
def muted(*categories: type[Warning]) -> Iterator[None]:
    """Mute the warnings of these categories that :func:`warn` issues in this context; other threads are not affected.

    Examples
    --------
    >>> with muted(UserWarning):
    ...     warn("nobody sees this", UserWarning)
    """
    token = _MUTED.set(_MUTED.get() + categories)
    try:
        yield
    finally:
        _MUTED.reset(token)


def warn(message: str, category: type[Warning], stacklevel: int = 1) -> None:
    """Call ``warnings.warn`` unless the category is muted; ``stacklevel`` counts from the caller."""
    if not issubclass(category, _MUTED.get()):
        warnings.warn(message, category, stacklevel=stacklevel + 1)
