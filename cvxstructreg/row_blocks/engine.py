"""Engines: how the blocks of a pass are processed. A pass is a map over blocks plus a sum in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from typing import Any

from cvxstructreg.row_blocks.block import BlockError

#: How often blocks are processed again after their workers were lost.
RETRIES = 3
#: From so many rows on, scores stay on the workers of a cluster by default.
KEEP_FROM = 10_000_000
#: Threads at most, unless the user asks for more: beyond this, reading the files is the limit.
MOST_THREADS = 8


class Engine:
    """Processes one block after the other in this process."""

    name = "serial"
    #: Whether the blocks are in the memory of other processes, so that collecting them here should be avoided.
    remote = False

    def map(self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Iterable[tuple[Any, ...]]) -> Any:
        """Yield ``function(*shared, *job)`` for all jobs, in their order."""
        return (function(*shared, *job) for job in jobs)

    def map_kept(self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Any, kept: list[Any]) -> Any:
        """The same for results (summary, state): yield the summaries, and keep the states where the blocks are.

        ``kept`` gets a handle of each state, which later jobs may contain in place of the state.
        """
        for seen in self.map(function, shared, jobs):
            seen.result, state = seen.result
            kept.append(state)
            yield seen

    def keep(self, states: list[Any]) -> list[Any]:
        """Handles of states that are sent to where the blocks are processed."""
        return states

    def prepare(self, blocks: list[Any]) -> list[Any]:
        """Bring the blocks to where they are processed; called once."""
        return blocks

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Threads(Engine):
    """Several threads of this process. Reading files, and products of sparse and dense matrices, run in parallel."""

    name = "threads"

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or min(MOST_THREADS, os.cpu_count() or 1)

    def map(
        self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Keep a few blocks in flight, so that results which wait for their turn take little memory."""
        with ThreadPoolExecutor(self.workers) as pool:
            waiting: deque[Any] = deque()
            try:
                for job in jobs:
                    waiting.append(pool.submit(function, *shared, *job))
                    if len(waiting) > self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def __repr__(self) -> str:
        return f"Threads({self.workers})"


class Joblib(Engine):
    """The workers of joblib: processes, or whatever ``joblib.parallel_config`` selects."""

    name = "joblib"

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or -1

    def map(
        self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Results as joblib returns them, in order; the blocks of killed workers are processed again."""
        from joblib import Parallel, delayed

        source, lost = iter(jobs), 0
        again: deque[Any] = deque()  # jobs that were lost
        waiting: deque[Any] = deque()  # jobs in progress

        def calls() -> Iterator[Any]:
            while (job := again.popleft() if again else next(source, None)) is not None:
                waiting.append(job)
                yield delayed(function)(*shared, *job)

        while True:
            try:
                for result in Parallel(n_jobs=self.workers, return_as="generator")(calls()):
                    waiting.popleft()
                    lost = 0
                    yield result
                return
            except BrokenExecutor as error:
                lost += 1
                if lost > RETRIES:
                    names = ", ".join(job[0].name for job in waiting)
                    raise BlockError(f"workers were killed {lost} times while they processed {names}") from error
                again.extendleft(reversed(waiting))
                waiting.clear()

    def __repr__(self) -> str:
        return f"Joblib({self.workers})"


def as_engine(engine: Any, remote: bool = False) -> Engine:
    """The engine for a name, a Dask client or an engine; by default threads, or Dask for data on a Dask cluster."""
    if isinstance(engine, Engine):
        return engine
    if engine is None:
        engine = "dask" if remote else "threads" if (os.cpu_count() or 1) > 1 else "serial"
    if engine == "serial":
        return Engine()
    if engine == "threads":
        return Threads()
    if engine == "joblib":
        return Joblib()
    if engine == "dask" or type(engine).__module__.split(".")[0] == "distributed":
        from cvxstructreg.row_blocks.dask_engine import Dask

        return Dask(None if engine == "dask" else engine)
    raise ValueError(f"engine must be 'serial', 'threads', 'joblib', 'dask' or a Dask client, got {engine!r}")


def keeps_scores(scores: str | None, engine: Engine, n_rows: int) -> bool:
    """Whether scores stay where the blocks are processed."""
    if scores not in (None, "here", "workers"):
        raise ValueError(f"scores must be 'here' or 'workers', got {scores!r}")
    return scores == "workers" or (scores is None and engine.remote and n_rows >= KEEP_FROM)
