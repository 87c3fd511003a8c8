"""The kinds of sources that blocks of rows come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks.block import Block, MadeBlock, MemoryBlock


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
    return isinstance(first, Block) or callable(first) or _is_future(first) or getattr(first, "ndim", 0) == 2


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
            "a source of blocks is a folder made by write_blocks, a non-empty list of matrices or functions, a "
            f"function that returns an iterator, or a dask.array; got {type(source).__name__}"
        )
    if _is_future(source[0]):
        from cvxstructreg.row_blocks.dask_engine import of_futures

        return of_futures(source)
    return Opened([_as_block(item, number) for number, item in enumerate(source)], sparse=_any_sparse(source))


def _as_block(item: Any, number: int) -> Block:
    if isinstance(item, Block):
        return item
    name = f"block {number}"
    if callable(item):
        return MadeBlock(name, make=item)
    if getattr(item, "ndim", 0) != 2:
        raise TypeError(f"{name} must be a matrix, got {type(item).__name__}")
    return MemoryBlock(name, int(item.shape[0]), int(item.shape[1]), item)


def _any_sparse(items: Sequence[Any]) -> bool:
    return any(sp.issparse(item) for item in items)


def _is_future(item: Any) -> bool:
    return type(item).__module__.split(".")[0] == "distributed" and type(item).__name__ == "Future"


def joined(parts: Sequence[Array | None]) -> Array | None:
    """Arrays of all blocks together; None if some block has none."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known and len(known) == len(parts) else None
