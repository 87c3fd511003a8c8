"""The one place where numba is imported; it counts the seconds of that import and of every compilation.

Import this module only in the files of compiled loops (``compiled_*.py``), because numba is slow to load.
"""

from __future__ import annotations

from typing import Any

from cvxstructreg.runtime import compiling

compiling.begin()
import numba  # noqa: E402
from numba import njit  # noqa: E402
from numba.core import event  # noqa: E402
from numba.extending import overload  # noqa: E402

compiling.end()

__all__ = ["njit", "numba", "overload"]


class _Clock(event.Listener):
    """Runs while a thread holds the lock of the compiler, also while it loads a compiled loop from disk."""

    def on_start(self, event: Any) -> None:
        """Compilation begins."""
        compiling.begin()

    def on_end(self, event: Any) -> None:
        """Compilation ends."""
        compiling.end()


event.register("numba:compiler_lock", _Clock())
