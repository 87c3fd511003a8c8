"""The Python blocks of docs/larger_than_memory.md run, and print what the page says they print."""

from __future__ import annotations

import re
from pathlib import Path

from cvxstructreg.solvers import registry

PAGE = Path(__file__).parent.parent / "docs" / "larger_than_memory.md"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$\n+```text\n(?P<output>.*?)^```$", re.DOTALL | re.MULTILINE)
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_runs_and_prints_what_it_says(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blocks = list(BLOCK.finditer(TEXT))
    assert blocks
    for block in blocks:
        exec(compile(block["code"], str(PAGE), "exec"), {"__name__": "page"})
        assert capsys.readouterr().out == block["output"]


def test_the_page_names_all_solvers_for_blocks():
    assert [s.name for s in registry.solvers() if s.by_passes and f"`{s.name}`" not in TEXT] == []
