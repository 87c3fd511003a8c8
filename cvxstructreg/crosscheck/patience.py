"""A limit on CPU time for code that does not stop by itself."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cvxstructreg.runtime import compiling

#: Most runs that may compile loops before one is timed.
MOST_COMPILING = 5


class TooSlow(BaseException):
    """The code used up its CPU time. This is not an Exception, so that no ``except Exception`` catches it."""


@contextmanager
def patience(seconds: float, error: type[BaseException] = TooSlow) -> Iterator[None]:
    """Raise an error inside the block after this many seconds of CPU time, on systems with interval timers.

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
            raise error

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


def is_slow(action: Callable[[], Any], most: float) -> bool:
    """Return whether an action takes more than ``most`` seconds of CPU time; runs that compile loops do not count."""
    seconds = 0.0
    for _ in range(MOST_COMPILING):
        began, compiled = time.process_time(), compiling.seconds()
        with warnings.catch_warnings(), suppress(TooSlow), patience(1.5 * most):
            warnings.simplefilter("ignore")
            action()
        seconds = time.process_time() - began
        if compiling.seconds() == compiled:
            break
    return seconds > most
