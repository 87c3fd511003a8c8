"""Cells: the independent parts of a repetition. Each is computed once and kept in a file, so that a run can go on.

A cell is a function of a script's module with arguments that JSON can hold. Its result is a JSON value. A second run
reads the kept results, also after an interruption. ``--fresh`` computes them again, ``--jobs`` uses several processes.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any


def computed(function: Callable[..., Any], arguments: Sequence[dict[str, Any]], given: Any) -> list[Any]:
    """The results of all cells, in order. The CPU time of every cell is added to ``given.cell_seconds``.

    With ``given.kept`` nothing is computed, and the result of a missing cell is None.
    """
    files = [None if given.quick else _file(given.cache, function, each) for each in arguments]
    found: list[Any] = [_kept(file, given.fresh) for file in files]
    missing = [number for number, content in enumerate(found) if content is None]
    bar = Bar(function.__name__, len(arguments), len(arguments) - len(missing))
    if getattr(given, "kept", False):
        missing = []
    for number, content in _each(function, arguments, missing, given.jobs):
        found[number] = content
        file = files[number]
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content) + "\n", encoding="utf-8")
        bar.advance(_label(arguments[number]))
    given.cell_seconds += sum(content["seconds"] for content in found if content is not None)
    return [content if content is None else content["result"] for content in found]


def _each(function: Any, arguments: Any, missing: list[int], jobs: int) -> Any:
    """Pairs of a number and the content of its cell, as they are finished."""
    if jobs <= 1 or len(missing) <= 1:
        for number in missing:
            yield number, _content(function, arguments[number])
        return
    with ProcessPoolExecutor(jobs) as pool:
        tasks: dict[Future[Any], int] = {pool.submit(_content, function, arguments[n]): n for n in missing}
        for task in as_completed(tasks):
            yield tasks[task], task.result()


def _content(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Compute a cell. The result goes through JSON, so that a kept result and a new one are the same."""
    began = time.process_time()
    result = json.loads(json.dumps(function(**arguments), default=float))
    return {"arguments": arguments, "seconds": round(time.process_time() - began, 2), "result": result}


def _label(arguments: dict[str, Any]) -> str:
    """The values of the arguments, for the progress bar."""
    values = (_label(value) if isinstance(value, dict) else str(value) for value in arguments.values())
    return " ".join(value for value in values if value != "None")


def _file(folder: Path, function: Callable[..., Any], arguments: dict[str, Any]) -> Path:
    """The file of a cell: the script, the function and a digest of the arguments."""
    digest = hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:16]
    return Path(folder) / Path(function.__code__.co_filename).stem / f"{function.__name__}-{digest}.json"


def _kept(file: Path | None, fresh: bool) -> Any:
    """The content of a file, or None. A file that an interruption cut off counts as missing."""
    if file is None or fresh or not file.exists():
        return None
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError:
        return None


class Bar:
    """A progress bar on stderr. On a terminal it stays on one line; in a file it is a line every half minute."""

    def __init__(self, name: str, total: int, done: int) -> None:
        self.name, self.total, self.done, self.kept = name, total, done, done
        self.began, self.shown = time.monotonic(), time.monotonic()
        if done:
            print(f"{name}: {done} of {total} cells read from the cache", file=sys.stderr, flush=True)

    def advance(self, label: str) -> None:
        """Count a finished cell."""
        self.done += 1
        now = time.monotonic()
        left = (now - self.began) / (self.done - self.kept) * (self.total - self.done)
        bar = "#" * (24 * self.done // self.total)
        line = f"{self.name} [{bar:.<24}] {self.done}/{self.total} {label[:40]}, {left:.0f} s left"
        if sys.stderr.isatty():
            print(f"\r{line:<100}", end="\n" if self.done == self.total else "", file=sys.stderr, flush=True)
        elif now - self.shown > 30 or self.done == self.total:
            self.shown = now
            print(line, file=sys.stderr, flush=True)
