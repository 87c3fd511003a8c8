"""The page on solvers is generated from their declarations, and is up to date."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import cvxstructreg as csr
from cvxstructreg import losses, penalties

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def table():
    spec = importlib.util.spec_from_file_location("solver_table", DOCS / "solver_table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(table):
    written = (DOCS / "solvers.md").read_text(encoding="utf-8")
    assert written == table.page(), "run: python docs/solver_table.py"


def test_the_page_changes_with_the_solvers(table):
    def stay(problem, start, tol):
        yield start

    with csr.solvers.register(csr.solvers.Solver("stay", stay)):
        assert "`stay`" in table.page()
    assert "`stay`" not in table.page()


def test_every_loss_and_penalty_is_in_the_table(table):
    assert set(table.LOSSES) == set(losses.__all__)
    rows = " ".join([*table.LINEAR, *table.PAIRS, *table.KERNEL, *table.KERNEL_PAIRS])
    assert set(penalties.__all__) <= set(re.findall(r"\w+", rows))


def test_every_problem_of_the_table_goes_to_a_solver_that_solves_it(table):
    for model, rows in ((csr.Linear(table.X), table.LINEAR), (csr.Kernel(table.GRAM, psd=True), table.KERNEL)):
        for name, penalty in rows.items():
            problem = csr.Problem(model, table.LOSSES["Logistic"]() + penalty())
            assert problem.solve(tol=1e-4).status == "optimal", name
