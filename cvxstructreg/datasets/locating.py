"""The search for data files, and the error for a missing one."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

#: The environment variable that names a folder of data sets.
VARIABLE = "CVXSTRUCTREG_DATA"

PathLike = str | os.PathLike[str]


class DataNotFoundError(FileNotFoundError):
    """A data set was not found in any folder; the message says which file to put where."""


@dataclass(frozen=True)
class Source:
    """A file of a data set: its path inside the data folder, its content, and where to get it.

    `others` are alternative paths of the same content in the format of its publishers.
    """

    title: str
    path: str
    content: str
    origin: str
    others: tuple[str, ...] = ()


def cache_folder() -> Path:
    """Return the user's folder for data sets: ``~/.cache/cvxstructreg``, or its equivalent on the platform.

    Examples
    --------
    >>> cache_folder().name
    'cvxstructreg'
    """
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cvxstructreg"


def data_folders(data_home: PathLike | None = None) -> list[Path]:
    """Return the folders to search: `data_home` alone, or ``$CVXSTRUCTREG_DATA`` and the cache folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     data_folders(home) == [Path(home)]
    True
    """
    if data_home is None:
        named = os.environ.get(VARIABLE)
        return ([Path(named).expanduser()] if named else []) + [cache_folder()]
    if not isinstance(data_home, str | os.PathLike):
        raise TypeError(f"data_home must be the path of a folder, not {data_home!r}")
    folder = Path(data_home).expanduser()
    if not folder.is_dir():
        raise DataNotFoundError(
            f"data_home is {str(folder)!r}, which is not a folder; give the folder of the data sets"
        )
    return [folder]


def find_file(source: Source, data_home: PathLike | None = None) -> Path | None:
    """Return the path of the first file found, compressed or not, in its subfolder or not; else None."""
    for folder in data_folders(data_home):
        for name in (source.path, *source.others):
            plain = name.removesuffix(".gz")
            for candidate in dict.fromkeys((name, plain, Path(name).name, Path(plain).name)):
                if (folder / candidate).exists():
                    return folder / candidate
    return None


def locate(source: Source, data_home: PathLike | None = None) -> Path:
    """Return the path of the file; the error for a missing file says what to put where."""
    path = find_file(source, data_home)
    if path is None:
        raise not_found_error(source, data_home)
    return path


def not_found_error(source: Source, data_home: PathLike | None = None) -> DataNotFoundError:
    """Return the error for a file that is in none of the folders."""
    folders = data_folders(data_home)
    looked = ", ".join(str(folder) for folder in folders)
    lines = [
        f"{source.title}: the file {source.path} was not found in {looked}.",
        f"Put it at {folders[0] / source.path}, or pass data_home=, or set {VARIABLE} to the folder that contains it.",
        f"Expected content: {source.content}.",
    ]
    if source.others:
        lines.append(f"Also accepted: {', '.join(source.others)}.")
    lines.append(f"Get the data from {source.origin}.")
    return DataNotFoundError("\n".join(lines))
