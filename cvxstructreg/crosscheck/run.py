"""Check many problems in several processes; each result is a line of JSON, so an interrupted run can be resumed."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from cvxstructreg.crosscheck.checks import check
from cvxstructreg.crosscheck.findings import Outcome, Settings, Violation
from cvxstructreg.crosscheck.recipe import class_of, random_recipe
from cvxstructreg.crosscheck.script import as_script
from cvxstructreg.crosscheck.shrink import shrink

Record = dict[str, Any]
#: Seconds without an answer after which a problem counts as a crash.
PATIENCE = 900.0


@dataclass(frozen=True)
class Plan:
    """Which problems are checked, and with which settings."""

    problems: int
    seed: int = 0
    largest: int = 60
    settings: Settings = field(default_factory=Settings)
    shrink_seconds: float = 20.0

    def as_data(self) -> Record:
        """Return the settings that must be equal for a run to be resumed."""
        return {"seed": self.seed, "largest": self.largest, "settings": asdict(self.settings)}


def examine(plan: Plan, number: int) -> Record:
    """Check one problem, shrink its violations, and return the record to store.

    Examples
    --------
    >>> record = examine(Plan(1, largest=4), 5)
    >>> record["number"], sorted(record)
    (5, ['class', 'number', 'optimum', 'seconds', 'shape', 'solvers', 'status', 'violations'])
    """
    recipe = random_recipe(plan.seed, number, plan.largest)
    outcome = check(recipe, plan.settings)
    record = outcome.as_data() | {"number": number, "class": class_of(recipe)}
    matrix = recipe["model"]["matrix"]
    record["shape"] = [len(matrix), len(matrix[0])]
    record["violations"] = []
    kinds: set[str] = set()
    for violation in outcome.violations:
        entry: Record = {"kind": violation.kind, "where": violation.where, "message": violation.message}
        if violation.kind not in kinds:  # one script for each kind
            kinds.add(violation.kind)
            smaller, found = shrink(recipe, violation, plan.settings, plan.shrink_seconds)
            entry |= {"recipe": smaller, "script": as_script(smaller, found, plan.settings)}
        record["violations"].append(entry)
    return record


def records_of(path: Path, plan: Plan) -> dict[int, Record]:
    """Return the records of an earlier run of the same plan; raise if the file belongs to another plan."""
    if not path.exists():
        return {}
    lines = path.read_text().splitlines()
    if not lines:
        return {}
    if json.loads(lines[0]) != json.loads(json.dumps(plan.as_data())):
        raise ValueError(f"{path} has results of other settings: {lines[0]}; remove it or choose another report")
    records: dict[int, Record] = {}
    for line in lines[1:]:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:  # the last line of a run that was killed
            continue
        records[record["number"]] = record
    return {number: record for number, record in records.items() if number < plan.problems}


def run(plan: Plan, path: Path, jobs: int, watch: Callable[[int, int], None] | None = None) -> dict[int, Record]:
    """Check all problems that are not in the file yet, and append their records to it."""
    records = records_of(path, plan)
    if not path.exists() or not path.read_text():
        path.write_text(json.dumps(plan.as_data()) + "\n")
    elif not path.read_text().endswith("\n"):
        path.write_text(path.read_text() + "\n")
    left = [number for number in range(plan.problems) if number not in records]
    with path.open("a") as file:
        for record in _results(plan, left, jobs):
            records[record["number"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            if watch is not None:
                watch(len(records), sum(bool(known["violations"]) for known in records.values()))
    return records


def _results(plan: Plan, numbers: list[int], jobs: int) -> Iterable[Record]:
    """Yield the records as they become ready; a process that dies or hangs is a violation."""
    pending = list(reversed(numbers))
    workers: list[_Worker] = [_Worker(plan) for _ in range(min(jobs, len(numbers)))]
    try:
        for worker in workers:
            worker.give(pending.pop())
        while any(worker.number is not None for worker in workers):
            busy = {worker.pipe: worker for worker in workers if worker.number is not None}
            for ready in wait(list(busy), timeout=1.0):
                worker = busy[ready]  # type: ignore[index]
                try:
                    yield worker.pipe.recv()
                    worker.number = None
                except EOFError:
                    yield worker.lost("the process died")
            for worker in workers:
                if worker.number is not None and time.monotonic() - worker.began > PATIENCE:
                    yield worker.lost(f"no answer after {PATIENCE:g} s")
                if worker.number is None and pending:
                    worker.give(pending.pop())
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that checks one problem at a time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.number: int | None = None
        self.began = 0.0
        self.start()

    def start(self) -> None:
        """Start the process, with one thread for linear algebra."""
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_work, args=(self.plan, other), daemon=True)
        self.process.start()
        other.close()

    def give(self, number: int) -> None:
        """Send a problem to the process."""
        self.number, self.began = number, time.monotonic()
        self.pipe.send(number)

    def lost(self, what: str) -> Record:
        """Restart the process, and return a record with the violation."""
        number = self.number
        assert number is not None
        self.end()
        self.number = None
        self.start()
        recipe = random_recipe(self.plan.seed, number, self.plan.largest)
        violation = Violation("crash", "process", what)
        entry = {"kind": "crash", "where": "process", "message": what, "recipe": recipe}
        entry["script"] = as_script(recipe, violation)
        record = Outcome("failed").as_data() | {"number": number, "class": class_of(recipe), "violations": [entry]}
        return record | {"shape": [len(recipe["model"]["matrix"]), len(recipe["model"]["matrix"][0])]}

    def end(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _work(plan: Plan, pipe: Connection) -> None:
    try:
        while True:
            number = pipe.recv()
            pipe.send(examine(plan, number))
    except (EOFError, KeyboardInterrupt):
        sys.exit(0)
