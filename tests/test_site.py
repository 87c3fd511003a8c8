"""The site's own tools, without building it: what the check of the built pages finds, and the escapes of docstrings."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples" / "notebooks").rglob("*.md")]


@pytest.fixture(scope="module")
def findings():
    check = runpy.run_path(str(DOCS / "check_site.py"))
    check["findings"].__globals__["missing_names"] = lambda root: ()  # needs Sphinx
    return lambda root: list(check["findings"](root))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('<h1 id="top">A</h1><a href="#top">up</a><a href="b.html#x">b</a><img src="i.png" alt="two moons">', ""),
        ('<a href="missing.html">x</a>', "the link missing.html leads nowhere"),
        ('<a href="b.html#y">x</a>', "b.html#y has no such section"),
        ('<img src="i.png">', "the image i.png has no text"),
        ('<img src="i.png" alt="_.png">', "the image i.png has no text"),
        ('<script src="https://cdn.example.org/a.js"></script>', "is loaded from elsewhere"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "is loaded from elsewhere"),
        ('<div class="output stderr">a warning</div>', "a cell printed to stderr"),
        ('<a href="https://example.org">other sites are not looked at</a>', ""),
    ],
)
def test_the_check_finds_what_is_wrong(findings, tmp_path, body, found):
    (tmp_path / "a.html").write_text(body)
    (tmp_path / "b.html").write_text('<p id="x">b</p>')
    assert [found in line for line in findings(tmp_path)] == ([True] if found else [])


def test_the_check_knows_the_attributes_of_a_docstring():
    attributes_of = runpy.run_path(str(DOCS / "check_site.py"))["attributes_of"]
    docstring = (
        "F.\n\nAttributes\n----------\na_, b_\n    Two.\nc_ : int\n    One.\n\nExamples\n--------\n>>> d_ : int\n"
    )
    assert list(attributes_of(docstring)) == ["a_, b_", "c_"]
    assert list(attributes_of("No attributes.")) == []


def test_formulas_of_docstrings_are_escaped_outside_code():
    plain = runpy.run_path(str(DOCS / "_ext" / "plain_docstrings.py"))["plain"]
    lines = [
        "lam |w|_1 with ``|w|`` and :class:`A_b_`, w_(j-1).",
        "The *direct* norm, a*b*c and 2 * b * c.",
        "",
        ">>> a = |b|",
        "|c|",
        "",
        "Parameters",
        "----------",
        "alpha_ : |x|",
        "    |x|",
    ]
    process = runpy.run_path(str(DOCS / "_ext" / "plain_docstrings.py"))["process"]
    for what, first in (("function", "The error: a number."), ("property", ": The error: a number.")):
        changed = ["The error: a number."]
        process(None, what, "name", None, None, changed)
        assert changed == [first]  # napoleon would take "The error" for the type of a property
    assert plain(lines) == [
        r"lam \|w\|_1 with ``|w|`` and :class:`A_b_`, w\_(j-1).",
        r"The *direct* norm, a\*b\*c and 2 \* b \* c.",
        *lines[2:9],
        r"    \|x\|",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_images_have_a_text(page):
    for text in re.findall(r"!\[([^]]*)\]\(", page.read_text(encoding="utf-8")):
        assert len(text.split()) >= 3, f"{page.name}: an image has the text {text!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_formulas_in_tables_have_no_bar(page):
    """A bar ends the cell, and an escaped bar is no norm: write \\lvert, \\rvert, \\lVert and \\rVert."""
    for row in re.findall(r"^\|.*\|$", page.read_text(encoding="utf-8"), re.MULTILINE):
        outside_code = re.sub(r"`[^`]*`", "", row)
        assert not [found for found in re.findall(r"\$[^$]+\$", outside_code) if "|" in found], row


def test_readme_has_the_command_that_builds_the_site():
    command = re.search(r"<!-- site command -->\n```bash\n(.*)\n```", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert command is not None
    assert "[docs]" in command[1] and "sphinx-build -W" in command[1]
    assert command[1] in (DOCS / "install.md").read_text(encoding="utf-8")
