"""Read text, JSON lines, tables and .npz files; errors name the file, the line and the remedy."""

from __future__ import annotations

import gzip
import json
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from cvxstructreg.core.checks import plural

GZIP_MAGIC = b"\x1f\x8b"
#: Seconds between two lines of progress.
PROGRESS_INTERVAL = 1.0
Record = dict[str, Any]


class DataFormatError(ValueError):
    """A data file is truncated, damaged or not in the expected format."""


def raw_lines(path: Path, verbose: bool = False) -> Iterator[bytes]:
    """Yield the lines of a file without line ends; a gzipped file is decompressed."""
    if path.is_dir():
        raise DataFormatError(f"{path} is a folder, not a file; give the file")
    with open(path, "rb") as stored:
        magic = stored.read(2)
        stored.seek(0)
        if not magic:
            raise DataFormatError(f"{path} is empty; get the file again")
        compressed = magic == GZIP_MAGIC
        if path.suffix == ".gz" and not compressed:
            raise DataFormatError(f"{path} is not compressed although its name ends in .gz; remove .gz from the name")
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=stored)) if compressed else stored
        shown, number, size = time.monotonic(), 0, path.stat().st_size
        try:
            for number, line in enumerate(stream, 1):
                yield line.rstrip(b"\r\n")
                if verbose and time.monotonic() - shown > PROGRESS_INTERVAL:
                    shown = time.monotonic()
                    print(f"{path.name}: {number:,} lines, {100 * stored.tell() / size:.0f} %", flush=True)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataFormatError(
                f"{path} is truncated or damaged after line {number} ({error}); get the file again"
            ) from error
        if verbose:
            print(f"{path.name}: {number:,} lines read", flush=True)


def text_lines(path: Path, encoding: str = "utf-8", verbose: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file, numbered from 1; the error for a wrong encoding names the line."""
    for number, line in enumerate(raw_lines(path, verbose), 1):
        try:
            yield number, line.decode(encoding)
        except UnicodeDecodeError as error:
            raise DataFormatError(f"{path}, line {number}: not {encoding} text ({error}); convert the file") from error


def read_json_lines(path: Path, fields: Mapping[str, type], verbose: bool = False) -> list[Record]:
    """Yield the objects of a file with one JSON object per line; each must have the given fields and types."""
    records = []
    for number, line in text_lines(path, verbose=verbose):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataFormatError(
                f"{path}, line {number}: not valid JSON ({error.msg}, column {error.colno}); correct the line"
            ) from error
        if not isinstance(record, dict):
            raise DataFormatError(f"{path}, line {number}: expected a JSON object, not {type(record).__name__}")
        for field, kind in fields.items():
            value = record.get(field)
            kinds = (int, float) if kind is float else (kind,)
            if not isinstance(value, kinds) or isinstance(value, bool):
                given = f"{value!r:.60}" if field in record else "missing"
                raise DataFormatError(
                    f"{path}, line {number}: field {field!r} is {given}; expected type {kind.__name__}"
                )
        records.append(record)
    if not records:
        raise DataFormatError(f"{path} has no documents; get the file again")
    return records


def read_table(path: Path, columns: tuple[str, ...], verbose: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a tab-separated file with line numbers, without the header and lines that start with #."""
    for number, line in text_lines(path, verbose=verbose):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if number == 1 and cells[: len(columns)] == list(columns):
            continue
        if len(cells) < len(columns):
            raise DataFormatError(
                f"{path}, line {number}: {len(cells)} cells; expected {len(columns)}, separated by tabs: "
                f"{', '.join(columns)}"
            )
        yield number, cells


def read_npz(path: Path, expected: Mapping[str, tuple[str, int]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file, each checked for its kind (``dtype.kind``) and number of dimensions.

    A number of dimensions of -1 allows any number.
    """
    if not zipfile.is_zipfile(path):
        raise DataFormatError(f"{path} is not an .npz file, or is truncated; get the file again")
    with np.load(path, allow_pickle=False) as archive:
        absent = [name for name in expected if name not in archive.files]
        if absent:
            there = ", ".join(archive.files) or "nothing"
            raise DataFormatError(f"{path} has no array {', '.join(absent)}; it contains {there}")
        try:
            arrays = {name: archive[name] for name in archive.files}
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            raise DataFormatError(f"{path} is damaged ({error}); get the file again") from error
    for name, (kinds, dimensions) in expected.items():
        array = arrays[name]
        if array.dtype.kind not in kinds or dimensions not in (-1, array.ndim):
            words = {"iu": "integers", "fiu": "numbers", "U": "strings"}[kinds]
            raise DataFormatError(
                f"{path}: array {name} has type {array.dtype} and shape {array.shape}; "
                f"expected {words}" + (f" in {plural(dimensions, 'dimension')}" if dimensions >= 0 else "")
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise DataFormatError(f"{path}: array {name} contains NaN or infinite values; get the file again")
    return arrays


def check_length(path: Path, name: str, count: int, rows: int, of: str) -> None:
    """Raise unless an array has one entry per row (or column) of another."""
    if count != rows:
        raise DataFormatError(
            f"{path}: {name} has {count} entries, expected one for each of {rows} {of}; get the file again"
        )
