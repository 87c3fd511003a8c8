"""The shape of the package: imports go down only, files stay short, importing it is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "cvxstructreg"
FILES = sorted(PACKAGE.rglob("*.py"))

# what each part may import from the package; what is not listed may import anything
ALLOWED = {
    "core": {"core"},
    "graphs": {"core", "graphs"},
    "groups": {"core", "groups"},
    "losses": {"core", "losses"},
    "penalties": {"core", "graphs", "groups", "penalties"},
    "solvers": {"core", "solvers"},
    "datasets": {"core", "graphs", "groups", "datasets"},
    "metrics": {"core", "graphs", "groups", "metrics"},
}
# Problem.solve hands over to the driver, which stands above it
EXCEPTIONS = {("core/problem.py", "solvers")}


def imported(path: Path) -> list[str]:
    """The modules a file imports when it runs, also inside functions, but not for type checkers only."""
    names = []
    pending: list[ast.AST] = [ast.parse(path.read_text())]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
        pending.extend(ast.iter_child_nodes(node))
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path):
    part = path.relative_to(PACKAGE).parts[0]
    for module in imported(path):
        layers = module.split(".")
        if layers[0] != "cvxstructreg" or part not in ALLOWED:
            continue
        name = layers[1] if len(layers) > 1 else ""
        if (str(path.relative_to(PACKAGE)), name) not in EXCEPTIONS:
            assert name in ALLOWED[part], f"{path.name} imports {module}"


@pytest.mark.parametrize("part", ["core", "losses", "penalties"])
def test_the_core_needs_numpy_scipy_and_cvxpy_only(part):
    for path in (PACKAGE / part).rglob("*.py"):
        outside = {module.split(".")[0] for module in imported(path)} - sys.stdlib_module_names
        compiled = {"numba"} if path.name.startswith("kernels_") else set()
        assert outside <= {"numpy", "scipy", "cvxpy", "cvxstructreg"} | compiled, path.name


def test_imports_inside_functions_count_and_those_for_type_checkers_do_not():
    assert "cvxstructreg.solvers.driver" in imported(PACKAGE / "core" / "problem.py")
    assert "cvxstructreg.core.solution" not in imported(PACKAGE / "core" / "problem.py")


def test_no_solver_names_an_atom_and_no_atom_a_solver():
    atoms = [path.stem for part in ("losses", "penalties") for path in (PACKAGE / part).glob("*.py")]
    for path in (PACKAGE / "solvers").glob("*.py"):
        assert not {module.split(".")[-1] for module in imported(path)} & (set(atoms) - {"__init__"})


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= 400


def test_internals_of_cvxpy_are_touched_in_two_files_only():
    users = {path.name for path in FILES if any(module.startswith("cvxpy.") for module in imported(path))}
    assert len(users) <= 2, users


def test_importing_is_light():
    """Nothing is compiled, and scikit-learn and the packages of the builders are loaded when first needed."""
    statements = ["import cvxstructreg", "import cvxstructreg.graphs, cvxstructreg.groups"]
    statements += ["import cvxstructreg.datasets, cvxstructreg.metrics"]
    code = "import sys\n" + "".join(f"{statement}\nprint(*sys.modules)\n" for statement in statements)
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    package, builders, loaders = (set(line.split()) for line in lines)
    assert "cvxstructreg.core.problem" in package
    assert not {"matplotlib", "numba", "sklearn.datasets", "cvxstructreg.instances"} & package
    assert not {"sklearn", "networkx", "nltk", "igraph"} & builders
    assert "cvxstructreg.datasets" in loaders and "sklearn.datasets" not in loaders
