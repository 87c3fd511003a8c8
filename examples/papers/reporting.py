"""Shared by the scripts in this folder: command-line options, tables, JSON output and figures."""

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


def options(description: str, **defaults: Any) -> argparse.Namespace:
    """The options of a script: --quick, --data-home, --json, --figure, --seed and --jobs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short run, on generated data if no real data are found")
    parser.add_argument("--data-home", help="folder of the data (default: CVXSTRUCTREG_DATA or the cache folder)")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--figure", type=Path, help="draw the figure here")
    parser.add_argument("--seed", type=int, default=0, help="random seed of splits and samples (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default 1)")
    parser.set_defaults(**defaults)
    return parser.parse_args()


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
    """A report that prints each result as it is added, and is written as JSON together with the protocol."""

    def __init__(self, title: str, protocol: Sequence[str], differences: Sequence[str]) -> None:
        self.began = time.perf_counter()
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
        print(f"## {name}\n\n{table(header, rows)}\n", flush=True)
        self.content["tables"][name] = {"header": list(header), "rows": [list(row) for row in rows]}

    def note(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep details that are not printed."""
        self.content[name] = dict(content)

    def finish(
        self, json_path: Path | None, figure_path: Path | None, draw: Callable[[Any], Any] | None = None
    ) -> None:
        """Write the JSON file and the figure if requested, and print the run time."""
        seconds = time.perf_counter() - self.began
        self.content["seconds"] = round(seconds, 1)
        self.content["CPU seconds"] = round(time.process_time(), 1)
        if json_path is not None:
            json_path.write_text(json.dumps(self.content, indent=2, default=float) + "\n", encoding="utf-8")
        if figure_path is not None:
            import matplotlib

            matplotlib.use("Agg")
            import matplotlib.pyplot as plt

            figure = plt.figure(layout="constrained")
            draw(figure)
            figure.savefig(figure_path, dpi=100)
        print(f"{seconds:.0f} s (CPU time {self.content['CPU seconds']:.0f} s)")


def progress(text: str) -> None:
    """Print a line about the progress of the script to stderr."""
    print(text, file=sys.stderr, flush=True)
