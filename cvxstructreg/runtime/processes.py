"""Whether processes are worth their start: measured work, processors that are idle, and a pool that already runs.

A new process imports the library and loads its compiled loops before its first task. That takes ``START`` seconds of a
processor (measured: 3.1 to 3.6, of which the imports take 2.2). joblib keeps its processes for some minutes, so that
the next call needs no start.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple, Self

from cvxstructreg.runtime import compiling

#: Seconds of a processor until a new process, or one that already runs, begins its first task.
START, RUNNING = 3.5, 0.2
#: Processes must shorten the work to this part: tasks differ, and the estimate is that of the first.
PART = 0.75
#: joblib ends its processes after 300 idle seconds; a pool is expected to run for so many.
KEPT = 200.0

_pool: dict[int, float] = {}  # the jobs of the last pool, and when it was last used


class Moment(NamedTuple):
    """Clocks of a moment: wall, this process, compilation, and the idle seconds of all processors since the start."""

    clock: float
    used: float
    compiled: float
    idle: float

    @classmethod
    def now(cls) -> Self:
        """Read the clocks."""
        return cls(time.perf_counter(), time.process_time(), compiling.seconds(), idle_seconds())


class Work(NamedTuple):
    """A task that was done here: its seconds, and those that a process with one thread needs.

    ``own`` and ``idle`` are the numbers of processors that this process used, and that nothing used meanwhile.
    """

    here: float
    there: float
    own: float = 1.0
    idle: float = float("inf")

    @classmethod
    def since(cls, start: Moment) -> Self:
        """Measure the work since a moment, without compilation and without waiting for a processor."""
        end = Moment.now()
        clock, used = max(end.clock - start.clock, 1e-9), end.used - start.used
        compiled = end.compiled - start.compiled
        idle = (end.idle - start.idle) / clock if end.idle < float("inf") else float("inf")
        return cls(max(min(clock, used) - compiled, 0.0), max(used - compiled, 0.0), used / clock, idle)

    def speed(self, jobs: int) -> float:
        """How many times as many processor seconds so many processes get as one: idle processors, or a fair share.

        A process that gets the part s of one of p busy processors competes with p / s - 1 others. Then each of J
        processes gets p / (p / s + J - 1).

        Examples
        --------
        >>> Work(1.0, 1.0, own=1.0, idle=3.0).speed(2)
        2.0
        """
        shared = jobs / (1.0 + min(self.own, 1.0) * (jobs - 1) / (os.cpu_count() or 1))
        return max(1.0, min(float(jobs), max(self.own, 1.0) + self.idle), shared)


def idle_seconds() -> float:
    """Return the seconds that the processors of this machine have been idle, added up; infinity where not told.

    Examples
    --------
    >>> idle_seconds() >= 0.0
    True
    """
    try:
        counts = Path("/proc/stat").read_text().split(maxsplit=6)
        return (float(counts[4]) + float(counts[5])) / float(os.sysconf("SC_CLK_TCK"))
    except (AttributeError, IndexError, ValueError, OSError):
        return float("inf")


def worth_processes(work: Work, n_tasks: int, jobs: int, start: float = START) -> bool:
    """Whether ``jobs`` processes do ``n_tasks`` such tasks in clearly less time than this process.

    Examples
    --------
    >>> worth_processes(Work(0.5, 0.5), 14, jobs=2), worth_processes(Work(2.0, 2.0), 14, jobs=2)
    (False, True)
    >>> worth_processes(Work(0.5, 0.5), 14, jobs=2, start=0.2)  # the processes run already
    True
    """
    speed = work.speed(jobs)
    rounds = max(-(-n_tasks // jobs), n_tasks / speed)
    return start * jobs / speed + work.there * rounds < PART * work.here * n_tasks


def start_of(jobs: int) -> float:
    """The seconds until a process begins: few if a pool of so many jobs was used a short time ago."""
    used = _pool.get(jobs)
    return RUNNING if used is not None and time.monotonic() - used < KEPT else START


def remember(jobs: int) -> None:
    """Keep in mind that a pool of so many processes runs; joblib keeps one pool only."""
    _pool.clear()
    _pool[jobs] = time.monotonic()
