"""The time limit of the current solve, for inner loops.

The driver sets the limit once (:func:`within`). A prox, a certificate or a long iteration calls :func:`passed` and
stops early with a partial result, or calls :func:`check` if a partial result is useless. Without a time limit both
calls cost almost nothing. A context variable holds the limit, so solves in different threads have separate limits.
"""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager
from contextvars import ContextVar

#: The clock of all limits, in seconds. Tests replace this clock by one that counts its calls.
clock = time.perf_counter

_END: ContextVar[float] = ContextVar("end of the running solve", default=math.inf)


class OutOfTimeError(Exception):
    """The time limit passed inside a computation that has no result yet."""


class OutOfPassesError(OutOfTimeError):
    """The limit of the passes over data in blocks was reached inside a computation that has no result yet."""


class _Limit:
    """A ``with`` block in which another limit is in force."""

    def __init__(self, end: float) -> None:
        self._end = end

    def __enter__(self) -> None:
        self._token = _END.set(self._end)

    def __exit__(self, *error: object) -> None:
        _END.reset(self._token)


def within(seconds: float) -> AbstractContextManager[None]:
    """Limit the ``with`` block to so many seconds; an earlier outer limit stays in force.

    Examples
    --------
    >>> with within(60.0):
    ...     0.0 < remaining() <= 60.0, passed()
    (True, False)
    >>> remaining()
    inf
    """
    return _Limit(min(_END.get(), clock() + seconds) if seconds < math.inf else _END.get())


def at_least(seconds: float) -> AbstractContextManager[None]:
    """Allow the ``with`` block so many seconds from now, even if the limit has passed: for a final certificate."""
    end = _END.get()
    return _Limit(end if end == math.inf else max(end, clock() + seconds))


def remaining() -> float:
    """Return the seconds left, at least 0; infinite without a limit."""
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
    """Return the Clarabel option for the remaining time, empty without a limit; raise if the limit has passed."""
    check()
    seconds = remaining()
    return {"time_limit": seconds} if seconds < math.inf else {}
