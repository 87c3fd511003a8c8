"""Dask distributed: blocks stay on the workers, the weights go out, and sums come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cvxstructreg.row_blocks.block import Block, MemoryBlock
from cvxstructreg.row_blocks.engine import Engine
from cvxstructreg.row_blocks.sources import Opened
from cvxstructreg.runtime.optional import optional_import

#: How often a block is tried again after its worker was lost.
RETRIES = 3
#: Blocks in flight for each thread of the cluster.
IN_FLIGHT = 3


@dataclass(frozen=True, eq=False)
class DelayedBlock(Block):
    """A chunk of a Dask collection that has not been computed."""

    delayed: Any = None

    def read(self, verify: bool) -> Any:
        """Compute the chunk in this process."""
        return self.delayed.compute()


@dataclass(frozen=True, eq=False)
class RemoteBlock(Block):
    """A matrix in the memory of a Dask worker."""

    future: Any = None

    def read(self, verify: bool) -> Any:
        """Fetch the matrix; passes by the Dask engine do not."""
        return self.future.result()


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
        distributed = optional_import("distributed", "dask", "passes over blocks of rows by Dask")
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:  # there is no client
                client = distributed.Client()
        self.client = client

    def prepare(self, blocks: list[Block]) -> list[Block]:
        """Send matrices in memory to the workers, and let the workers compute and keep the chunks of collections."""
        ready: list[Block] = []
        for block in blocks:
            shape = block.name, block.n_rows, block.n_columns
            if isinstance(block, DelayedBlock):
                block = RemoteBlock(*shape, self.client.compute(block.delayed))
            elif isinstance(block, MemoryBlock):
                block = RemoteBlock(*shape, self.client.scatter(block.matrix, hash=False))
            ready.append(block)
        return ready

    def map(
        self, function: Callable[..., Any], shared: tuple[Any, ...], jobs: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Results in order, with a few blocks for each thread in flight."""
        most = IN_FLIGHT * max(1, sum(self.client.nthreads().values()))
        waiting: deque[Any] = deque()
        try:
            for block, own in jobs:
                matrix = block.future if isinstance(block, RemoteBlock) else None
                sent = MemoryBlock(block.name, block.n_rows, block.n_columns) if matrix is not None else block
                waiting.append(
                    self.client.submit(_on_worker, function, shared, sent, matrix, own, pure=False, retries=RETRIES)
                )
                if len(waiting) > most:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def __repr__(self) -> str:
        return f"Dask({len(self.client.nthreads())} workers)"


def _on_worker(function: Callable[..., Any], shared: tuple[Any, ...], block: Block, matrix: Any, own: Any) -> Any:
    """Process one block on a worker; ``matrix`` is its data if they are in the memory of the cluster."""
    if matrix is not None and isinstance(block, MemoryBlock):
        block = replace(block, matrix=matrix)
    return function(*shared, block, own)


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
    return Opened([RemoteBlock(f"future {i}", future=future) for i, future in enumerate(futures)], remote=True)
