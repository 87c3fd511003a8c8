"""The report: a table by class, the violations with their scripts, and the CPU times of the problems."""

from __future__ import annotations

import html
from collections import Counter, defaultdict
from typing import Any

Record = dict[str, Any]
COLUMNS = ("tried", "optimal", "honest non-optimal", "refused", "violations")

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { padding: .15em .8em; border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
td { text-align: right; font-variant-numeric: tabular-nums; } td:first-child, th:first-child { text-align: left; }
pre { overflow-x: auto; padding: .8em; background: color-mix(in srgb, currentColor 8%, transparent); }
.bar { display: inline-block; height: .8em; background: currentColor; opacity: .55; }
.bad { font-weight: bold; }
"""


def tally(records: dict[int, Record]) -> dict[str, Counter[str]]:
    """Count, for each class (all, loss x model, penalty), the problems and their results.

    Examples
    --------
    >>> record = {"class": ["Hinge", "linear", ["L1"]], "status": "optimal", "violations": []}
    >>> tally({0: record})["Hinge, linear"]["optimal"]
    1
    """
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records.values():
        loss, model, penalties = record["class"]
        names = ["all problems", f"{loss}, {model}", *[f"with {name}" for name in penalties or ["no penalty"]]]
        became = record["status"] if record["status"] in ("optimal", "refused") else "honest non-optimal"
        for name in names:
            table[name]["tried"] += 1
            table[name]["violations" if record["violations"] else became] += 1
    return dict(
        sorted(table.items(), key=lambda item: (item[0] != "all problems", item[0].startswith("with"), item[0]))
    )


def as_html(records: dict[int, Record], title: str) -> str:
    """Return the report as an HTML page."""
    bad = {number: record for number, record in sorted(records.items()) if record["violations"]}
    verdict = (
        f"{len(bad)} of {len(records)} problems with violations" if bad else f"{len(records)} problems, no violation"
    )
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style>",
        f"<h1>{html.escape(title)}</h1><p class={'bad' if bad else 'good'}>{verdict}.</p>",
        _class_table(records),
        _kind_table(bad),
        _histogram(records),
        *(_violation(number, record) for number, record in bad.items()),
        "</html>",
    ]
    return "\n".join(parts)


def as_text(records: dict[int, Record]) -> str:
    """Return the table by class as plain text."""
    table = tally(records)
    width = max(map(len, table), default=0)
    lines = [" " * width + "".join(f"  {column:>18}" for column in COLUMNS)]
    lines += [f"{name:<{width}}" + "".join(f"  {row[column]:>18}" for column in COLUMNS) for name, row in table.items()]
    return "\n".join(lines)


def _class_table(records: dict[int, Record]) -> str:
    head = "".join(f"<th>{column}" for column in ("class", *COLUMNS))
    rows = "".join(
        f"<tr><td>{html.escape(name)}" + "".join(f"<td>{row[column]}" for column in COLUMNS)
        for name, row in tally(records).items()
    )
    return f"<h2>By class</h2><table><tr>{head}{rows}</table>"


def _kind_table(bad: dict[int, Record]) -> str:
    if not bad:
        return ""
    kinds = Counter((entry["kind"], entry["where"]) for record in bad.values() for entry in record["violations"])
    rows = "".join(
        f"<tr><td>{html.escape(kind)}<td>{html.escape(where)}<td>{count}"
        for (kind, where), count in kinds.most_common()
    )
    return f"<h2>Violations by kind</h2><table><tr><th>kind<th>where<th>count{rows}</table>"


def _histogram(records: dict[int, Record]) -> str:
    """Return a histogram of the CPU seconds per problem, in powers of two."""
    limits = [2.0**exponent for exponent in range(-6, 6)]
    counts = Counter(sum(record["seconds"] > limit for limit in limits) for record in records.values())
    largest = max(counts.values(), default=1)
    rows = ""
    for number in range(len(limits) + 1):
        if counts[number]:
            limit = f"{'up to' if number < len(limits) else 'over'} {limits[min(number, len(limits) - 1)]:.3g} s"
            bar = f"<span class=bar style='width:{20 * counts[number] / largest:.2f}em'></span>"
            rows += f"<tr><td>{limit}<td>{counts[number]}<td style='text-align:left'>{bar}"
    return f"<h2>CPU time per problem</h2><table>{rows}</table>"


def _violation(number: int, record: Record) -> str:
    loss, model, penalties = record["class"]
    title = f"Problem {number}: {loss}, {model}, {', '.join(penalties) or 'no penalty'}"
    parts = [f"<h2>{html.escape(title)}</h2>"]
    for entry in record["violations"]:
        parts.append(f"<p><b>{entry['kind']}</b> ({html.escape(entry['where'])}): {html.escape(entry['message'])}</p>")
        if "script" in entry:
            parts.append(f"<pre>{html.escape(entry['script'])}</pre>")
    return "\n".join(parts)
