"""Rough products of group_newton in single precision, and how many dense features join its working set."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.solvers.groups import group_newton, group_steps
from cvxstructreg.solvers.groups.group_newton import _State
from cvxstructreg.solvers.groups.single_precision import SingleMatrix
from cvxstructreg.solvers.iterate import Iterate


@pytest.mark.parametrize("size", [1e-60, 1.0, 1e60])
def test_products_have_six_digits_in_any_units(size):
    rng = np.random.default_rng(0)
    A, x, u = size * rng.normal(size=(30, 50)), rng.normal(size=(50, 2)) / size, rng.normal(size=(30, 1)) / size
    single = SingleMatrix.of(A)
    assert np.allclose(single @ x, A @ x, rtol=0, atol=1e-5)
    assert np.allclose(single.adjoint(u), A.T @ u, rtol=0, atol=1e-5)
    assert np.allclose(single.squares() @ np.ones(50), np.sum(A**2, axis=1), rtol=1e-5, atol=0)
    assert np.allclose(single.chosen(np.array([3, 4])) @ x, A[[3, 4]] @ x, rtol=0, atol=1e-5)
    assert not (single @ np.zeros((50, 1))).any()


@pytest.mark.parametrize("sizes", [(1.0, 1e-9), (1e200, 1e200), (1e-200, 1e-200), (0.0, 0.0)])
def test_matrices_that_would_lose_rows_stay_in_double_precision(sizes):
    assert SingleMatrix.of(np.ones((2, 5)) * np.array(sizes)[:, None]) is None


def _problem(sparse: bool) -> csr.Problem:
    rng = np.random.default_rng(1)
    n, d = 350, 300
    X = rng.normal(size=(n, d))
    y = rng.poisson(np.exp(X[:, :6] @ rng.normal(scale=0.3, size=6)))
    groups = csr.Groups([range(i, min(i + 8, d)) for i in range(0, d - 2, 5)], n_features=d)
    return csr.Problem(csr.Linear(sp.csr_array(X) if sparse else X), csr.Poisson(y) + 3.0 * csr.GroupLasso(groups))


@pytest.mark.parametrize(("sparse", "missing"), [(False, 1e-3), (False, 1e3), (True, 1e-3)])
def test_few_features_of_a_dense_design_join_at_a_time_unless_the_pull_is_strong(sparse, missing):
    problem = _problem(sparse)
    start = Iterate(np.zeros((300, 1)), np.zeros(1))
    state = _State(problem, start, problem.value_at(start.theta, start.b))
    state.grow(np.full(300, missing), 0.0)
    assert state.inside.sum() == (300 if sparse or missing > 1.0 else group_newton.LEAST_DENSE + 10)


def test_rough_products_change_no_certificate(monkeypatch):
    used = []
    product = SingleMatrix._product
    monkeypatch.setattr(SingleMatrix, "_product", lambda self, *of: used.append(1) or product(self, *of))
    rough = _problem(False).solve("group_newton")
    assert rough.status == "optimal" and used
    monkeypatch.setattr(group_steps, "ROUGHEST", np.inf)  # every product in double precision, but for the diagonal
    double = _problem(False).solve("group_newton")
    assert abs(rough.objective - double.objective) <= max(rough.certificate.gap, double.certificate.gap)
