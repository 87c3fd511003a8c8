"""The seconds spent on compilation, so that the time of a solve can be told without them."""

from __future__ import annotations

import threading
import time

_STATE = threading.local()


def seconds() -> float:
    """Return the seconds that this thread has spent on importing numba and compiling loops, or loading them from disk.

    Examples
    --------
    >>> seconds() >= 0.0
    True
    """
    return float(getattr(_STATE, "seconds", 0.0))


def begin() -> None:
    """Start the clock, unless it runs: the compilation of a function includes that of the functions it calls."""
    _STATE.depth = getattr(_STATE, "depth", 0) + 1
    if _STATE.depth == 1:
        _STATE.began = time.perf_counter()


def end() -> None:
    """Stop the clock when the outermost compilation ends."""
    _STATE.depth = getattr(_STATE, "depth", 1) - 1
    if _STATE.depth == 0:
        _STATE.seconds = seconds() + time.perf_counter() - _STATE.began
