"""The time limit of the running solve, for inner loops to ask.

The driver sets it once (:func:`within`); a prox, a certificate or a long iteration asks :func:`passed` and ends early
with what it has, or calls :func:`check` where half a result is no result. Without a time limit both cost next to
nothing. A context variable holds the limit, so that solves in several threads do not see each other's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: The clock of all limits, in seconds. Tests replace it by one that counts how often it is asked.
clock = time.perf_counter

_END: ContextVar[float] = ContextVar("end of the running solve", default=math.inf)


class OutOfTimeError(Exception):
    """The time limit has passed inside a computation that has no result to give yet."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit what happens inside to so many seconds; an earlier limit from outside stays.

    Examples
    --------
    >>> with within(60.0):
    ...     0.0 < remaining() <= 60.0, passed()
    (True, False)
    >>> remaining()
    inf
    """
    token = _END.set(min(_END.get(), clock() + seconds) if seconds < math.inf else _END.get())
    try:
        yield
    finally:
        _END.reset(token)


@contextmanager
def at_least(seconds: float) -> Iterator[None]:
    """Allow what happens inside so many seconds from now, even where the limit has passed: for a last certificate."""
    end = _END.get()
    token = _END.set(end if end == math.inf else max(end, clock() + seconds))
    try:
        yield
    finally:
        _END.reset(token)


def remaining() -> float:
    """Seconds left, at least 0; infinite without a limit."""
    end = _END.get()
    return math.inf if end == math.inf else max(0.0, end - clock())


def passed() -> bool:
    """Whether the time limit has passed."""
    end = _END.get()
    return end < math.inf and clock() >= end


def check() -> None:
    """Raise :class:`OutOfTimeError` if the time limit has passed."""
    if passed():
        raise OutOfTimeError("the time limit has passed")


def clarabel_limit() -> dict[str, float]:
    """The option with which Clarabel keeps the time limit, if there is one; raises if it has passed already."""
    check()
    seconds = remaining()
    return {"time_limit": seconds} if seconds < math.inf else {}
