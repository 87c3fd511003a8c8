"""Warnings and cached properties in several threads."""

from __future__ import annotations

import ast
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from thread_jobs import PACKAGE, PROBLEMS, THREADS, at_once, switching_often

import cvxstructreg as csr
from cvxstructreg.runtime.lazy import cached_property
from cvxstructreg.runtime.quiet import muted, warn
from cvxstructreg.runtime.quiet_problem import QuietProblem


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    with switching_often():
        yield


def test_muting_is_for_one_thread_and_ends():
    inside, told = threading.Event(), threading.Event()

    def quiet() -> None:
        with muted(UserWarning):
            inside.set()
            assert told.wait(timeout=60)
            warn("muted", UserWarning)
        with pytest.raises(UserWarning, match="aloud"):
            warn("aloud", UserWarning)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(quiet)
        assert inside.wait(timeout=60)
        with pytest.raises(UserWarning, match="not muted here"):
            warn("not muted here", UserWarning)
        told.set()
        future.result(timeout=60)


def test_solves_with_and_without_a_warning_side_by_side():
    problem, before = PROBLEMS["ridge"](), list(warnings.filters)

    def task(quiet: bool) -> str:
        with muted(*([csr.InaccurateWarning] if quiet else [])):
            try:
                return problem.solve("lbfgs", max_iter=1, tol=1e-12).status
            except csr.InaccurateWarning:
                return "warned"

    told = at_once([lambda number=number: task(number % 2 == 0) for number in range(40)])
    assert told == ["max_iter", "warned"] * 20
    assert warnings.filters == before


def test_other_categories_are_not_muted():
    with muted(csr.InaccurateWarning), pytest.raises(RuntimeWarning):
        warn("of another kind", RuntimeWarning)


def test_a_quiet_problem_says_nothing_of_inaccuracy_and_is_the_same_otherwise():
    x = cp.Variable(3)
    parts = (cp.Minimize(cp.sum_squares(x - np.arange(3.0)) + cp.norm1(x)), [x <= 1.5])
    options = {"solver": "SCS", "max_iters": 2}
    with pytest.warns(UserWarning, match="inaccurate"):
        cp.Problem(*parts).solve(**options)
    expected = x.value
    quiet = QuietProblem(*parts)
    quiet.solve(**options)
    assert quiet.status == "optimal_inaccurate"
    np.testing.assert_array_equal(x.value, expected)
    with pytest.raises(cp.SolverError):
        QuietProblem(cp.Minimize(cp.exp(x[0]))).solve(solver="OSQP")


def test_a_cached_property_has_one_value_for_all_threads():
    barrier = threading.Barrier(THREADS)

    class Slow:
        @cached_property
        def value(self) -> list[int]:
            """A list."""
            barrier.wait(timeout=60)  # all threads are inside
            return [threading.get_ident()]

    slow = Slow()
    found = at_once([lambda: slow.value] * THREADS)
    assert all(value is found[0] for value in found) and slow.value is found[0]
    assert Slow.value.__doc__ == "A list."


def imports_and_attributes(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
    return names


# the cross-check is a program: it may change the warning filters of its own process
LIBRARY = sorted(path for path in PACKAGE.rglob("*.py") if "crosscheck" not in path.relative_to(PACKAGE).parts)


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_uses_what_is_not_safe(path):
    """Filters of all threads, locks that outlive a fork, and random numbers that threads share."""
    unsafe = {"warnings.catch_warnings", "warnings.simplefilter", "warnings.filterwarnings", "np.random.seed"}
    unsafe |= {"np.seterr", "os.chdir", "os.environ.update"}
    if path.name != "lazy.py":
        unsafe |= {"functools.cached_property"}
    assert not imports_and_attributes(path) & unsafe
