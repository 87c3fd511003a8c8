"""The Python blocks of docs/estimators.md run one after the other, and print what the page says they print."""

from __future__ import annotations

import re
from pathlib import Path

import cvxstructreg as csr
from cvxstructreg import conventions, estimators

PAGE = Path(__file__).parent.parent / "docs" / "estimators.md"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n+```text\n(?P<output>.*?)^```$)?", re.DOTALL | re.MULTILINE)
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_runs_and_prints_what_it_says(capsys):
    names = {"__name__": "estimators_page"}
    printed = []
    for block in BLOCK.finditer(TEXT):
        exec(compile(block["code"], str(PAGE), "exec"), names)
        out = capsys.readouterr().out
        if block["output"] is not None:
            assert out == block["output"], block["code"]
            printed.append(block["output"])
    assert len(printed) >= 8


def test_every_estimator_and_converter_is_on_the_page():
    assert [name for name in estimators.__all__ if f"`{name}`" not in TEXT] == []
    assert [name for name in conventions.__all__ if name.startswith("from_") and f"`{name}(" not in TEXT] == []


def test_links_and_images_of_the_pages_exist():
    for page in [PAGE.parent.parent / "README.md", *PAGE.parent.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_named_attributes_exist():
    model = csr.GroupLassoClassifier([[0], [1]]).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.5, 3.0]], [0, 1, 1, 0])
    for name in re.findall(r"`([a-z_]+_)`", TEXT.split("## Reading the results")[1].split("\n\n")[1]):
        assert hasattr(model, name) or name in ("dual_coef_", "graph_"), name
