"""The Python blocks of the pages of the site run one after the other, and print what the page says they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ["index", "extending/one_line", "tour", "choose", "certificates_from_scratch", "verify", "cvxpy_problems"]
PAGES += [f"worked/{name}" for name in ("text", "documents", "genes", "survival", "images", "denoising")]
PAGES += sorted(f"methods/{path.stem}" for path in (DOCS / "methods").glob("*.md") if path.stem != "index")
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n+```text\n(?P<output>.*?)^```$)?", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_runs_and_prints_what_it_says(name, capsys):
    names = {"__name__": "page"}
    blocks = list(BLOCK.finditer((DOCS / f"{name}.md").read_text(encoding="utf-8")))
    assert blocks
    for block in blocks:
        exec(compile(block["code"], f"{name}.md", "exec"), names)
        out = capsys.readouterr().out
        if block["output"] is not None:
            assert out == block["output"], block["code"]


def test_the_page_of_every_method_names_its_equations_and_its_estimator():
    pages = [path for path in (DOCS / "methods").glob("*.md") if path.stem != "index"]
    assert len(pages) == 5
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.search(r"\([1-9]\d?\)|Lemma", text), f"{page.name} names no equation of its paper"
        assert "## Conventions" in text and "csr.certify" in text + (DOCS / "tour.md").read_text(encoding="utf-8")
