"""Writing data files: JSON lines, whole or not at all, and checksums that a later reading compares."""

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
    """Write a file in one step: other threads and processes see the old file or the new one, never a part.

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
    """Write one JSON object per line, compressed when the name ends in .gz: the format of the text sets.

    Folders on the way are made, and the file appears whole or not at all. Use it to bring documents of your own into a
    form that the loaders read.

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
    """The content of a file with one JSON object per line, the same bytes for the same records."""
    text = "".join(json.dumps(dict(record), ensure_ascii=False) + "\n" for record in records)
    stored = text.encode("utf-8")
    return gzip.compress(stored, mtime=0) if compressed else stored


def checksum_path(path: Path) -> Path:
    """Where the SHA-256 checksum of a file is kept."""
    return path.with_name(path.name + ".sha256")


def write_with_checksum(path: Path, content: bytes) -> None:
    """Write a file, and its checksum in the format of ``sha256sum`` beside it."""
    checksum_path(path).unlink(missing_ok=True)  # a crash in between leaves a file without checksum, not a wrong one
    write_whole(path, content)
    write_whole(checksum_path(path), f"{sha256(content)}  {path.name}\n".encode())


def check_checksum(path: Path) -> None:
    """Raise unless a file has the checksum beside it; a file without one is taken as it is."""
    try:
        wanted = checksum_path(path).read_text().split()[:1]
    except (FileNotFoundError, UnicodeDecodeError):
        return
    found = sha256(path.read_bytes())
    if wanted != [found]:
        raise DataFormatError(
            f"{path} has the SHA-256 checksum {found}, but {checksum_path(path).name} says otherwise; get the file "
            "again, or remove the checksum if you have changed the file yourself"
        )


def sha256(content: bytes) -> str:
    """The SHA-256 checksum in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
