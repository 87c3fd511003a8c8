"""The table of a contest at equal gaps: one row for each task, and one column for each solver."""

from __future__ import annotations

import numpy as np
from measure import Result


def applies(results: list[Result]) -> bool:
    """Whether every task names the gap that all of its solvers had to reach."""
    return bool(results) and all(", gap " in result.work for result in results)


def table(results: list[Result]) -> list[list[str]]:
    """The head and the rows: CPU seconds, "-" where the gap was not reached, and the best peer relative to ours."""
    works = dict.fromkeys(result.work for result in results)
    solvers = list(dict.fromkeys(result.solver for result in results))
    found = {(result.work, result.solver): result.seconds for result in results}
    targets = dict.fromkeys(r.target for r in results if r.target and r.target != "not reached")
    rows = [["task (seconds)", *solvers, f"best peer / {solvers[0]} (target: {', '.join(targets)})"]]
    for work in works:
        seconds = [found.get((work, solver), np.nan) for solver in solvers]
        cells = ["-" if np.isnan(x) else f"{x:.3g}" for x in seconds]
        ratio = best_peer(results, work)
        rows.append([work, *cells, "-" if np.isnan(ratio) else f"{ratio:.1f}"])
    return rows


def best_peer(results: list[Result], work: str) -> float:
    """The time of the fastest peer relative to our first solver; NaN if no peer reached the gap."""
    lines = [result for result in results if result.work == work]
    ours = lines[0]
    peers = [r.seconds for r in lines if r.solver not in OURS and not r.solver.startswith(ours.solver)]
    peers = [seconds for seconds in peers if not np.isnan(seconds)]
    return min(peers) / ours.seconds if peers else float("nan")


#: Solvers of this library besides the first line of a task: published algorithms, for comparison.
OURS = ("irls",)
