"""Shared by the scripts in this folder: command-line options, tables, JSON output, figures and pages."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from cvxstructreg.datasets.locating import cache_folder

#: The pages of the papers, whose tables the scripts write.
PAGES = Path(__file__).parents[2] / "docs" / "papers"
#: How a quick run is called wherever its results appear.
QUICK = "quick run on made or cut data, not a result of the paper's data"


def options(description: str, parts: Sequence[str]) -> argparse.Namespace:
    """The options of a script, which are the same for all. ``parts`` are the parts that can be run alone."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short run, on generated data if no real data are found")
    parser.add_argument("--data-home", help="folder of the data (default: CVXSTRUCTREG_DATA or the cache folder)")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--figure", type=Path, help="draw the figure here")
    parser.add_argument("--seed", type=int, default=0, help="random seed of splits and samples (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default 1)")
    parser.add_argument("--cache", type=Path, default=cache_folder() / "papers", help="folder of the finished cells")
    parser.add_argument("--fresh", action="store_true", help="compute all cells again")
    parser.add_argument("--kept", action="store_true", help="compute nothing; leave out what is not in the cache")
    parser.add_argument("--write-docs", action="store_true", help="write the tables and the figure into docs/papers")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts, help="run only these parts (default: all)")
    parser.set_defaults(cell_seconds=0.0)
    given = parser.parse_args()
    if given.quick and given.write_docs:
        parser.error("--write-docs needs the full run: the tables of a quick run are not results")
    return given


def compared(paper: float | None, ours: float | None, error: float | None = None) -> list[Any]:
    """Cells of a table: the paper's value, ours, the difference and the standard error of ours."""
    return [paper, ours, None if paper is None or ours is None else float(ours - paper), error]


#: The header of these cells.
COMPARED = ["paper", "ours", "difference", "standard error"]


def standard_error(values: Sequence[float]) -> float | None:
    """The standard error of the mean, or None for a single value."""
    count = len(values)
    if count < 2:
        return None
    mean = sum(values) / count
    return float((sum((value - mean) ** 2 for value in values) / (count - 1) / count) ** 0.5)


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table with aligned columns."""
    cells = [[_cell(value) for value in row] for row in [header, *rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(header))]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in cells)
    lines = ["| " + " | ".join(row) + " |" for row in padded]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


class Report:
    """A report that prints each result as it is added, and is written as JSON together with the protocol.

    With ``--write-docs`` its tables replace those between the markers of the page.
    """

    def __init__(self, title: str, protocol: Sequence[str], differences: Sequence[str], quick: bool = False) -> None:
        self.began, self.quick = time.perf_counter(), quick
        title = f"{title}: {QUICK}" if quick else title
        self.content: dict[str, Any] = {
            "title": title,
            "date": str(date.today()),
            "python": platform.python_version(),
            "command": " ".join(["python", *sys.argv]),
            "protocol": list(protocol),
            "differences from the paper": list(differences),
            "tables": {},
        }
        print(f"# {title}\n")
        for heading, lines in (("Protocol", protocol), ("Differences from the paper", differences)):
            print(f"{heading}:")
            print("\n".join(f"- {line}" for line in lines) + "\n", flush=True)

    def add(self, name: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table and keep it."""
        name = f"{name} ({QUICK})" if self.quick else name
        print(f"## {name}\n\n{table(header, rows)}\n", flush=True)
        self.content["tables"][name] = {"header": list(header), "rows": [list(row) for row in rows]}

    def note(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep details that are not printed."""
        self.content[name] = dict(content)

    def state(self, item: str, text: str) -> None:
        """The state of a table or figure of the paper, for the overview page."""
        self.content.setdefault("states", {})[item] = text
        print(f"{item}: {text}\n", flush=True)

    def found(self, lines: Sequence[str]) -> None:
        """What repeated and what did not, for the page."""
        self.content["what repeated"] = list(lines)
        print("\n".join(f"- {line}" for line in lines) + "\n", flush=True)

    def finish(self, given: argparse.Namespace, draw: Callable[[Any], Any] | None = None, page: str = "") -> None:
        """Write the JSON file, the figure and the page if requested, and print the run time."""
        seconds = time.perf_counter() - self.began
        self.content["seconds"] = round(seconds, 1)
        self.content["CPU seconds"] = round(given.cell_seconds or time.process_time(), 1)
        if given.json is not None:
            given.json.write_text(json.dumps(self.content, indent=2, default=float) + "\n", encoding="utf-8")
        paths = [given.figure] if given.figure is not None else []
        if given.write_docs:
            self.content["parts"] = list(given.parts)
            write_page(PAGES / f"{page}.md", self.content)
            write_states(PAGES / "README.md", page, self.content.get("states", {}))
            paths.append(PAGES / f"{page.split('_')[0]}.png")
        if paths and draw is not None:
            save_figure(draw, paths)
        print(f"{seconds:.0f} s (CPU time of all cells {self.content['CPU seconds']:.0f} s)")


def save_figure(draw: Callable[[Any], Any], paths: Sequence[Path]) -> None:
    """Draw once and save everywhere."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(layout="constrained")
    draw(figure)
    for path in paths:
        figure.savefig(path, dpi=90)


def write_page(path: Path, content: Mapping[str, Any]) -> None:
    """Replace everything between the markers of a page: its tables by name, the run, protocol and differences.

    A marker is a pair of comments, ``<!-- begin NAME -->`` and ``<!-- end -->``. Every table must have one. Tables of
    parts that were not run stay as they are.
    """
    minutes = content["CPU seconds"] / 60.0
    blocks = {name: table(found["header"], found["rows"]) for name, found in content["tables"].items()}
    parts = ", ".join(content["parts"])
    blocks["run"] = f"Run of {content['date']}, Python {content['python']}; parts: {parts}; {minutes:.1f} CPU minutes."
    for name in ("protocol", "differences from the paper", *(["what repeated"] if "what repeated" in content else [])):
        blocks[name] = "\n".join(f"- {line}" for line in content[name])
    text = path.read_text(encoding="utf-8")
    for name, block in blocks.items():
        begin, end = f"<!-- begin {name} -->\n", "\n<!-- end -->"
        before, found, rest = text.partition(begin)
        if not found:
            raise SystemExit(f"{path} has no marker {begin.strip()!r}; add it together with {end.strip()!r}")
        text = f"{before}{begin}\n{block}\n{end}{rest.partition(end)[2]}"
    path.write_text(text, encoding="utf-8")


def write_states(path: Path, page: str, states: Mapping[str, str]) -> None:
    """Replace the last cell of the rows of the overview that belong to the page and these items."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for item, state in states.items():
        rows = [n for n, line in enumerate(lines) if f"]({page}.md) | {item} |" in line]
        if len(rows) != 1:
            raise SystemExit(f"{path} has {len(rows)} rows for {item} of {page}.md; expected one")
        lines[rows[0]] = f"{lines[rows[0]].rsplit(' | ', 1)[0]} | {state} |"
    path.write_text("\n".join(lines), encoding="utf-8")


def progress(text: str) -> None:
    """Print a line about the progress of the script to stderr."""
    print(text, file=sys.stderr, flush=True)
