"""The passes over data in blocks of rows that one solve makes: their number, their limit, and progress in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral
from typing import Any

from cvxstructreg.core.problem import Problem
from cvxstructreg.solvers.iterate import Iterate

#: Passes that are left for the certificate of the last point: norms and means of the columns, scores, and X'u.
RESERVE = 4


class Passes:
    """Counts the passes of one solve; without data in blocks, all methods do nothing."""

    def __init__(self, problem: Problem, most: int | None, verbose: bool) -> None:
        blocks = problem.given.row_blocks
        if most is not None:
            if blocks is None:
                raise ValueError("max_passes is for data in blocks of rows (RowBlocks); use max_iter or time_limit")
            if not (isinstance(most, Integral) and most > RESERVE):
                raise ValueError(f"max_passes must be an integer above {RESERVE}, got {most!r}")
        self._meter: Any = None if blocks is None else blocks.meter
        self._most = math.inf if most is None else int(most)
        self._before = 0 if blocks is None else blocks.meter.passes
        self._gaps: list[tuple[int, float]] = []
        if blocks is not None:
            blocks.meter.verbose = bool(verbose)

    @property
    def count(self) -> int:
        """Passes so far."""
        return 0 if self._meter is None else int(self._meter.passes - self._before)

    def limited(self, steps: Iterator[Iterate]) -> Iterator[Iterate]:
        """The iterates, within the limit; certificates are not limited, but use the passes in reserve."""
        if self._meter is None or self._most == math.inf:
            return steps
        return self._limited(steps)

    def _limited(self, steps: Iterator[Iterate]) -> Iterator[Iterate]:
        limit = min(self._meter.limit, self._before + self._most - RESERVE)
        while True:
            with self._meter.limited(limit):
                iterate = next(steps, None)
            if iterate is None:
                return
            yield iterate

    def progress(self, gap: float, tol: float) -> str:
        """Passes, rows per second, and the time left if the gap continues to fall as in the last passes."""
        if self._meter is None:
            return ""
        self._gaps.append((self.count, gap))
        text = f"  {self.count} passes, {self._meter.rate:.3g} rows/s"
        (first, before), (last, now) = self._gaps[max(0, len(self._gaps) - 3)], self._gaps[-1]
        if not (last > first and 0.0 < now < before < math.inf) or now <= tol:
            return text
        left = math.log(now / tol) / math.log(before / now) * (last - first)
        return f"{text}, about {left * self._meter.seconds_per_pass:.0f} s left"
