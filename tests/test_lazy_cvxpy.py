"""CVXPY is imported when first used, and knows this library whoever imports it, and whenever."""

from __future__ import annotations

import subprocess
import sys

import cvxpy
import pytest

from cvxstructreg.runtime import lazy_cvxpy

PROBLEM = """
w = cp.Variable(2)
prob = cp.Problem(cp.Minimize(cp.sum_squares(w - [1.0, 2.0]) + cp.norm1(w)))
prob.solve(method="structreg")
assert abs(prob.value - 2.5) < 1e-5, prob.value
assert isinstance(cp.norm1(w) + csr.Ridge(), csr.Objective)
"""
SOLVE = """
import sys
import numpy as np
import cvxstructreg as csr
X = np.random.default_rng(0).normal(size=(40, 10))
chain = [(j, j + 1) for j in range(9)]
for loss in (csr.Squared(X[:, 0] + 0.5), csr.Logistic(np.sign(X[:, 0] + 0.1)), csr.Hinge(np.sign(X[:, 0] + 0.1))):
    for penalty in (csr.L1(), csr.Ridge(), csr.Ridge() + csr.FusedLasso(chain)):
        assert csr.Problem(csr.Linear(X), loss + penalty).solve().status == "optimal"
assert "cvxpy" not in sys.modules
problem = csr.Problem(csr.Linear(X), csr.Squared(X[:, 0]) + csr.L1())
assert problem.solve(solver="cvxpy").status == "optimal"
assert "cvxpy" in sys.modules
"""
THREADS = """
from threading import Thread
import cvxstructreg as csr
from cvxstructreg.runtime.lazy_cvxpy import cp
found = []
threads = [Thread(target=lambda: found.append(cp.Variable(3).size)) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert found == 8 * [3]
import cvxpy as cp
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


@pytest.mark.parametrize("imports", ["import cvxpy as cp\nimport cvxstructreg as csr", THREADS])
def test_cvxpy_knows_the_library_in_any_order_of_imports(imports):
    run(imports + PROBLEM)


def test_fast_solves_do_not_import_cvxpy():
    run(SOLVE)


def test_the_import_of_cvxpy_leaves_no_finder_behind():
    assert not [finder for finder in sys.meta_path if type(finder).__module__ == lazy_cvxpy.__name__]


def test_names_are_those_of_cvxpy_at_each_use(monkeypatch):
    assert lazy_cvxpy.cp.Variable is cvxpy.Variable
    monkeypatch.setattr(cvxpy, "Variable", int)
    assert lazy_cvxpy.cp.Variable is int


def test_a_missing_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = lazy_cvxpy.cp.no_such_name
