"""Tables of losses and penalties, from the atoms themselves: formula, convention and the solvers that accept them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from public_names import write

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom
from cvxstructreg.solvers import registry

N = 12


def cell(text: str) -> str:
    """Text inside a cell of a Markdown table."""
    return text.replace("|", "\\|")


def rows_of(room: str) -> list[str]:
    """One row for each atom of a room: its name, formula and convention."""
    module = import_module(f"cvxstructreg.{room}")
    page = "penalties" if room == "penalties" else "losses"
    rows = [f"| {page} | formula | conventions |", "|---|---|---|"]
    for name in sorted(module.__all__):
        atom = getattr(module, name)
        if isinstance(atom, type) and issubclass(atom, Atom) and hasattr(csr, name):
            link = f"{{py:obj}}`{name} <cvxstructreg.{name}>`"
            rows.append(f"| {link} | `{cell(atom.formula)}` | {cell(atom.convention)} |")
    return rows


def speed_rows() -> list[str]:
    """One row for each kind of problem, with the solver that ``auto`` takes and all others that accept it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    y, classes = np.arange(N) % 2, np.arange(N) % 3
    chain = csr.Graph.from_edges([(0, 1), (1, 2), (2, 3)], n_nodes=4)
    disjoint, overlapping = csr.Groups([[0, 1], [2, 3]], n_features=4), csr.Groups([[0, 1, 2], [2, 3]], n_features=4)
    linear, kernel = csr.Linear(X), csr.Kernel(X @ X.T + np.eye(N))
    problems: dict[str, Any] = {
        "smooth loss, ridge or graph": (linear, csr.Logistic(y) + csr.Laplacian(chain) + csr.Ridge()),
        "smooth loss, L1, perhaps with a graph or bounds": (linear, csr.Logistic(y) + csr.L1() + csr.Laplacian(chain)),
        "smooth loss, disjoint groups": (linear, csr.Logistic(y) + csr.GroupLasso(disjoint)),
        "smooth loss, overlapping groups": (linear, csr.Logistic(y) + csr.GroupLasso(overlapping) + csr.L1()),
        "smooth loss, fused differences": (linear, csr.Squared(X[:, 0]) + csr.FusedLasso(chain)),
        "hinge, ridge or graph": (linear, csr.Hinge(y) + csr.Ridge()),
        "hinge, L1 or groups": (linear, csr.Hinge(y) + csr.L1()),
        "kernel model, squared or logistic loss": (kernel, csr.Squared(X[:, 0]) + csr.RKHSNorm()),
        "kernel model, hinge": (kernel, csr.Hinge(y) + csr.RKHSNorm()),
        "kernel model, several classes, pairs": (
            kernel,
            csr.MulticlassHinge(classes) + csr.RKHSNorm() + csr.Dissimilarity([(0, 1)]),
        ),
    }
    rows = ["| problem (small and dense) | `auto` takes | and could take |", "|---|---|---|"]
    for words, (model, objective) in problems.items():
        first, *others = [f"`{solver.name}`" for solver in registry.accepting(csr.Problem(model, objective))]
        rows.append(f"| {words} | {first} | {', '.join(others)} |")
    return rows


def write_tables(folder: Path) -> None:
    """Write one file for each table, to be included by pages."""
    folder.mkdir(exist_ok=True)
    for room in ("losses", "penalties"):
        write(folder / f"{room}_table.inc", "\n".join(rows_of(room)) + "\n")
    write(folder / "solvers_table.inc", "\n".join(speed_rows()) + "\n")
