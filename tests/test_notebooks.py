"""The notebooks run, their solutions run after them, and each has what a class needs.

All cells of a notebook and of its solutions run in one namespace, as in Jupyter. The site executes the notebooks again,
each in a kernel of its own.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("[0-9]*.md"))
CELL = re.compile(r"^```\{code-cell\}\n(?P<options>---\n.*?^---\n|(?::\w+:[^\n]*\n)*)(?P<code>.*?)^```$", re.S | re.M)
#: The most lines of NumPy that a student writes in one notebook.
STUDENT_LINES = 30


def cells(path):
    """(options, code) of each cell."""
    return [(found["options"], found["code"]) for found in CELL.finditer(path.read_text(encoding="utf-8"))]


def run(path, names):
    for number, (_, code) in enumerate(cells(path)):
        exec(compile(code, f"{path.name}, cell {number}", "exec"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_and_solutions(path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    names = {"__name__": "notebook"}
    try:
        run(path, names)
        assert plt.get_fignums(), "the notebook draws nothing"
        run(FOLDER / "solutions" / path.name, names)
    finally:
        plt.close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_has_what_a_class_needs(path):
    text = path.read_text(encoding="utf-8")
    solutions = (FOLDER / "solutions" / path.name).read_text(encoding="utf-8")
    assert "**Question.**" in text and "You need: " in text
    for word in ("Compute", "Code", "Break it"):
        assert f"**{word}.**" in text.split("## Exercises")[1]
        assert "assert" in solutions.split(f"## {word}")[1].split("\n## ")[0], f"the solution of {word!r} is not tested"
    code = "\n".join(code for _, code in cells(path))
    assert "cp.Problem(" in code and "csr.certify(" in code
    drawn = [code for _, code in cells(path) if "plt.subplots" in code]
    three = (r"\byours?\b", r"\bours?\b", r"cvxpy")
    assert any(all(re.search(word, code, re.IGNORECASE) for word in three) for code in drawn), "no plot of all three"
    student = "".join(code for options, code in cells(path) if "student" in options)
    lines = [line for line in student.splitlines() if line.strip()]
    assert 4 <= len(lines) <= STUDENT_LINES
    for options, code in cells(path):
        assert "plt.subplots" not in code or "def " in code or "alt: " in options, f"a figure has no text: {code[:80]}"


def without(package, monkeypatch):
    """Make a package look as if it were not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_cell_installs_the_library_or_names_the_extra(path, monkeypatch):
    first = cells(path)[0][1]
    calls = []
    monkeypatch.setattr(subprocess, "check_call", calls.append)
    exec(first, {})
    assert calls == []  # everything is installed here
    with monkeypatch.context() as patch:
        without("cvxstructreg", patch)
        exec(first, {})
    assert calls[0][1:4] == ["-m", "pip", "install"] and calls[0][-1].startswith("cvxstructreg[")
    with monkeypatch.context() as patch:
        without("matplotlib", patch)
        with pytest.raises(ImportError, match=r'pip install "cvxstructreg\[plots\]"'):
            exec(first, {})
