"""The command: options, progress bar, report and exit code."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cvxstructreg.crosscheck.findings import Settings
from cvxstructreg.crosscheck.recipe import LARGEST
from cvxstructreg.crosscheck.report import as_html, as_text
from cvxstructreg.crosscheck.run import Plan, Record, records_of, run

DESCRIPTION = (
    "Solves random problems with all solvers and compares the results with textbook formulas. Results are stored as "
    "JSON lines next to the report, so an interrupted run can be resumed. Exits with code 1 if there are violations."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--problems", type=_count, default=1000, help="number of problems (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sequence of problems (default 0)")
    parser.add_argument("--jobs", type=_count, default=1, help="number of processes (default 1)")
    parser.add_argument(
        "--largest", type=_count, default=LARGEST, help="largest number of rows and columns (default 60)"
    )
    parser.add_argument("--shrink", type=float, default=20.0, help="CPU seconds to shrink a violation (default 20)")
    parser.add_argument("--report", type=Path, default=Path("crosscheck.html"), help="HTML file to write")
    parser.add_argument("--fresh", action="store_true", help="start again instead of resuming an earlier run")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0 without violations, 1 with, 2 for wrong arguments, 130 if interrupted."""
    parser = argparse.ArgumentParser(prog="python -m cvxstructreg.crosscheck", description=DESCRIPTION)
    add_arguments(parser)
    return crosscheck(parser.parse_args(arguments))


def crosscheck(options: argparse.Namespace) -> int:
    """Run with parsed options."""
    plan = Plan(options.problems, options.seed, options.largest, Settings(), options.shrink)
    path = options.report.with_suffix(".jsonl")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"cannot make the folder of --report {options.report}: {error}; choose another file", file=sys.stderr)
        return 2
    if options.fresh:
        path.unlink(missing_ok=True)
    interrupted = False
    try:
        records = run(plan, path, options.jobs, _Bar(options.problems))
    except KeyboardInterrupt:
        records, interrupted = records_of(path, plan), True
    except ValueError as error:
        print(f"\n{error}", file=sys.stderr)
        return 2
    options.report.write_text(as_html(records, f"Crosscheck of {len(records)} problems, seed {options.seed}"))
    print(file=sys.stderr)
    print(as_text(records))
    violations = _listed(records)
    print(*violations, sep="\n")
    print(f"{len(records)} problems; {len(violations)} violations; report: {options.report}")
    if interrupted:
        print("interrupted: run the same command again to resume")
        return 130
    return 1 if violations else 0


def _listed(records: dict[int, Record]) -> list[str]:
    return [
        f"VIOLATION problem {number}: {entry['kind']} ({entry['where']}): {entry['message']}"
        for number, record in sorted(records.items())
        for entry in record["violations"]
    ]


class _Bar:
    """A progress bar on a terminal; elsewhere a line every half minute."""

    def __init__(self, total: int) -> None:
        self.total, self.began, self.first, self.printed = total, time.monotonic(), -1, 0.0

    def __call__(self, done: int, bad: int) -> None:
        """Show the progress of the run."""
        now = time.monotonic()
        self.first = done - 1 if self.first < 0 else self.first
        terminal = sys.stderr.isatty()
        if now - self.printed < (0.2 if terminal else 30.0) and done < self.total:
            return
        self.printed = now
        rate = (now - self.began) / max(1, done - self.first)
        left = f"{(self.total - done) * rate / 60:.0f} min left" if done < self.total else "done"
        filled = 30 * done // self.total
        text = f"[{'#' * filled}{'.' * (30 - filled)}] {done} of {self.total}, {bad} with violations, {left}"
        print(f"\r\033[K{text}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, got {text!r}")
    return count
