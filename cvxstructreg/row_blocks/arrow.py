"""Blocks of rows from Parquet and Arrow files, through pyarrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks.block import Block, BlockError
from cvxstructreg.row_blocks.sources import Opened, joined
from cvxstructreg.runtime.optional import optional_import


@dataclass(frozen=True, eq=False)
class ArrowBlock(Block):
    """A row group of a Parquet file, or a whole Arrow file."""

    fragment: Any = None
    columns: tuple[str, ...] | None = None
    make: Callable[[Any], Any] | None = None

    def read(self, verify: bool) -> Any:
        """The columns as a dense matrix, or what ``make`` returns for the table."""
        table = self.fragment.to_table(columns=None if self.columns is None else list(self.columns))
        if self.make is not None:
            return self.make(table)
        found = [np.asarray(table.column(name).to_numpy(), dtype=float) for name in self.columns or ()]
        return np.column_stack(found)

    def stamp(self) -> tuple[int, ...]:
        """Size and time of the file."""
        fact = os.stat(self.fragment.path)
        return fact.st_size, fact.st_mtime_ns


def open_tables(
    path: Any,
    columns: Sequence[str] | None = None,
    y: str | None = None,
    sample_weight: str | None = None,
    make: Callable[[Any], Any] | None = None,
    format: str = "parquet",
) -> Opened:
    """The row groups of Parquet files, or Arrow files, as blocks; see :func:`cvxstructreg.io.read_tables`."""
    arrow = optional_import("pyarrow.dataset", "arrow", "reading Parquet and Arrow files")
    try:
        return _opened(arrow.dataset(path, format=format), columns, y, sample_weight, make)
    except optional_import("pyarrow", "arrow", "reading Parquet and Arrow files").ArrowInvalid as error:
        raise BlockError(f"a file cannot be read: {error}") from error


def _opened(
    dataset: Any,
    columns: Sequence[str] | None,
    y: str | None,
    sample_weight: str | None,
    make: Callable[[Any], Any] | None,
) -> Opened:
    names = list(dataset.schema.names)
    for name in (*(columns or ()), *(n for n in (y, sample_weight) if n is not None)):
        if name not in names:
            raise ValueError(f"there is no column {name!r}; the columns are {', '.join(names[:10])}")
    extra = {name for name in (y, sample_weight) if name is not None}
    chosen = tuple(columns) if columns is not None else tuple(name for name in names if name not in extra)
    pieces = [piece for whole in dataset.get_fragments() for piece in _pieces(whole)]
    blocks = [
        ArrowBlock(name, _count(piece), len(chosen) if make is None else -1, piece, chosen, make)
        for name, piece in pieces
    ]
    labels, weights = (
        None if name is None else joined([_column(piece, name) for _, piece in pieces]) for name in (y, sample_weight)
    )
    return Opened(blocks, y=labels, sample_weight=weights)


def _pieces(fragment: Any) -> list[tuple[str, Any]]:
    """The parts of a file that are read at once, with their names."""
    if not hasattr(fragment, "split_by_row_group"):
        return [(fragment.path, fragment)]
    return [(f"row group {i} of {fragment.path}", part) for i, part in enumerate(fragment.split_by_row_group())]


def _count(piece: Any) -> int:
    """The number of rows; ``count_rows`` of a row group counts those of the whole file."""
    if hasattr(piece, "row_groups"):
        return sum(int(group.num_rows) for group in piece.row_groups)
    return int(piece.count_rows())


def _column(piece: Any, name: str) -> Array:
    return np.asarray(piece.to_table(columns=[name]).column(name).to_numpy(zero_copy_only=False))
