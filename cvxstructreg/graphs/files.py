"""Read text files of words, pairs and edges, plain or gzipped; errors name the file and the line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from cvxstructreg.core.checks import plural

FilePath = str | PathLike[str]


def numbered_lines(path: FilePath) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 text file, numbered from 1; a gzipped file is recognised by its first bytes."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"file {str(file)!r} does not exist; check the path")
    with file.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    number = 0
    try:
        with gzip.open(file, "rt", encoding="utf-8") if zipped else file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                yield number, line.rstrip("\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{str(file)!r} is truncated or damaged after line {number} ({error}); get the file again"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{str(file)!r} is not UTF-8 after line {number}; convert the file, e.g. with iconv"
        ) from error


def split_row(line: str) -> list[str]:
    """Split a line into columns: at tabs if it has any, else at commas, else at white space."""
    separator = next((mark for mark in "\t," if mark in line), None)
    return [field.strip() for field in line.split(separator)]


def rows(path: FilePath) -> Iterator[tuple[int, list[str]]]:
    """Yield the columns of each line that is not empty and not a comment (#), with its line number."""
    for number, line in numbered_lines(path):
        if line.strip() and not line.startswith("#"):
            yield number, split_row(line)


def read_word_list(path: FilePath) -> list[str]:
    """Return the words of a file (plain or gzipped, one word per line), without comments (#, ;) and empty lines.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "positive.txt"
    ...     _ = file.write_text("; opinion words" + chr(10) + "good" + chr(10) + "great" + chr(10))
    ...     read_word_list(file)
    ['good', 'great']
    """
    words = [line.strip() for _, line in numbered_lines(path) if not line.startswith((";", "#"))]
    words = [word for word in words if word]
    if not words:
        raise ValueError(f"{str(path)!r} has no words; expected one per line")
    return words


def read_edge_list(path: FilePath) -> tuple[list[tuple[str, str]], list[float]]:
    """Return the pairs and weights of a file with two or three columns: node, node and weight (1 by default).

    Columns are separated by tabs, commas or white space; lines that start with # are comments.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "edges.csv"
    ...     _ = file.write_text("good,great,2" + chr(10) + "good,bad,-1" + chr(10))
    ...     read_edge_list(file)
    ([('good', 'great'), ('good', 'bad')], [2.0, -1.0])
    """
    pairs, weights = [], []
    for number, row in rows(path):
        if len(row) not in (2, 3) or not row[0] or not row[1]:
            raise ValueError(
                f"line {number} of {str(path)!r} has {plural(len(row), 'column')}: {row}; "
                "expected node, node and optionally weight"
            )
        pairs.append((row[0], row[1]))
        weights.append(_number(row[2], number, path) if len(row) == 3 else 1.0)
    return pairs, weights


def _number(text: str, number: int, path: FilePath) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"line {number} of {str(path)!r}: the weight {text!r} is not a number") from None
