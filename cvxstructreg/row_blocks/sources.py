"""The kinds of sources that blocks of rows come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks.block import Block, BlockError, MadeBlock, MemoryBlock, check_lengths, parts_of


@dataclass(eq=False)
class Opened:
    """The blocks of a source, with all that is known before the first pass."""

    blocks: Sequence[Block] = ()
    factory: Callable[[], Iterator[Any]] | None = None
    y: Any = None
    sample_weight: Any = None
    sparse: bool = False
    statistics: Any = None
    remote: bool = field(default=False)  # whether the data are on a Dask cluster


def is_source(X: Any) -> bool:
    """Whether X is a source of blocks of rows rather than a matrix."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return False
    if isinstance(X, str | os.PathLike | Block | Opened) or callable(X) or hasattr(X, "to_delayed"):
        return True
    if not isinstance(X, list | tuple) or not X:
        return False
    first = X[0]
    if isinstance(first, Block) or callable(first) or _is_future(first) or _is_delayed(first):
        return True
    return getattr(first[0] if isinstance(first, tuple) and first else first, "ndim", 0) == 2


def opened(source: Any) -> Opened:
    """The blocks of a source; see :class:`~cvxstructreg.row_blocks.design.RowBlocks` for the kinds."""
    if isinstance(source, str | os.PathLike):
        from cvxstructreg.row_blocks.directory import open_directory

        return open_directory(Path(source))
    if hasattr(source, "to_delayed"):
        from cvxstructreg.row_blocks.dask_engine import of_dask_array

        return of_dask_array(source)
    if callable(source):
        return Opened(factory=lambda: iter(source()))
    if isinstance(source, np.ndarray) or sp.issparse(source):
        source = [source]
    if not isinstance(source, list | tuple) or not source:
        raise TypeError(
            "a source of blocks is a folder made by write_blocks, a non-empty list of matrices, functions or futures, "
            f"a function that returns an iterator, or a dask.array; got {type(source).__name__}"
        )
    if _is_dask(source[0]):
        from cvxstructreg.row_blocks.dask_engine import of_futures

        return of_futures(source)
    blocks, labels, weights = zip(*(_as_block(item, number) for number, item in enumerate(source)), strict=True)
    sparse = any(isinstance(block, MemoryBlock) and sp.issparse(block.matrix) for block in blocks)
    return Opened(blocks, y=joined(labels), sample_weight=joined(weights), sparse=sparse)


def _as_block(item: Any, number: int) -> tuple[Block, Any, Any]:
    """A block, with its labels and weights if they are known without reading it."""
    if isinstance(item, Block):
        return item, None, None
    name = f"block {number}"
    if callable(item):
        return MadeBlock(name, make=item), None, None
    if _is_delayed(item):
        function, given, named = item
        return MadeBlock(name, make=partial(function, *given, **named)), None, None
    if _is_future(item):
        try:
            item = item.result()
        except Exception as error:
            raise BlockError(f"{name} cannot be read: its future failed with {error!r}") from error
    X, y, weights = parts_of(item)
    if getattr(X, "ndim", 0) != 2:
        raise TypeError(f"{name} must be a matrix, got {type(X).__name__}")
    check_lengths(name, int(X.shape[0]), y, weights)
    return MemoryBlock(name, int(X.shape[0]), int(X.shape[1]), X), y, weights


def _is_dask(item: Any) -> bool:
    """Whether an item is a future of a Dask cluster."""
    return type(item).__module__.split(".")[0] == "distributed" and type(item).__name__ == "Future"


def _is_future(item: Any) -> bool:
    """Whether an item is a future: of Dask, of joblib's process pool, or of ``concurrent.futures``."""
    return _is_dask(item) or (callable(getattr(item, "result", None)) and callable(getattr(item, "done", None)))


def _is_delayed(item: Any) -> bool:
    """Whether an item is a call that ``joblib.delayed`` recorded: a function with its arguments."""
    return isinstance(item, tuple) and len(item) == 3 and callable(item[0]) and isinstance(item[2], dict)


def joined(parts: Sequence[Array | None]) -> Array | None:
    """Arrays of all blocks together; None if some block has none."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known and len(known) == len(parts) else None
