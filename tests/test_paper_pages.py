"""The machinery of the paper scripts: cells are computed once, tables go into the pages, and no item is left out."""

from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "papers"
STATES = ("repeated", "not repeated (numbers)", "no data")


@pytest.fixture
def papers(monkeypatch):
    """A function that imports a module of the paper scripts."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "papers")
    return importlib.import_module


def options(cache, **changes):
    values = {"cache": cache, "quick": False, "fresh": False, "jobs": 1, "cell_seconds": 0.0}
    return argparse.Namespace(**{**values, **changes})


CALLS: list[int] = []


def square(number):
    CALLS.append(number)
    return {"square": number**2}


def test_cells_are_computed_once_and_kept(papers, tmp_path):
    computed = papers("cells").computed
    arguments = [{"number": number} for number in (2, 3)]
    CALLS.clear()
    assert computed(square, arguments[:1], options(tmp_path)) == [{"square": 4}]
    assert computed(square, arguments, options(tmp_path)) == [{"square": 4}, {"square": 9}]
    assert CALLS == [2, 3]
    next(tmp_path.rglob("square-*.json")).write_text('{"result": {"squ')  # cut off by an interruption
    assert computed(square, arguments, options(tmp_path)) == [{"square": 4}, {"square": 9}]
    assert len(CALLS) == 3
    assert computed(square, arguments, options(tmp_path, fresh=True)) == [{"square": 4}, {"square": 9}]
    assert len(CALLS) == 5
    more = [*arguments, {"number": 4}]  # with kept=True a missing cell is not computed
    assert computed(square, more, options(tmp_path, kept=True)) == [{"square": 4}, {"square": 9}, None]
    assert len(CALLS) == 5
    computed(square, arguments, options(tmp_path / "none", quick=True))
    assert not (tmp_path / "none").exists()  # a quick run keeps nothing
    assert computed(square, arguments, options(tmp_path / "two", jobs=2)) == [{"square": 4}, {"square": 9}]


def test_tables_replace_what_is_between_the_markers(papers, tmp_path):
    reporting = papers("reporting")
    page = tmp_path / "page.md"
    names = ("run", "protocol", "differences from the paper", "Table 1")
    page.write_text("# Title\n" + "".join(f"<!-- begin {name} -->\nold\n<!-- end -->\ntext\n" for name in names))
    content = {"CPU seconds": 90.0, "date": "2026-01-01", "python": "3.11", "protocol": ["a"], "parts": ["all"]}
    content |= {"differences from the paper": ["b"], "tables": {"Table 1": {"header": ["x"], "rows": [[1.5]]}}}
    for _ in range(2):  # the second time changes nothing
        reporting.write_page(page, content)
        text = page.read_text()
        assert "old" not in text and text.count("text") == len(names)
        assert "| 1.50 |" in text and "1.5 CPU minutes" in text and "\n- a\n" in text
    with pytest.raises(SystemExit, match="no marker"):
        reporting.write_page(page, content | {"tables": {"Table 2": {"header": [], "rows": []}}})


def test_quick_tables_are_labelled_as_made_data(papers, capsys):
    reporting = papers("reporting")
    report = reporting.Report("A paper", ["p"], ["d"], quick=True)
    report.add("Table 1", ["x"], [[1.0]])
    assert reporting.QUICK in next(iter(report.content["tables"]))
    assert capsys.readouterr().out.count(reporting.QUICK) == 2
    assert reporting.compared(2.0, 1.5, 0.1) == [2.0, 1.5, -0.5, 0.1]
    assert reporting.compared(None, 1.5) == [None, 1.5, None, None]
    assert reporting.standard_error([1.0, 3.0]) == pytest.approx(1.0)
    assert reporting.standard_error([1.0]) is None


def test_the_overview_lists_every_table_and_figure(papers):
    items = papers("reported").ITEMS
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in (PAGES / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    listed = {(re.sub(r"\[(.*?)\]\(.*?\)", r"\1", row[0]), row[1]): row[3] for row in rows if len(row) == 4}
    wanted = {(paper, item) for paper, found in items.items() for item in found}
    assert wanted <= set(listed)
    for key in wanted:
        assert listed[key].startswith(STATES), key


def test_reported_tables_have_a_value_in_every_cell(papers):
    reported = papers("reported")
    for name, table in vars(reported).items():
        if "_TABLE_" in name and isinstance(table, dict):
            rows = [row for part in table.values() for row in (part.values() if isinstance(part, dict) else [part])]
            assert len({len(row) for row in rows}) == 1, name
    assert {len(row) for row in reported.SKIANIS_TABLE_2.values()} == {len(reported.SKIANIS_MODELS)}
    assert {len(row) for row in reported.YOGATAMA_TABLE_2_SIZES.values()} == {len(reported.YOGATAMA_MODELS)}
    assert set(reported.YOGATAMA_TABLE_1) == set(reported.YOGATAMA_TABLE_2) == set(reported.YOGATAMA_TABLE_2_SIZES)
