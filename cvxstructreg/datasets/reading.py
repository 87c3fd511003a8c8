"""Reading text, JSON lines, tables and .npz files; the error for a broken one names file, line and remedy."""

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
    """The lines of a file without their ends, decompressed when it is gzip'd."""
    if path.is_dir():
        raise DataFormatError(f"{path} is a folder; a file is expected")
    with open(path, "rb") as stored:
        magic = stored.read(2)
        stored.seek(0)
        if not magic:
            raise DataFormatError(f"{path} is empty; get the file again")
        compressed = magic == GZIP_MAGIC
        if path.suffix == ".gz" and not compressed:
            raise DataFormatError(f"{path} is not compressed although its name says so; remove .gz from the name")
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
    """The lines of a text file with their numbers, from 1; an error names the line that is not in the encoding."""
    for number, line in enumerate(raw_lines(path, verbose), 1):
        try:
            yield number, line.decode(encoding)
        except UnicodeDecodeError as error:
            raise DataFormatError(f"{path}, line {number}: not {encoding} text ({error}); convert the file") from error


def read_json_lines(path: Path, fields: Mapping[str, type], verbose: bool = False) -> list[Record]:
    """The objects of a file with one JSON object per line, each with the named fields of the given types."""
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
            raise DataFormatError(f"{path}, line {number}: a JSON object is expected, not {type(record).__name__}")
        for field, kind in fields.items():
            value = record.get(field)
            kinds = (int, float) if kind is float else (kind,)
            if not isinstance(value, kinds) or isinstance(value, bool):
                given = f"{value!r:.60}" if field in record else "missing"
                raise DataFormatError(
                    f"{path}, line {number}: field {field!r} is {given}; it must be a {kind.__name__}"
                )
        records.append(record)
    if not records:
        raise DataFormatError(f"{path} holds no documents; get the file again")
    return records


def read_table(path: Path, columns: tuple[str, ...], verbose: bool = False) -> Iterator[tuple[int, list[str]]]:
    """The rows of a tab-separated file with their line numbers; lines that start with # and the header are left out."""
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
    """The arrays of an .npz file, each of the given kinds of values (as in ``dtype.kind``) and number of dimensions.

    The number of dimensions is -1 where any will do.
    """
    if not zipfile.is_zipfile(path):
        raise DataFormatError(f"{path} is no .npz file, or a truncated one; get the file again")
    with np.load(path, allow_pickle=False) as archive:
        absent = [name for name in expected if name not in archive.files]
        if absent:
            there = ", ".join(archive.files) or "nothing"
            raise DataFormatError(f"{path} has no array {', '.join(absent)}; it holds {there}")
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
            raise DataFormatError(f"{path}: array {name} holds NaN or infinite values; get the file again")
    return arrays


def check_length(path: Path, name: str, count: int, rows: int, of: str) -> None:
    """Raise unless an array has one entry per row of another."""
    if count != rows:
        raise DataFormatError(f"{path}: {name} has {count} entries for the {rows} {of}; get the file again")
