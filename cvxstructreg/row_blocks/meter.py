"""Counts passes over the blocks, limits them, and reports progress."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cvxstructreg.runtime import deadline

#: Seconds between two progress lines within a pass.
EVERY = 5.0


class Meter:
    """Passes, rows and seconds so far. Views of the same data share one meter."""

    def __init__(self) -> None:
        self.passes = 0
        self.rows, self.seconds = 0, 0.0
        self.limit = math.inf
        self.verbose = False

    @contextmanager
    def limited(self, passes: float) -> Iterator[None]:
        """Allow so many passes in total; another one raises ``OutOfPassesError``."""
        before, self.limit = self.limit, passes
        try:
            yield
        finally:
            self.limit = before

    def begin(self) -> None:
        """Count a pass, if one more is allowed."""
        if self.passes >= self.limit:
            raise deadline.OutOfPassesError(f"{self.passes} passes over the data were made, and no more are allowed")
        self.passes += 1

    def watched(self, sizes: Iterator[int], total: int) -> Iterator[None]:
        """Take the number of rows of each block as it is done; check the time limit and print progress."""
        began = printed = time.monotonic()
        done = 0
        for size in sizes:
            done += size
            now = time.monotonic()
            if self.verbose and now - printed >= EVERY:
                printed, rate = now, done / (now - began)
                left = (total - done) / rate if total > 0 else math.nan
                print(f"pass {self.passes}: {done:,} rows, {rate:.3g} rows/s, {left:.0f} s left", flush=True)
            yield
            deadline.check()
        self.rows += done
        self.seconds += time.monotonic() - began

    @property
    def rate(self) -> float:
        """Rows per second, over all complete passes."""
        return self.rows / self.seconds if self.seconds > 0.0 else math.nan

    @property
    def seconds_per_pass(self) -> float:
        """The mean time of a pass."""
        return self.seconds / self.passes if self.passes else 0.0
