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


def parse_bytes(size: int | float | str) -> float:
    """A number of bytes, or a string such as "2 GB".

    Examples
    --------
    >>> parse_bytes("1.5 GB"), parse_bytes(2048)
    (1500000000.0, 2048.0)
    """
    units = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 2.0**10, "MIB": 2.0**20}
    units |= {"GIB": 2.0**30, "TIB": 2.0**40}
    text = str(size).strip().upper()
    number = text.rstrip("BIKMGT ")
    try:
        value = float(number) * units[text[len(number) :].strip()]
    except (ValueError, KeyError):
        value = -1.0
    if not value > 0.0:
        raise ValueError(f"a memory limit is a positive number of bytes or a string such as '2 GB', got {size!r}")
    return value
