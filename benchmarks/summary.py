"""The table of README.md: a few rows, each computed from one or more records."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import contest_table
import records as stored
from measure import Result

Records = Mapping[str, stored.Record]

#: Peers with a larger gap were not accurate enough to be compared.
ACCURACY = 1e-6


def table(records: Records) -> str:
    """The rows whose records exist, with the date of the oldest of them."""
    lines = ["| task | against | measured | run |", "| --- | --- | --- | --- |"]
    for task, against, names, measured in ROWS:
        day = min(records[name]["date"] for name in names)
        lines.append(f"| {task} | {against} | {measured(*(records[name] for name in names))} | {day} |")
    return "\n".join(lines)


def cell(record: stored.Record, row: str, column: str) -> str:
    """The cell of an earlier table, by the beginning of its row and the name of its column."""
    number = record["columns"].index(column)
    found = [cells[number] for cells in record["rows"] if cells[0].startswith(row)]
    if not found:
        raise KeyError(f"no row {row!r} in the table with the columns {record['columns']}")
    return str(found[0])


def numbers(text: str) -> list[float]:
    """The numbers of a cell."""
    return [float(word.replace(",", "")) for word in re.findall(r"\d[\d,]*\.?\d*", text)]


def slowdown(record: stored.Record, task: str, peer: str) -> float:
    """Our time divided by that of a peer, for a task of a measured record."""
    seconds = {r.solver: r.seconds for r in stored.results_of(record) if r.work == task}
    return next(iter(seconds.values())) / seconds[peer]


def speedups(record: stored.Record, peer: str) -> list[float]:
    """For each task, the time of the fastest accurate peer whose name begins like this, divided by ours."""
    found: dict[str, list[Result]] = {}
    for result in stored.results_of(record):
        found.setdefault(result.work, []).append(result)
    ratios = []
    for ours, *others in found.values():
        accurate = [r.seconds for r in others if r.solver.startswith(peer) and abs(r.gap) <= ACCURACY]
        if accurate:
            ratios.append(min(accurate) / ours.seconds)
    return ratios


def _network(record: stored.Record) -> str:
    tasks = [f"med/space, presence, alpha/beta = {ratio}" for ratio in ("10", "1,000", "10,000")]
    return " / ".join(f"{slowdown(record, task, 'sklearn ridge lbfgs'):.1f}" for task in tasks) + " x its time"


def _contest(record: stored.Record) -> str:
    """A task in which a peer is faster is not hidden."""
    results = stored.results_of(record)
    works = dict.fromkeys(r.work for r in results if r.work.endswith("gap 1e-06"))
    ratios = [contest_table.best_peer(results, work) for work in works]
    ratios = [ratio for ratio in ratios if ratio == ratio]
    slower = sum(ratio < 1.0 for ratio in ratios)
    words = f"{min(ratios):.2g} to {max(ratios):.2g} x faster"
    return f"{words} (slower in {slower} of {len(ratios)} tasks)" if slower else words


def _sentences(record: stored.Record) -> str:
    return cell(record, "sci.med / sci.space, 23,131 sentences", "ours")


def _clarabel(net: stored.Record, network: stored.Record, groups: stored.Record) -> str:
    column = "the paper's algorithm (`irls`)"
    sparse = [numbers(cell(net, "1,000 x 2,000, 2 % sparse", column))[0]]
    sparse += [numbers(cell(network, "1,000 x 2,000, 2 % sparse", "measured"))[0]]
    sparse += [min(speedups(groups, "cvxpy CLARABEL"))]
    dense = [numbers(cell(net, "1,000 x 2,000 dense", column))[0]]
    dense += [numbers(cell(network, "1,000 x 2,000 dense", "measured"))[0]]
    faster, full = (" / ".join(f"{x:.0f}" for x in values) for values in (sparse, dense))
    return f"{faster} x faster (dense data: {full} x)"


def _kernel(row: str, which: int, target: int) -> Callable[[stored.Record], str]:
    """The first number of the which-th row from the given one on, beside its target."""

    def measured(record: stored.Record) -> str:
        first = next(i for i, cells in enumerate(record["rows"]) if cells[0].startswith(row))
        ratio = numbers(record["rows"][first + which][-1])[0]
        return f"{ratio:g} x faster" + (f" (target {target} x: missed)" if ratio < target else "")

    return measured


def _manifold(record: stored.Record, target: int = 60) -> str:
    ratio = speedups(record, "cvxpy")[0]
    return f"{ratio:.0f} x faster" + (f" (target {target} x: missed)" if ratio < target else "")


def _path(record: stored.Record) -> str:
    single, path = stored.results_of(record)
    ratio = path.seconds / single.seconds
    return f"{ratio:.0f} x its time" + (" (target 5 x: missed)" if ratio > 5 else "")


#: Task, peer, names of the records, and the function of these records that gives the measured figure.
ROWS: tuple[tuple[str, str, tuple[str, ...], Callable[..., Any]], ...] = (
    ("feature network, alpha/beta = 10 / 1,000 / 10,000", "plain ridge of scikit-learn", ("network",), _network),
    ("lasso on text, dense and sparse data", "the best of skglm, celer, liblinear", ("lasso",), _contest),
    ("Laplacian elastic net", "glum", ("elastic_net",), _contest),
    ("sentence group lasso, 23,131 sentences", "", ("earlier_groups",), _sentences),
    (
        "elastic net, feature network, groups",
        "CVXPY with Clarabel",
        ("earlier_elastic_net", "earlier_network", "group_cvxpy"),
        _clarabel,
    ),
    (
        "multiclass SVM with 320 dissimilar pairs",
        "CVXPY, best form",
        ("earlier_kernels",),
        _kernel("k = 10, 50", 1, 200),
    ),
    ("manifold hinge, n = 550", "CVXPY, best form", ("manifold_hinge",), _manifold),
    ("path of 50 sentence models", "its hardest fit", ("path_sentences",), _path),
)
