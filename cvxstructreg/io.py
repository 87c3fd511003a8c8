"""Files of data in blocks of rows: ``csr.io.write_blocks`` writes them, ``csr.Linear(path)`` reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cvxstructreg.row_blocks.arrow import open_tables
from cvxstructreg.row_blocks.design import RowBlocks
from cvxstructreg.row_blocks.directory import write_blocks

__all__ = ["read_tables", "write_blocks"]


def read_tables(
    path: Any,
    columns: Sequence[str] | None = None,
    y: str | None = None,
    sample_weight: str | None = None,
    make: Callable[[Any], Any] | None = None,
    format: str = "parquet",
    engine: Any = None,
    memory_limit: Any = None,
) -> RowBlocks:
    """Blocks of rows from Parquet or Arrow files; each row group of a Parquet file is a block. Needs pyarrow.

    Parameters
    ----------
    path : path, or list of paths
        A file, a folder of files, or several files.
    columns : names, optional
        The columns to read; by default all but ``y`` and ``sample_weight``.
    y, sample_weight : name, optional
        The columns with the labels and the sample weights.
    make : function of a pyarrow.Table, optional
        Returns the matrix of a block, dense or sparse, with one row for each row of the table; for example
        ``lambda table: vectorizer.transform(table["text"].to_pylist())``. By default the columns are numbers.
    format : str
        "parquet", "feather", "ipc" or "csv", as in ``pyarrow.dataset``.
    engine, memory_limit
        As for :class:`cvxstructreg.RowBlocks`.

    Examples
    --------
    >>> import tempfile, pathlib, pyarrow, pyarrow.parquet
    >>> import cvxstructreg as csr
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "rows.parquet")
    >>> table = pyarrow.table({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0], "label": [0, 1, 1]})
    >>> pyarrow.parquet.write_table(table, file, row_group_size=2)
    >>> blocks = csr.io.read_tables(file, y="label")
    >>> blocks.shape, blocks.n_blocks, blocks.y.tolist()
    ((3, 2), 2, [0, 1, 1])
    >>> folder.cleanup()
    """
    found = open_tables(path, columns, y, sample_weight, make, format)
    return RowBlocks(found, engine=engine, memory_limit=memory_limit)
