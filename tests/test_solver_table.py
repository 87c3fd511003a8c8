"""The page on solvers is generated from their declarations, and is up to date."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import cvxstructreg as csr
from cvxstructreg import losses
from cvxstructreg import penalties as all_penalties

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("solver_table", DOCS / "solver_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written_page() -> str:
    return (DOCS / "solvers.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date(table):
    assert written_page().split(table.CERTIFIED)[0] == table.page(), "run: python docs/solver_table.py"


def test_the_page_changes_with_the_solvers(table):
    def stay(problem, start, tol):
        yield start

    with csr.solvers.register(csr.solvers.Solver("stay", stay)):
        assert "`stay`" in table.page()
    assert "`stay`" not in table.page()


def test_every_loss_and_penalty_is_in_the_table(table):
    assert set(table.LOSSES) == set(losses.__all__)
    rows = " ".join([*table.LINEAR, *table.PAIRS, *table.KERNEL, *table.KERNEL_PAIRS])
    assert set(all_penalties.__all__) <= set(re.findall(r"\w+", rows))


def certified_cells(table) -> dict[tuple[str, str], str]:
    """The cells of the certified tables, by penalty and loss; those of kernel models are marked."""
    cells, model = {}, ""
    for line in written_page().split(table.CERTIFIED)[1].splitlines():
        model = line.strip("# ") if line.startswith("### ") else model
        row = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and row[0] != "penalty":
            cells |= {(f"{model}: {row[0]}", loss): cell for loss, cell in zip(table.LOSSES, row[1:], strict=True)}
    return cells


def test_every_loss_with_every_penalty_has_a_fast_solver_and_a_duality_gap(table):
    cells = certified_cells(table)
    expected = {
        (f"{title}, certified: {penalty}", loss)
        for title, (_, penalties) in table.MODELS.items()
        for penalty in penalties
        for loss in table.LOSSES
    }
    assert set(cells) == expected
    for place, cell in cells.items():
        solver, kind = re.fullmatch(r"`(\w+)` (.+)", cell).groups()
        assert solver in csr.solvers.names() and solver != "cvxpy", place
        assert kind == "gap", place


def solve_again(table, step: int) -> None:
    """Solve every cell, or (step > 1) each loss with some penalties and each penalty with some losses."""
    for model, penalties in table.MODELS.values():
        for row, penalty in enumerate(penalties.values()):
            for column, loss in enumerate(table.LOSSES):
                if (row + column) % step == 0:
                    assert table.certified(table.problem(model, loss, penalty)).endswith(" gap")


def test_problems_of_the_table_are_proved(table):
    solve_again(table, len(table.LOSSES))


@pytest.mark.slow
def test_all_problems_of_the_table_are_proved(table):
    solve_again(table, 1)


def test_every_penalty_names_its_source():
    kinds = [getattr(all_penalties, name) for name in all_penalties.__all__]
    for kind in filter(inspect.isclass, kinds):
        text = f"{inspect.getdoc(kind)}\n{inspect.getmodule(kind).__doc__}"
        assert re.search(r"\b(19|20)\d\d\b", text), kind
