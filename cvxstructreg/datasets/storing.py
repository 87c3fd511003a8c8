"""Write data files atomically, as JSON lines with checksums that are verified on reading."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cvxstructreg.datasets.locating import PathLike
from cvxstructreg.datasets.reading import DataFormatError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: other threads and processes see the old file or the new one, never a part.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     write_whole(Path(home) / "deep" / "file", b"content")
    ...     [path.name for path in (Path(home) / "deep").iterdir()]
    ['file']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_json_lines(path: PathLike, records: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object per line, compressed if the name ends in .gz: the format of the text data sets.

    Missing folders are created, and the file is written atomically. Use this function to convert your own documents to
    the format that the loaders read.

    Parameters
    ----------
    path : str or path
    records : iterable of dict
        Such as ``{"id": "pos/1", "label": "pos", "text": "a fine film ."}``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     write_json_lines(f"{home}/two.jsonl.gz", [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}])
    ...     len(gzip.open(f"{home}/two.jsonl.gz").read().splitlines())
    2
    """
    target = Path(path)
    write_whole(target, json_lines(records, target.suffix == ".gz"))


def json_lines(records: Iterable[Mapping[str, Any]], compressed: bool) -> bytes:
    """Return the content of a file with one JSON object per line; equal records give equal bytes."""
    text = "".join(json.dumps(dict(record), ensure_ascii=False) + "\n" for record in records)
    stored = text.encode("utf-8")
    return gzip.compress(stored, mtime=0) if compressed else stored


def checksum_path(path: Path) -> Path:
    """Return the path of the file with the SHA-256 checksum of a file."""
    return path.with_name(path.name + ".sha256")


def write_with_checksum(path: Path, content: bytes) -> None:
    """Write a file, and next to it its checksum in the format of ``sha256sum``."""
    checksum_path(path).unlink(missing_ok=True)  # after a crash the checksum is missing, not wrong
    write_whole(path, content)
    write_whole(checksum_path(path), f"{sha256(content)}  {path.name}\n".encode())


def check_checksum(path: Path) -> None:
    """Raise unless a file matches its stored checksum; a file without a stored checksum is accepted."""
    try:
        wanted = checksum_path(path).read_text().split()[:1]
    except (FileNotFoundError, UnicodeDecodeError):
        return
    found = sha256(path.read_bytes())
    if wanted != [found]:
        raise DataFormatError(
            f"{path} has the SHA-256 checksum {found}, which is not the one in {checksum_path(path).name}; get the "
            "file again, or remove the checksum file if you have changed the file yourself"
        )


def sha256(content: bytes) -> str:
    """Return the SHA-256 checksum in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
