"""The shape of the package: imports go down only, files stay short, importing it is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "cvxstructreg"
FILES = sorted(PACKAGE.rglob("*.py"))
TEST_FILES = sorted(Path(__file__).parent.rglob("*.py"))

# what each room may import besides itself; a room that is not listed may import anything
BELOW = {"runtime", "numerics"}
CONTRACT = {"solvers.iterate", "solvers.needs", "solvers.sizes", "solvers.solver"}  # what a solver is made of
SOLVER = BELOW | {"core", "forms", "certificates"} | CONTRACT
ALLOWED: dict[str, set[str]] = {
    "runtime": set(),
    "numerics": {"runtime"},
    "core": BELOW,
    "forms": BELOW | {"core"},
    "reductions": BELOW | {"core", "forms", "groups", "penalties"},
    "certificates": BELOW | {"core", "forms", "reductions"},
    "losses": BELOW | {"core", "forms"},
    "building": BELOW | {"core"},
    "graphs": BELOW | {"core", "building"},
    "graphs.builders": BELOW | {"core", "building", "graphs"},
    "groups": BELOW | {"core", "building"},
    "penalties": BELOW | {"core", "forms", "graphs", "groups"},
    "row_blocks": BELOW | {"core", "forms", "groups", "losses", "penalties"},
    "expressions": BELOW | {"core", "forms", "graphs", "groups", "penalties"},
    "solvers.denoising": SOLVER,
    "cvx": BELOW | {"core", "forms", "certificates", "groups", "losses", "penalties", "expressions"},
    "solvers.first_order": SOLVER,
    "solvers.general": SOLVER,
    "solvers.smooth": SOLVER,
    "solvers.lasso": SOLVER,
    "solvers.groups": SOLVER | {"solvers.lasso", "solvers.smooth"},
    "solvers.nested": SOLVER | {"solvers.general", "solvers.groups", "solvers.lasso"},
    "solvers.kernels": SOLVER,
    "solvers.multiclass": SOLVER | {"solvers.kernels"},
    "solvers.row_blocks": SOLVER | {"row_blocks", "solvers.general"},
    "datasets": BELOW | {"core", "graphs", "graphs.builders", "groups"},
    "metrics": BELOW | {"core", "graphs", "groups"},
    "text": BELOW | {"core", "building", "graphs", "graphs.builders", "groups"},
}
ALLOWED["solvers"] = SOLVER | {"reductions"} | {room for room in ALLOWED if room.startswith("solvers.")}
# what users hold hands over to the rooms above
EXCEPTIONS = {
    ("core/atom.py", "cvx"),
    ("core/model.py", "row_blocks"),
    ("core/objective.py", "expressions"),
    ("core/penalty.py", "expressions"),
    ("core/problem.py", "solvers"),
    ("core/problem.py", "forms"),
    ("core/problem.py", "reductions"),
    ("core/solution.py", "certificates"),
}
#: Files of a folder, its ``__init__`` and ``__main__`` not counted, and lines of a file.
FULL, LONG = 15, 400


@cache
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


def room_of(module: str) -> str:
    """The part of the package that a module belongs to, by the longest name that the table lists."""
    listed = [room for room in (*ALLOWED, *CONTRACT) if f"{module}.".startswith(f"cvxstructreg.{room}.")]
    return max(listed, key=len, default="")


def may_import(path: Path, module: str) -> bool:
    """Whether a file may import a module of the package."""
    inside = path.relative_to(PACKAGE)
    room = room_of(".".join(("cvxstructreg", *inside.with_suffix("").parts)))
    room = "solvers" if room in CONTRACT else room
    target = room_of(module)
    return not room or target in ALLOWED[room] | {room} or (inside.as_posix(), target.split(".")[0]) in EXCEPTIONS


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path):
    for module in imported(path):
        if module.split(".")[0] == "cvxstructreg":
            assert may_import(path, module), f"{path.name} imports {module}"


def test_the_table_forbids_what_it_does_not_list():
    group_newton, admm = (PACKAGE / "solvers" / name for name in ("groups/group_newton.py", "first_order/admm.py"))
    assert may_import(group_newton, "cvxstructreg.solvers.lasso.working_set_rounds")
    assert not may_import(admm, "cvxstructreg.solvers.lasso.working_set_rounds")
    assert not may_import(admm, "cvxstructreg.solvers.driver")
    assert not may_import(PACKAGE / "core" / "atom.py", "cvxstructreg.forms.normal_form")
    assert not may_import(PACKAGE / "runtime" / "quiet.py", "cvxstructreg.numerics.units")
    assert not may_import(PACKAGE / "certificates" / "kkt.py", "cvxstructreg.penalties.l1")


def test_no_folder_is_crowded():
    for folder in {path.parent for path in FILES}:
        files = [path for path in folder.glob("*.py") if path.stem not in ("__init__", "__main__")]
        assert len(files) <= FULL, f"{folder.relative_to(PACKAGE)} has {len(files)} files: make rooms"
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


@pytest.mark.parametrize("part", [*sorted(BELOW), "core", "forms", "reductions", "certificates", "losses", "penalties"])
def test_the_core_needs_numpy_scipy_and_cvxpy_only(part):
    for path in (PACKAGE / part).rglob("*.py"):
        outside = {module.split(".")[0] for module in imported(path)} - sys.stdlib_module_names
        compiled = {"numba"} if path.name.startswith("compiled_") else set()
        assert outside <= {"numpy", "scipy", "cvxpy", "cvxstructreg"} | compiled, path.name


def test_imports_inside_functions_count_and_those_for_type_checkers_do_not():
    assert "cvxstructreg.solvers.driver" in imported(PACKAGE / "core" / "problem.py")
    assert "cvxstructreg.core.problem" not in imported(PACKAGE / "certificates" / "certificate.py")


def test_no_solver_names_an_atom_and_no_atom_a_solver():
    atoms = [path.stem for part in ("losses", "penalties") for path in (PACKAGE / part).glob("*.py")]
    for path in (PACKAGE / "solvers").rglob("*.py"):
        assert not {module.split(".")[-1] for module in imported(path)} & (set(atoms) - {"__init__"})


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= LONG


def test_test_files_are_short():
    lengths = {path.name: len(path.read_text().splitlines()) for path in TEST_FILES}
    long = {name: length for name, length in lengths.items() if length > LONG}
    assert not long, "split them by subject, with shared helpers in a module beside them"


def test_internals_of_cvxpy_are_touched_in_two_files_only():
    users = {path.name for path in FILES if any(module.startswith("cvxpy.") for module in imported(path))}
    assert len(users) <= 2, users


def test_numba_is_imported_where_its_seconds_are_counted():
    users = {path.name for path in FILES if any(module.split(".")[0] == "numba" for module in imported(path))}
    assert users == {"compiled_clock.py"}


def test_cvxpy_itself_is_imported_in_few_files():
    """The textbook formulas of the cross-check are plain CVXPY, and share no code with the library."""
    files = [path for path in FILES if path.parent.name != "textbook"]
    users = {path.name for path in files if any(module.split(".")[0] == "cvxpy" for module in imported(path))}
    assert users - {"lazy_cvxpy.py"} == {"quiet_problem.py", "names.py"}


def test_importing_is_light():
    """Nothing is compiled; CVXPY, scikit-learn and the packages of the builders are loaded when first needed."""
    statements = ["import cvxstructreg", "import cvxstructreg.graphs, cvxstructreg.groups"]
    statements += ["import cvxstructreg.datasets, cvxstructreg.metrics"]
    code = "import sys\n" + "".join(f"{statement}\nprint(*sys.modules)\n" for statement in statements)
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    package, builders, loaders = (set(line.split()) for line in lines)
    heavy = {"cvxpy", "matplotlib", "numba", "numpy", "scipy", "scipy.optimize", "sklearn", "cvxstructreg.core.problem"}
    assert "cvxstructreg" in package and not heavy & package
    assert not {"cvxpy", "matplotlib", "numba"} & loaders
    assert not {"sklearn", "networkx", "nltk", "igraph"} & builders
    assert "cvxstructreg.datasets" in loaders and "sklearn.datasets" not in loaders
