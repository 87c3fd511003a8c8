"""Dask distributed: blocks stay on the workers, the weights go out, and sums come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cvxstructreg.row_blocks.block import Block, BlockError, LostBlockError, MemoryBlock
from cvxstructreg.row_blocks.engine import RETRIES, Engine
from cvxstructreg.row_blocks.sources import Opened
from cvxstructreg.runtime.optional import optional_import

#: Blocks in flight for each thread of the cluster.
IN_FLIGHT = 3
#: From so many bytes on, what all blocks need is sent to each worker once.
SEND_ONCE = 100_000
#: Seconds between two looks at a block in progress, and seconds without workers after which a pass ends.
POLL, NO_WORKERS = 5.0, 300.0


@dataclass(frozen=True, eq=False)
class DelayedBlock(Block):
    """A chunk of a Dask collection that has not been computed."""

    delayed: Any = None

    def read(self, verify: bool) -> Any:
        """Compute the chunk in this process."""
        return self.delayed.compute()


class Place:
    """Where a matrix is in the memory of the cluster; it moves if its worker is lost and the data can be sent again."""

    def __init__(self, future: Any) -> None:
        self.future = future


@dataclass(frozen=True, eq=False)
class RemoteBlock(Block):
    """A matrix in the memory of a Dask worker; ``origin`` is the matrix in this process, if it was sent from here."""

    place: Place = field(default_factory=lambda: Place(None))
    origin: Any = None

    def read(self, verify: bool) -> Any:
        """Fetch the matrix; passes by the Dask engine do not."""
        return self.place.future.result() if self.origin is None else self.origin


class Dask(Engine):
    """The workers of a Dask cluster. If a worker is lost, Dask runs its blocks elsewhere.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current client; if there is none, a cluster on this machine is started.
    """

    name = "dask"
    remote = True

    def __init__(self, client: Any = None) -> None:
        self._distributed = optional_import("distributed", "dask", "passes over blocks of rows by Dask")
        if client is None:
            try:
                client = self._distributed.get_client()
            except ValueError:  # there is no client
                client = self._distributed.Client()
        self.client = client

    def prepare(self, blocks: list[Block]) -> list[Block]:
        """Send matrices in memory to the workers, and let the workers compute and keep the chunks of collections."""
        ready: list[Block] = []
        for block in blocks:
            shape = block.name, block.n_rows, block.n_columns
            if isinstance(block, DelayedBlock):
                block = RemoteBlock(*shape, Place(self.client.compute(block.delayed)))
            elif isinstance(block, MemoryBlock):
                block = RemoteBlock(*shape, Place(self.client.scatter(block.matrix, hash=False)), block.matrix)
            ready.append(block)
        return ready

    def map(
        self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Results in order, with a few blocks for each thread in flight."""
        return self._map(jobs, shared, lambda sent, block, own, _: self._submit(function, sent, block, own))

    def map_kept(
        self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Iterable[tuple[Any, ...]], kept: list[Any]
    ) -> Iterator[Any]:
        """The same, with states that stay on the workers; ``kept`` gets their futures."""
        states: dict[int, Any] = {}

        def submit(sent: Any, block: Block, own: Any, number: int) -> Any:
            whole = self._submit(function, sent, block, own)
            states[number] = self.client.submit(_state, whole, pure=False)
            return self.client.submit(_summary, whole, pure=False)

        for number, seen in enumerate(self._map(jobs, shared, submit)):
            kept.append(states.pop(number))
            yield seen

    def keep(self, states: list[Any]) -> list[Any]:
        """Futures of states; Dask can make them again if a worker is lost."""
        return [self.client.submit(_itself, state, pure=False) for state in states]

    def _map(self, jobs: Iterable[tuple[Any, ...]], shared: tuple[Any, ...], submit: Callable[..., Any]) -> Any:
        most = IN_FLIGHT * max(1, sum(self.client.nthreads().values()))
        sent = self._sent(shared)
        waiting: deque[tuple[Any, Block, Any, int]] = deque()

        def first() -> Any:
            future, block, own, number = waiting.popleft()
            return self._result(future, block, lambda: submit(shared, block, own, number))

        try:
            for number, (block, own) in enumerate(jobs):
                waiting.append((_attempt(partial(submit, sent, block, own, number)), block, own, number))
                if len(waiting) > most:
                    yield first()
            while waiting:
                yield first()
        finally:
            for future, *_ in waiting:
                if future is not None:
                    future.cancel()

    def _sent(self, shared: tuple[Any, ...]) -> Any:
        """What all blocks of a pass need: large arrays are sent once to each worker, and not with each block."""
        size = sum(getattr(array, "nbytes", 0) for array in _leaves(shared))
        if size < SEND_ONCE or not self.client.nthreads():
            return shared
        return self.client.scatter([shared], broadcast=True, hash=False)[0]

    def _submit(self, function: Callable[..., Any], shared: Any, block: Block, own: Any) -> Any:
        matrix = None
        if isinstance(block, RemoteBlock):
            matrix, block = block.place.future, MemoryBlock(block.name, block.n_rows, block.n_columns)
        return self.client.submit(_on_worker, function, shared, block, matrix, own, pure=False, retries=RETRIES)

    def _result(self, future: Any, block: Block, submit: Callable[[], Any]) -> Any:
        """The result of a block. If something that it needs was lost with a worker, it is sent again."""
        for attempt in range(1 + RETRIES):
            try:
                if future is None:
                    raise CancelledError
                self._wait(future, block)
                return future.result()
            except self._distributed.scheduler.KilledWorker as error:
                raise BlockError(f"{block.name} was not processed: {error}") from error
            except CancelledError as error:
                if attempt == RETRIES:
                    raise LostBlockError(f"{block.name} was lost with its worker {attempt + 1} times") from error
                if isinstance(block, RemoteBlock) and block.place.future.status != "finished":
                    if block.origin is None:
                        raise BlockError(
                            f"{block.name} was lost with its worker, and Dask cannot make it again"
                        ) from error
                    block.place.future = self.client.scatter(block.origin, hash=False)
                future = _attempt(submit)

    def _wait(self, future: Any, block: Block) -> None:
        """Wait for a result, but not for long if the cluster has no workers."""
        left = NO_WORKERS
        while not future.done():
            try:
                with suppress(CancelledError):
                    self._distributed.wait(future, timeout=POLL)
            except self._distributed.TimeoutError:
                left = NO_WORKERS if self.client.nthreads() else left - POLL
                if left <= 0.0:
                    raise BlockError(
                        f"{block.name} was not processed: the cluster has had no workers for {NO_WORKERS:g} seconds"
                    ) from None

    def __repr__(self) -> str:
        return f"Dask({len(self.client.nthreads())} workers)"


def _on_worker(function: Callable[..., Any], shared: tuple[Any, ...], block: Block, matrix: Any, own: Any) -> Any:
    """Process one block on a worker; ``matrix`` is its data if they are in the memory of the cluster."""
    if matrix is not None:
        assert isinstance(block, MemoryBlock)
        block = replace(block, matrix=matrix)
    return function(*shared, block, own)


def _attempt(submit: Callable[[], Any]) -> Any:
    """The future of a task; None if something that it needs was lost."""
    try:
        return submit()
    except CancelledError:
        return None


def _summary(seen: Any) -> Any:
    """A result without the state that stays on the worker."""
    short = copy(seen)
    short.result = seen.result[0]
    return short


def _state(seen: Any) -> Any:
    return seen.result[1]


def _itself(state: Any) -> Any:
    return state


def _leaves(item: Any) -> Iterator[Any]:
    """The items of nested tuples."""
    if isinstance(item, tuple):
        for part in item:
            yield from _leaves(part)
    else:
        yield item


def of_dask_array(array: Any) -> Opened:
    """The row chunks of a ``dask.array``."""
    if array.ndim != 2:
        raise ValueError(f"a dask.array of rows must have two dimensions, got {array.ndim}")
    if array.numblocks[1] != 1:
        raise ValueError(
            f"the dask.array is split into {array.numblocks[1]} parts along the columns; "
            "call array.rechunk({1: -1}) so that each chunk has all columns"
        )
    sizes = [-1 if size != size else int(size) for size in array.chunks[0]]
    width = array.shape[1]
    n_columns = -1 if width != width else int(width)
    chunks = array.to_delayed().ravel()
    blocks = [
        DelayedBlock(f"chunk {number} of the dask.array", size, n_columns, chunk)
        for number, (size, chunk) in enumerate(zip(sizes, chunks, strict=True))
    ]
    return Opened(blocks, sparse="sparse" in type(array._meta).__module__, remote=True)


def of_futures(futures: Sequence[Any]) -> Opened:
    """Futures of matrices on a Dask cluster; their shapes are found in a first pass."""
    return Opened([RemoteBlock(f"future {i}", place=Place(future)) for i, future in enumerate(futures)], remote=True)
