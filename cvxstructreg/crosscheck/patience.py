"""A limit on CPU time for code that does not stop by itself."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TooSlow(BaseException):
    """The code used up its CPU time. This is not an Exception, so that no ``except Exception`` catches it."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Raise TooSlow inside the block after this many seconds of CPU time, on systems with interval timers.

    Examples
    --------
    >>> with patience(10.0):
    ...     print("quick")
    quick
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_: int, frame: Any) -> None:
        if _compiles(frame):  # compilation must not be interrupted, and its time does not count
            signal.setitimer(signal.ITIMER_PROF, 1.0)
        else:
            raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def _compiles(frame: Any) -> bool:
    """Return whether loops are being compiled."""
    while frame is not None:
        if any(f"/{package}/" in frame.f_code.co_filename for package in ("numba", "llvmlite")):
            return True
        frame = frame.f_back
    return False
