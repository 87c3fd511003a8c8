"""Check that there is enough memory before a large array is allocated, and allocate it in small pages."""

from __future__ import annotations

import math
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np

#: Requests of fewer bytes are not checked.
SMALL = 1e8
#: From so many bytes on, NumPy asks for huge pages.
HUGE_FROM = 4 * 2**20


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


def in_small_pages(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array without content, of memory that is written once.

    NumPy asks for huge pages, which a virtual machine may be slow to provide: on one, a copy of 93 MB took 0.4 s of the
    system's time with them, and 0.05 s without.

    Examples
    --------
    >>> in_small_pages((2, 3), float).shape
    (2, 3)
    """
    size = np.dtype(dtype).itemsize * math.prod(shape)
    if size < HUGE_FROM or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.empty(shape, dtype)
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"cannot allocate {size / 1e9:.3g} GB: {error}") from error
    return np.ndarray(shape, dtype, buffer=pages)


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
