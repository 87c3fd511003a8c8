"""Blocks of rows in a folder of NumPy files: written atomically, with checksums, and resumable.

    blocks.jsonl          one line for each finished block: its number, shape, files, and checksum with its kind
    00000.data.npy ...    the arrays of a block: data, indices, indptr (CSR) or dense; and y, weight
    columns.npz           sums, sums of squares and numbers of entries of all columns
    complete.json         written last: the number of blocks and rows, and checksums of the above

A file is written under another name and then renamed, so that a file with its final name is complete. No file is a
pickle.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.numerics.arrays import Array
from cvxstructreg.row_blocks import kernels
from cvxstructreg.row_blocks.block import (
    Block,
    BlockError,
    Check,
    arrays_of,
    as_block,
    changed,
    checksum_of,
    parts_of,
)
from cvxstructreg.row_blocks.sources import Opened, joined

JOURNAL, COLUMNS, COMPLETE = "blocks.jsonl", "columns.npz", "complete.json"
#: Bytes of a block when a matrix is split: large enough for fast reading, small against the memory.
BLOCK_BYTES = 32e6
#: A disk with fewer free bytes is full.
FULL_DISK = 1e5


@dataclass(frozen=True, eq=False)
class FileBlock(Block):
    """A block of rows in NumPy files, memory-mapped when it is read."""

    folder: Path = Path()
    files: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    checksum: int = 0
    kind: str = "words"  # of the checksum
    headers: dict[str, Any] = field(default_factory=dict)  # found when a file is first read

    @property
    def stored_checksum(self) -> int | None:
        """The checksum in the journal."""
        return self.checksum

    @property
    def nbytes(self) -> float:
        """The sizes of the files."""
        return float(sum(self.sizes.values()))

    def stamp(self) -> tuple[int, ...]:
        """Sizes and times of the files."""
        facts = [os.stat(self.folder / name) for name in self.files.values()]
        return tuple(number for fact in facts for number in (fact.st_size, fact.st_mtime_ns))

    def read(self, verify: bool) -> Any:
        """Map the files; with ``verify``, compare their checksum with the journal."""
        arrays = {key: self._mapped(key) for key in self.files}
        if verify and checksum_of(arrays, self.kind) != self.checksum:
            raise changed(self.name)
        if "dense" in arrays:
            return arrays["dense"]
        X = self._matrix(arrays)
        if verify and self.kind != "words":
            X.check_format(full_check=True)
        return X

    def _matrix(self, arrays: dict[str, Array]) -> Any:
        X = sp.csr_array((self.n_rows, self.n_columns))
        X.data, X.indices, X.indptr = (arrays[key] for key in ("data", "indices", "indptr"))
        X.has_canonical_format = True  # write_blocks saw to it
        return X

    def unverified(self) -> tuple[Any, Check] | None:
        """The mapped matrix, whose checksum is still to be compared; its row pointers are in order."""
        if self.kind != "words" or "dense" in self.files:
            return None
        try:
            arrays = {key: self._mapped(key) for key in self.files}
        except BlockError:
            raise
        except (OSError, ValueError) as error:
            raise BlockError(f"{self.name} cannot be read: {error}") from error
        data, indices, starts = (arrays[key] for key in ("data", "indices", "indptr"))
        in_order = len(starts) == self.n_rows + 1 and starts[0] == 0 and bool(np.all(starts[1:] >= starts[:-1]))
        if not in_order or not starts[-1] == len(data) == len(indices):
            raise changed(self.name)
        return self._matrix(arrays), Check(self.name, arrays, self.checksum)

    def _mapped(self, key: str) -> Array:
        path = self.folder / self.files[key]
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size != self.sizes[key]:
                    raise BlockError(
                        f"{self.name} is truncated or changed: {path} has {size} bytes, not {self.sizes[key]}"
                    )
                if key not in self.headers:
                    self.headers[key] = _header(file)
                shape, dtype, offset = self.headers[key]
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                if hasattr(mmap, "MADV_SEQUENTIAL"):  # read ahead: from a disk, a pass takes a quarter less time
                    mapped.madvise(mmap.MADV_SEQUENTIAL)
        except FileNotFoundError:
            raise BlockError(f"{self.name} is missing: there is no file {path}") from None
        return np.ndarray(shape, dtype, buffer=mapped, offset=offset)


def _header(file: Any) -> tuple[tuple[int, ...], Any, int]:
    """The shape and type of an array in a NumPy file, and where its entries begin."""
    np.lib.format.read_magic(file)
    shape, in_columns, dtype = np.lib.format.read_array_header_1_0(file)
    if in_columns or dtype.hasobject:
        raise ValueError("not an array that write_blocks wrote")
    return shape, dtype, file.tell()


def write_blocks(
    path: Any, X: Any, y: Any = None, sample_weight: Any = None, rows_per_block: int | None = None
) -> Path:
    """Write blocks of rows to a folder, which ``csr.Linear(path)`` reads without loading it into memory.

    If the folder has some of the blocks from an earlier call, these are compared with the new ones and not written
    again, unless their files are damaged.

    Parameters
    ----------
    path : path of a folder
        Made if it does not exist.
    X : matrix, or iterable of blocks
        A dense or scipy.sparse matrix, which is split; or an iterable of matrices, of pairs (X, y) or of triples (X, y,
        sample_weight).
    y, sample_weight : array, optional
        Labels and weights of all rows, if X is a matrix. Labels are numbers or strings.
    rows_per_block : int, optional
        The size of the blocks if X is a matrix; by default about 32 MB each.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> import cvxstructreg as csr
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = csr.io.write_blocks(folder.name, np.arange(8.0).reshape(4, 2), y=[0, 1, 1, 0], rows_per_block=3)
    >>> blocks = csr.RowBlocks(path)
    >>> blocks.shape, blocks.n_blocks, blocks.y.tolist()
    ((4, 2), 2, [0, 1, 1, 0])
    >>> folder.cleanup()
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    finished = _journal(folder)
    lines: list[dict[str, Any]] = []
    totals: Any = None
    for number, (block, labels, weights) in enumerate(_blocks_of(X, y, sample_weight, rows_per_block)):
        name = f"block {number}"
        if lines and block.shape[1] != lines[0]["shape"][1]:
            raise ValueError(f"{name} has {block.shape[1]} columns, but the first has {lines[0]['shape'][1]}")
        extra = {"y": labels, "weight": weights}
        arrays = {key: _plain(value, name) for key, value in extra.items() if value is not None}
        for key, value in arrays.items():
            if len(value) != block.shape[0]:
                raise ValueError(f"{name} has {block.shape[0]} rows, but {key} has {len(value)} entries")
        data, kind = arrays_of(block), finished[number].get("kind", "crc32") if number < len(finished) else "words"
        line: dict[str, Any] = {"number": number, "shape": list(block.shape), "checksum": checksum_of(data, kind)}
        line["extra"] = checksum_of(arrays, kind)
        if number < len(finished):
            if any(finished[number][key] != value for key, value in line.items()):
                raise ValueError(f"{folder} has another {name} from an earlier call; choose an empty folder")
            line = finished[number]
            if not _intact(folder, line):
                _write_arrays(folder, number, {**data, **arrays})
        else:
            line |= {"kind": kind, "files": _write_arrays(folder, number, {**data, **arrays})}
            with open(folder / JOURNAL, "a", encoding="utf-8") as journal:
                journal.write(json.dumps(line) + "\n")
        lines.append(line)
        more = kernels.statistics(block)
        totals = more if totals is None else tuple(a + b for a, b in zip(totals, more, strict=True))
    if totals is None:
        raise ValueError("X has no blocks")
    if len(lines) < len(finished):
        raise ValueError(f"{folder} has {len(finished)} blocks from an earlier call, but X only {len(lines)}")
    _write_end(folder, lines, totals)
    return folder


def open_directory(folder: Path) -> Opened:
    """The blocks of a folder made by :func:`write_blocks`."""
    try:
        end = json.loads((folder / COMPLETE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        begun = " is incomplete: call write_blocks again" if (folder / JOURNAL).exists() else " was not made by it"
        raise FileNotFoundError(f"no {COMPLETE} in {folder}: the folder{begun}") from None
    lines = _journal(folder)
    if len(lines) != end["n_blocks"] or _checksum_of_journal(lines) != end["checksum"]:
        raise BlockError(f"{folder / JOURNAL} was changed since it was written; write the blocks again")
    blocks = [_file_block(folder, line) for line in lines]
    labels, weights = (joined(values) for values in zip(*(_extras(folder, line) for line in lines), strict=True))
    statistics = None
    if (folder / COLUMNS).exists() and zlib.crc32((folder / COLUMNS).read_bytes()) == end["columns"]:
        with np.load(folder / COLUMNS, allow_pickle=False) as stored:
            statistics = stored["sums"], stored["squares"], stored["counts"]
    sparse = any("data" in line["files"] for line in lines)
    return Opened(blocks, y=labels, sample_weight=weights, sparse=sparse, statistics=statistics)


def _blocks_of(X: Any, y: Any, weights: Any, rows: int | None) -> Iterator[tuple[Any, Any, Any]]:
    """All blocks with their labels and weights."""
    if not (isinstance(X, np.ndarray) or sp.issparse(X)):
        if y is not None or weights is not None or rows is not None:
            raise ValueError(
                "y, sample_weight and rows_per_block are for a matrix X; pass blocks (X, y, sample_weight)"
            )
        for number, item in enumerate(X):
            block, labels, its_weights = parts_of(item)
            yield _checked(block, f"block {number}"), labels, its_weights
        return
    n, whole = X.shape[0], sp.csr_array(X) if sp.issparse(X) else X
    if rows is None:
        size = 12.0 * whole.nnz if sp.issparse(whole) else 8.0 * whole.size
        rows = max(1, int(n * min(1.0, BLOCK_BYTES / max(size, 1.0))))
    if rows < 1:
        raise ValueError(f"rows_per_block must be positive, got {rows}")
    for first in range(0, n, rows):
        part = slice(first, first + rows)
        some = (None if values is None else np.asarray(values)[part] for values in (y, weights))
        yield _checked(whole[part], f"block {first // rows}"), *some


def _checked(block: Any, name: str) -> Any:
    X = as_block(block)
    if sp.issparse(X):
        X.check_format(full_check=True)
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise BlockError(f"{name} contains NaN or infinite values; impute or drop them first")
    return X


def _plain(values: Any, name: str) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "biufUS":
        raise TypeError(f"labels and weights of {name} must be numbers or strings, got dtype {array.dtype}")
    return array


def _write_arrays(folder: Path, number: int, arrays: dict[str, Any]) -> dict[str, list[Any]]:
    """Write the arrays of a block; return the names and sizes of the files."""
    files = {}
    for key, array in arrays.items():
        name = f"{number:05d}.{key}.npy"
        with _replacing(folder / name, f"block {number}") as file:
            np.save(file, array, allow_pickle=False)
        files[key] = [name, os.stat(folder / name).st_size]
    return files


class _replacing:  # noqa: N801
    """A file that gets its name when it is complete; removed if that fails."""

    def __init__(self, path: Path, what: str) -> None:
        self.path, self.what = path, what
        self.partial = path.with_name(path.name + ".part")

    def __enter__(self) -> Any:
        self.file = open(self.partial, "wb")
        return self.file

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if error is None:
                self.file.flush()
                os.fsync(self.file.fileno())
        except OSError as failed:
            error = failed
        with suppress(OSError):  # a full disk was noticed before
            self.file.close()
        if error is None:
            os.replace(self.partial, self.path)
            return
        full = shutil.disk_usage(self.path.parent).free < FULL_DISK
        self.partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            number = error.errno or (errno.ENOSPC if full else errno.EIO)  # NumPy does not tell that the disk is full
            reason = error.strerror or f"{os.strerror(number)} ({error})"
            remedy = "the blocks before it are kept; make room and call write_blocks again"
            raise OSError(number, f"{self.what} cannot be written to {self.path.parent}: {reason}; {remedy}") from error


def _journal(folder: Path) -> list[dict[str, Any]]:
    """The lines of the finished blocks, in order; an incomplete last line is dropped."""
    path = folder / JOURNAL
    if not path.exists():
        return []
    lines: list[dict[str, Any]] = []
    text = path.read_bytes()
    kept = text[: text.rfind(b"\n") + 1]
    if kept != text:
        path.write_bytes(kept)
    for line in kept.decode("utf-8").splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise BlockError(f"{path} was changed since it was written; write the blocks again") from error
    return lines


def _write_end(folder: Path, lines: Iterable[dict[str, Any]], totals: Any) -> None:
    lines = list(lines)
    with _replacing(folder / COLUMNS, COLUMNS) as file:
        np.savez(file, sums=totals[0], squares=totals[1], counts=totals[2])
    end = {
        "n_blocks": len(lines),
        "n_rows": sum(line["shape"][0] for line in lines),
        "checksum": _checksum_of_journal(lines),
        "columns": zlib.crc32((folder / COLUMNS).read_bytes()),
    }
    with _replacing(folder / COMPLETE, COMPLETE) as file:
        file.write(json.dumps(end).encode())


def _checksum_of_journal(lines: list[dict[str, Any]]) -> int:
    return zlib.crc32(json.dumps(lines, sort_keys=True).encode())


def _file_block(folder: Path, line: dict[str, Any]) -> FileBlock:
    files = {key: found for key, found in line["files"].items() if key not in ("y", "weight")}
    name = f"block {line['number']} of {folder}"
    names, sizes = ({key: found[i] for key, found in files.items()} for i in (0, 1))
    n_rows, n_columns = line["shape"]
    return FileBlock(name, n_rows, n_columns, folder, names, sizes, line["checksum"], line.get("kind", "crc32"))


def _extras(folder: Path, line: dict[str, Any]) -> tuple[Array | None, Array | None]:
    """The labels and the weights of a block, compared with their checksum."""
    name, found = f"block {line['number']} of {folder}", {}
    for key in ("y", "weight"):
        if key in line["files"]:
            try:
                found[key] = np.asarray(np.load(folder / line["files"][key][0], allow_pickle=False))
            except (OSError, ValueError) as error:
                raise BlockError(f"{key} of {name} cannot be read: {error}") from error
    if checksum_of(found, line.get("kind", "crc32")) != line["extra"]:
        files = " and ".join(line["files"][key][0] for key in found)
        raise BlockError(f"{files} of {name} changed since the block was written: the checksum differs; write it again")
    return found.get("y"), found.get("weight")


def _intact(folder: Path, line: dict[str, Any]) -> bool:
    """Whether the files of a finished block are as they were written."""
    try:
        _file_block(folder, line).load(True)
        _extras(folder, line)
    except BlockError:
        return False
    return True
