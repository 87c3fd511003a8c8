"""The names of the package are loaded when first read; readers, type checkers and pickles see no difference."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import cvxstructreg as csr

PACKAGE = Path(csr.__file__).parent


def imports_for_type_checkers() -> dict[str, str]:
    """The name of each import under TYPE_CHECKING, with its module."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    found = [(alias.name, node.module) for node in block.body for alias in node.names]
    assert len(found) == len(dict(found))
    return {name: module.removeprefix("cvxstructreg").removeprefix(".") for name, module in found}


def test_the_table_is_what_type_checkers_see():
    seen = imports_for_type_checkers()
    assert seen.keys() == set(csr.__all__)
    assert {name: module for name, module in seen.items() if module} == csr._HOME
    assert {name for name, module in seen.items() if not module} <= csr._MODULES


def test_all_modules_of_the_package_can_be_read_as_attributes():
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} | files == csr._MODULES
    assert csr.solvers.names()


@pytest.mark.parametrize("name", csr.__all__)
def test_every_name_is_found_and_stays_the_same(name):
    assert name in dir(csr)
    assert getattr(csr, name) is getattr(csr, name)


def test_other_names_are_refused():
    assert not hasattr(csr, "Lasso")
    with pytest.raises(AttributeError, match="has no attribute 'Lasso'"):
        _ = csr.Lasso


def test_star_import_brings_all_names():
    names: dict[str, object] = {}
    exec("from cvxstructreg import *", names)
    assert set(csr.__all__) <= names.keys()


def run(code: str) -> str:
    """Print something in a fresh process."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_loads_neither_numpy_nor_scipy():
    assert run("import sys, cvxstructreg; print({'numpy', 'scipy'} & set(sys.modules))") == "set()"


def test_stating_a_problem_loads_no_solver():
    code = "import sys, cvxstructreg as csr\n"
    code += "csr.Problem(csr.Linear([[1.0], [2.0]]), csr.Logistic([1, -1]) + csr.L1())\n"
    code += "print(*[name for name in sys.modules if name.startswith(('cvxstructreg.solvers', 'scipy.sparse.linalg'))])"
    assert run(code) == ""


def test_pickles_are_read_before_any_name_is():
    pickled = pickle.dumps(csr.Linear([[1.0], [2.0]]))
    assert run(f"import pickle; print(type(pickle.loads({pickled!r})).__name__)") == "Linear"


@pytest.mark.parametrize("first", ["cvxpy", "cvxstructreg"])
def test_cvxpy_knows_the_method_in_either_order(first):
    second = {"cvxpy": "cvxstructreg", "cvxstructreg": "cvxpy"}[first]
    code = f"import {first}, {second}; print('structreg' in cvxpy.Problem.REGISTERED_SOLVE_METHODS)"
    assert run(code) == "True"


def test_every_room_may_be_imported_first(tmp_path):
    """No room relies on another one that happened to be imported before it."""
    rooms = sorted(path.parent.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("__init__.py"))
    code = "import sys, importlib, cvxpy\n"
    code += f"sys.dont_write_bytecode, sys.pycache_prefix = False, {str(tmp_path)!r}\n"  # each file is compiled once
    code += f"for room in {[room.replace('/', '.') for room in rooms]!r}:\n"
    code += "    for name in [name for name in sys.modules if name.split('.')[0] == 'cvxstructreg']:\n"
    code += "        del sys.modules[name]\n"
    code += "    importlib.import_module(room)\n"
    code += "print('all')"
    assert run(code) == "all"
