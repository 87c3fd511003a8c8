"""Check that there is enough memory before a large array is allocated."""

from __future__ import annotations

import os
from pathlib import Path

#: Requests of fewer bytes are not checked.
SMALL = 1e8


def available_memory() -> float:
    """Return the bytes that can be allocated without swapping; infinity if the system does not report them."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def require_memory(needed: float, what: str, remedy: str) -> None:
    """Raise MemoryError, with the sizes and a remedy, if fewer than ``needed`` bytes are available.

    Examples
    --------
    >>> require_memory(8e18, "a matrix of 10^9 rows and columns", "use fewer rows")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    MemoryError: a matrix of 10^9 rows and columns needs 8,000,000,000.0 GB, but only ... available; use fewer rows
    """
    if needed <= SMALL:
        return
    there = available_memory()
    if needed > there:
        raise MemoryError(
            f"{what} needs {needed / 1e9:,.1f} GB, but only {there / 1e9:,.1f} GB are available; {remedy}"
        )
