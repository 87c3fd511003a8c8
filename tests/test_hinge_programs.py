"""The quadratic programs of the hinge loss: interior points, decomposition, and the smoothed hinge."""

from __future__ import annotations

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.forms.smoothed_hinge import SmoothedHinge
from cvxstructreg.solvers.kernels.box_qp import BoxProgram
from cvxstructreg.solvers.kernels.box_qp_by_rows import Decomposition


def programs():
    rng = np.random.default_rng(0)
    for n in (5, 40):
        A = rng.normal(size=(n, n + 2))
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        C = rng.uniform(0.1, 1.0, n)
        yield BoxProgram(A @ A.T / n, y, C, None, 0.0)
        yield BoxProgram(A @ A.T / n, y, C, y, 0.0)
        yield BoxProgram(A @ A.T / n, y, C, y * rng.uniform(0.2, 1.0, n), 0.3)


@pytest.mark.parametrize("program", list(programs()))
def test_interior_point_and_decomposition_agree(program):
    inner, b = program.interior_point(1e-12)
    assert program.gap(inner, b) <= 1e-8
    steps = Decomposition(program)
    outer, c = program.polish(*steps.run(1e-4), goal=1e-13)
    assert program.gap(outer, c) <= 1e-9
    assert np.allclose(inner, outer, atol=1e-5)
    assert np.all((outer >= 0) & (outer <= program.C))


def test_polishing_rows_without_kernel_does_not_overflow():
    K = np.diag([0.0, 1.0, 1.0, 1.0])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    program = BoxProgram(K, y, np.full(4, 25.0), y, 0.0)
    a, b = program.polish(np.full(4, 12.5), -9.0, goal=1e-9)
    assert program.gap(a, b) <= program.gap(np.full(4, 12.5), -9.0)


def test_compiled_steps_are_those_of_their_plain_twins():
    from cvxstructreg.solvers.kernels import compiled_smo

    for program in programs():
        for name, arguments in (("pairs", (program.y,)), ("singles", (program.y,))):
            kernel = getattr(compiled_smo, name)
            results = []
            for run in (kernel, kernel.py_func):
                a, slope = np.zeros(len(program.C)), np.full(len(program.C), -1.0)
                steps = run(program.K, program.C, *arguments, a, slope, 1e-3, 500)
                results.append((steps, a, slope))
            assert results[0][0] == results[1][0]
            assert np.allclose(results[0][1], results[1][1], atol=1e-9)
            assert np.allclose(results[0][2], results[1][2], atol=1e-9)


def test_many_labels_go_to_libsvm_and_are_polished(monkeypatch):
    monkeypatch.setattr("cvxstructreg.solvers.kernels.box_qp_by_rows.LIBSVM_ROWS", 20)
    monkeypatch.setattr("cvxstructreg.solvers.kernels.warped_kernel.COMPILE_FROM", 10)
    rng = np.random.default_rng(14)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, 1, -1)
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    weights = rng.integers(0, 3, size=80).astype(float)
    problem = csr.Problem(csr.Kernel(gram), csr.Hinge(y, sample_weight=weights) + 0.1 * csr.RKHSNorm())
    solution = problem.solve("warped_kernel", tol=1e-9)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(problem.solve("cvxpy").objective, rel=1e-7)


def test_the_smoothed_hinge_has_the_derivatives_it_says():
    rng = np.random.default_rng(15)
    loss = SmoothedHinge(np.array([1.0, -1.0, 1.0]), np.array([1.0, 2.0, 0.5]), None)
    loss.recentre(np.array([[0.2], [1.0], [0.4]]), 3.0)
    for _ in range(20):
        z, p = rng.normal(size=(3, 1)), rng.normal(size=(3, 1))
        slope = (loss.value(z + 1e-6 * p) - loss.value(z - 1e-6 * p)) / 2e-6
        assert slope == pytest.approx(np.sum(loss.grad(z) * p), abs=1e-6)
        bent = (loss.grad(z + 1e-6 * p) - loss.grad(z - 1e-6 * p)) / 2e-6
        assert np.allclose(bent, loss.hessp(z, p), atol=1e-5)
