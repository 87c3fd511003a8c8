"""The tables of the pages on speed come from records: none is typed, and each says when it was measured."""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import contest_table  # noqa: E402
import records  # noqa: E402
import summary  # noqa: E402
from measure import Result  # noqa: E402

STORED = records.load()
RESULTS = [
    Result("lasso", "text", "working_set", 0.5, 2.0, 1e-7, "1 x"),
    Result("lasso", "text", "peer", np.nan, np.nan, np.nan),
]


@pytest.mark.parametrize("page", records.PAGES, ids=lambda page: page.name)
def test_pages_show_their_records(page):
    text = page.read_text(encoding="utf-8")
    assert text == records.filled(text, STORED), f"run: python benchmarks/records.py ({page.name} is not up to date)"


def test_no_table_of_the_page_is_typed():
    text = records.PAGES[0].read_text(encoding="utf-8")
    outside = records.BLOCK.sub("", text)
    assert not [line for line in outside.splitlines() if line.startswith("|")]
    speed = records.PAGES[1].read_text(encoding="utf-8").partition("## How fast")[2].partition("\n## ")[0]
    assert not [line for line in records.BLOCK.sub("", speed).splitlines() if line.startswith("|")]


def test_every_record_is_shown_and_has_a_date():
    shown = set(re.findall(records.BLOCK, records.PAGES[0].read_text(encoding="utf-8")))
    assert shown == set(STORED)
    for record in STORED.values():
        assert date.fromisoformat(record["date"]) and ("rows" in record) != ("results" in record)


def test_the_summary_has_at_most_eight_rows_and_follows_the_records():
    lines = summary.table(STORED).splitlines()
    assert 2 < len(lines) <= 10
    slower = {**STORED["network"], "results": [dict(entry) for entry in STORED["network"]["results"]]}
    for entry in slower["results"]:
        entry["seconds"] *= 10.0 if entry["solver"] == "newton" else 1.0
    changed = summary.table({**STORED, "network": slower}).splitlines()
    assert [a == b for a, b in zip(lines, changed, strict=True)] == [i != 2 for i in range(len(lines))]


def test_a_new_record_says_how_it_was_measured(tmp_path):
    records.store("lasso", RESULTS, tmp_path)
    record = records.load(tmp_path)["lasso"]
    found = records.results_of(record)
    assert found[0] == RESULTS[0] and np.isnan(found[1].seconds)
    text = records.rendered(record, record["date"])
    for word in ("`python benchmarks/run.py lasso --markdown`", record["date"], "one thread", "numpy "):
        assert word in text
    assert "| text | working_set | 0.5 | 1.00 | 1e-07 | 2 | 1 x |" in text and "|  | peer | - | - | - | - |  |" in text
    assert "earlier run" not in text and "earlier run" in records.rendered(record, "9999-01-01")


def test_tables_from_before_the_records_are_labelled():
    record = {"date": "2026-11-16", "origin": "one run", "columns": ["task", "ours"], "rows": [["a", "1 s"]]}
    assert records.rendered(record, "2026-11-16").startswith("*Earlier run, 2026-11-16: one run.*")


def test_a_block_without_record_is_an_error():
    with pytest.raises(KeyError, match=r"run.py magic --markdown"):
        records.filled("<!-- benchmark magic: first line -->\n<!-- benchmark magic: last line -->", STORED)


def test_a_bar_within_a_cell_does_not_end_it():
    record = {"date": "2026-11-16", "origin": "one run", "columns": ["task"], "rows": [["sum |w|"]]}
    assert records.rendered(record, "2026-11-16").splitlines()[-1] == r"| sum \|w\| |"


def test_a_contest_at_equal_gaps_has_one_row_for_each_task():
    lines = [
        Result("lasso", "text, gap 1e-06", "working_set", 0.5, 2.0, 1e-7, "<= best peer"),
        Result("lasso", "text, gap 1e-06", "working_set, from rows", 0.6, 2.0, 1e-7),
        Result("lasso", "text, gap 1e-06", "irls", 0.1, 2.0, 1e-7),
        Result("lasso", "text, gap 1e-06", "skglm", 1.5, 2.0, 1e-7),
        Result("lasso", "text, gap 1e-06", "saga", np.nan, np.nan, np.nan, "not reached"),
        Result("lasso", "other, gap 1e-06", "working_set", 0.5, 2.0, 1e-7),
    ]
    assert contest_table.applies(lines) and not contest_table.applies(RESULTS)
    head, *rows = contest_table.table(lines)
    assert head[-1] == "best peer / working_set (target: <= best peer)"
    assert rows[0] == ["text, gap 1e-06", "0.5", "0.6", "0.1", "1.5", "-", "3.0"]  # neither of ours is a peer
    assert rows[1] == ["other, gap 1e-06", "0.5", "-", "-", "-", "-", "-"]


def test_speedups_leave_out_peers_that_are_not_accurate_enough():
    lines = [
        ("ours", 0.5, 1e-7),
        ("cvxpy SCS", 1.0, 1e-3),  # faster, but far from the optimum
        ("cvxpy CLARABEL", 2.0, 1e-9),
        ("other", 0.1, 1e-9),
    ]
    record = {
        "results": [
            {"section": "s", "work": "w", "solver": name, "seconds": seconds, "cold": None, "gap": gap}
            for name, seconds, gap in lines
        ]
    }
    assert summary.speedups(record, "cvxpy") == [4.0] and summary.speedups(record, "absent") == []
