"""The pages for users and contributors name only files and modules that exist."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import cvxstructreg as csr

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
#: Where a path in a page may start, besides at the folder of the page.
BASES = (ROOT, ROOT / "cvxstructreg", ROOT / "examples" / "papers")
#: How a page tells its readers to write a file.
WRITTEN_BY_READERS = re.compile(r"Save it as `([^`]+)`")


def exists(page: Path, name: str) -> bool:
    return any((base / name).exists() for base in (page.parent, *BASES))


def is_importable(name: str) -> bool:
    """Whether the dotted name is a module, or an attribute of one."""
    parent, _, last = name.rpartition(".")
    return find_spec(name) is not None or hasattr(import_module(parent), last)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_module_of_the_page_exists(page):
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"(?<![\w/.*])(?:[\w]+/)*\w+\.(?:py|md)\b", text) + re.findall(r"`((?:\w+/)+)`", text)
    written = WRITTEN_BY_READERS.findall(text)
    assert [name for name in files if not exists(page, name) and name not in written] == []
    modules = re.findall(r"\bcvxstructreg(?:\.[a-z_0-9]+)+", text)
    assert [name for name in modules if not is_importable(name)] == []


def test_the_design_names_every_room():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    package = ROOT / "cvxstructreg"
    folders = [*package.iterdir(), *(package / "solvers").iterdir()]
    rooms = [folder.relative_to(package) for folder in folders if (folder / "__init__.py").exists()]
    assert len(rooms) > 20
    assert [str(room) for room in rooms if f"| `{room}` |" not in text] == []


def test_the_solve_of_the_design_page_goes_as_described():
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    code = text.split("## From X, y to Solution")[1].split("```python\n")[1].split("```")[0]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10))
    names = {"csr": csr, "X": X, "y": X[:, 0] + rng.normal(size=60) > 0}
    exec(compile(code, "design.md", "exec"), names)
    problem, solution = names["problem"], names["solution"]
    parts = problem.normal_form
    assert len(parts.score_pieces) == 1 and parts.separable is not None and not parts.weight_pieces
    assert "gradient" in csr.solvers.refusals(problem)["newton"]
    assert (solution.solver, solution.status) == ("working_set", "optimal")
    assert solution.history and solution.dual.keys() == {0}
