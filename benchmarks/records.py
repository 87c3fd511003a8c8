"""Stored results, and the tables that pages show of them.

A record is a file ``docs/benchmark_records/NAME.json``. ``run.py --markdown`` writes one for each section, with the
command, the date, the machine and the versions. The pages have no tables of their own: each block

    <!-- benchmark NAME: first line -->
    <!-- benchmark NAME: last line -->

is filled from the record of that name, and ``tests/test_benchmark_records.py`` fails where a page differs from its
records. Tables of runs before there were records are kept as "rows", and are always labelled as an earlier run.

    python benchmarks/records.py       # fill the blocks again after a change of the pages
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import contest_table
import numpy as np
import pair_table
from measure import Result

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "benchmark_records"
PAGES = (ROOT / "docs" / "benchmarks.md", ROOT / "README.md", ROOT / "docs" / "larger_than_memory.md")
#: The block of README.md, which is made from several records.
SUMMARY = "summary"
#: Packages whose versions are recorded, where they are installed.
PACKAGES = (
    *("cvxstructreg", "cvxpy", "numpy", "scipy", "scikit-learn", "numba"),
    *("skglm", "celer", "glum", "copt", "dask", "dask-glm"),
    *("prox_tv", "scikit-image", "condat_tv"),
)
BLOCK = re.compile(r"<!-- benchmark (\w+): first line -->\n.*?<!-- benchmark \1: last line -->", re.DOTALL)

Record = dict[str, Any]


def machine() -> str:
    """The machine, and how busy it was."""
    words = f"{platform.machine()}, Python {platform.python_version()}, one thread"
    if hasattr(os, "getloadavg"):
        words += f", {os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}"
    return words


def versions() -> dict[str, str]:
    """The versions of the installed packages."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def store(name: str, results: Iterable[Result], folder: Path = FOLDER, options: str = "") -> None:
    """Write the record of a section that was run just now, with these options."""
    record = {
        "command": f"python benchmarks/run.py {name}{options} --markdown",
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": versions(),
        "results": [_without_nan(asdict(result)) for result in results],
    }
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _without_nan(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(x, float) and not np.isfinite(x) else x for key, x in entry.items()}


def load(folder: Path = FOLDER) -> dict[str, Record]:
    """All records by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def results_of(record: Record) -> list[Result]:
    """The results of a record that was measured with this program."""
    numbers = ("seconds", "cold", "gap")
    return [
        Result(**{key: np.nan if key in numbers and x is None else x for key, x in entry.items()})
        for entry in record.get("results", ())
    ]


def fill(pages: Iterable[Path] = PAGES, folder: Path = FOLDER) -> None:
    """Write the tables of all records into the blocks of the pages."""
    records = load(folder)
    for page in pages:
        page.write_text(filled(page.read_text(encoding="utf-8"), records), encoding="utf-8")


def filled(text: str, records: Mapping[str, Record]) -> str:
    """A page with the content of its blocks replaced."""
    from summary import table as summary_table

    newest = max(record["date"] for record in records.values())

    def block(match: re.Match[str]) -> str:
        name = match[1]
        if name != SUMMARY and name not in records:
            raise KeyError(f"there is no record of {name!r}; run benchmarks/run.py {name} --markdown")
        body = summary_table(records) if name == SUMMARY else rendered(records[name], newest)
        return f"<!-- benchmark {name}: first line -->\n\n{body}\n\n<!-- benchmark {name}: last line -->"

    return BLOCK.sub(block, text)


def rendered(record: Record, newest: str) -> str:
    """The origin of a record, and its table; a record older than the newest one is an earlier run."""
    if "rows" in record:
        origin = f"Earlier run, {record['date']}: {record['origin']}."
        return f"*{origin}*\n\n{_markdown(record['columns'], record['rows'])}"
    installed = [f"{name} {number}" for name, number in record["versions"].items()]
    label = "earlier run, " if record["date"] < newest else ""
    origin = f"`{record['command']}`: {label}{', '.join([record['date'], record['machine'], *installed])}."
    results = results_of(record)
    if results and all(result.section.startswith("pairs") for result in results):
        return f"{origin}\n\n{pair_table.tables(results)}"
    if contest_table.applies(results):
        head, *rows = contest_table.table(results)
        return f"{origin}\n\n{_markdown(head, rows)}"
    return f"{origin}\n\n{table(results)}"


def ratios(results: list[Result]) -> list[float]:
    """The times relative to the first line of the same task."""
    base: dict[tuple[str, str], float] = {}
    return [r.seconds / base.setdefault((r.section, r.work), r.seconds) for r in results]


def table(results: list[Result]) -> str:
    """A Markdown table of the results; a task is named once."""
    rows, last = [], ("", "")
    for r, ratio in zip(results, ratios(results), strict=True):
        numbers = ((r.seconds, ".3g"), (ratio, ".2f" if ratio < 100 else ",.0f"), (r.gap, ".0e"), (r.cold, ".3g"))
        cells = ["-" if np.isnan(x) else f"{x:{form}}" for x, form in numbers]
        rows.append(["" if (r.section, r.work) == last else r.work, r.solver, *cells, r.target])
        last = (r.section, r.work)
    return _markdown(["task", "solver", "seconds", "x ours", "gap", "first run", "target"], rows)


def _markdown(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(columns)
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    # a bar within a cell would end it
    return "\n".join(lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows])


if __name__ == "__main__":
    fill()
