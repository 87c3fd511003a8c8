"""Bounds of whole cone programs: valid, tight, and checked by NumPy alone; powers are compiled exactly."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from plain_problems import CASES, data

import cvxstructreg as csr
from cvxstructreg.cvx.by_cone_program import answer_of, is_small
from cvxstructreg.cvx.translation import parts_of
from cvxstructreg.expressions.cones import Cones
from cvxstructreg.expressions.exact_powers import approximates, with_exact_powers

LEFT = [name for name in CASES if not csr.from_cvxpy(CASES[name](data())).is_fully_known]


@pytest.mark.parametrize("name", LEFT)
def test_small_problems_with_terms_of_no_known_form_are_proved_by_one_cone_program(name):
    prob = CASES[name](data())
    parts = parts_of(prob)
    assert is_small(parts)
    certificate = answer_of(parts).certificate
    assert certificate is not None and certificate.relative_gap <= 1e-7
    proof = certificate.multipliers
    program, y, z = proof.program, proof.y, proof.z
    sizes = abs(program.A).T @ abs(y) + abs(program.P) @ abs(z) + abs(program.c)
    assert np.all(abs(program.A.T @ y + program.P @ z + program.c) <= 1e-12 * (sizes + sizes.mean()))
    assert program.cones.dual_contains(y)
    assert proof.value <= program.constant - program.b @ y - 0.5 * z @ (program.P @ z)


@pytest.mark.parametrize("name", LEFT)
def test_the_bound_is_below_the_optimum_and_all_constraints_have_multipliers(name):
    prob = CASES[name](data())
    sign = -1.0 if isinstance(prob.objective, cp.Maximize) else 1.0
    value = prob.solve(method="structreg")
    certificate = prob.solver_stats.extra_stats
    found = [np.array(constraint.dual_value) for constraint in prob.constraints]
    optimum = certificate.objective + sign * (prob.solve(solver=cp.CLARABEL) - value)
    assert certificate.lower_bound <= optimum + 1e-7 * (1.0 + abs(optimum))
    for ours, constraint in zip(found, prob.constraints, strict=True):
        np.testing.assert_allclose(ours, constraint.dual_value, atol=1e-4)


def test_wrong_multipliers_prove_nothing_false(monkeypatch):
    """Multipliers with errors give a lower bound that is worse, or none; never one above the optimum."""
    from cvxstructreg.cvx import by_cone_program

    honest, rng = by_cone_program.proved_minimum, np.random.default_rng(0)
    prob = CASES["largest entry as a penalty"](data())
    optimum = prob.solve(solver=cp.CLARABEL)
    for size in (1e-9, 1e-6, 1e-3, 1.0):

        def disturbed(program, v, y, size=size):
            return honest(program, v + size * rng.normal(size=v.size), y + size * rng.normal(size=y.size))

        monkeypatch.setattr(by_cone_program, "proved_minimum", disturbed)
        certificate = answer_of(parts_of(prob)).certificate
        if certificate is not None:
            assert certificate.lower_bound <= optimum + 1e-7


def test_an_unproved_answer_goes_on_to_the_solvers(monkeypatch):
    monkeypatch.setattr("cvxstructreg.cvx.by_cone_program.proved_minimum", lambda program, v, y: None)
    prob = CASES["largest entry as a penalty"](data())
    prob.solve(method="structreg")
    assert prob.status == cp.OPTIMAL and prob.solver_stats.solver_name != "cvxstructreg cvxpy"
    assert prob.solver_stats.extra_stats.dual is not None


def test_options_go_to_the_solvers():
    prob = CASES["largest entry as a penalty"](data())
    prob.solve(method="structreg", solver="fista")
    assert prob.solver_stats.solver_name == "cvxstructreg fista"


@pytest.mark.parametrize("solver", ["auto", "group_descent"])
def test_auxiliary_variables_inside_atoms_have_values(solver):
    """Tiny problems with auxiliary variables go to CVXPY; a solver that knows nothing of them adds their values."""
    prob = CASES["atoms of this library with auxiliary variables"](data())
    options = {} if solver == "auto" else {"solver": solver}
    value = prob.solve(method="structreg", tol=1e-8, **options)
    assert prob.solver_stats.solver_name == f"cvxstructreg {'cvxpy' if solver == 'auto' else solver}"
    assert value == pytest.approx(prob.objective.value) == pytest.approx(prob.solve(solver=cp.CLARABEL), rel=1e-6)


def test_a_problem_without_a_lower_bound():
    g = data()
    prob = cp.Problem(cp.Minimize(cp.sum_squares(g.X @ g.w - g.r) + 3 * g.b))
    assert prob.solve(method="structreg") == -np.inf and prob.status == cp.UNBOUNDED


def test_the_point_inside_the_dual_cones():
    cones = Cones(2, 3, (3, 1), (2,), 1, (0.3,), ((0.2, 0.3, 0.5),))
    rng = np.random.default_rng(0)
    inside = cones.dual_interior()
    assert inside.size == cones.n_rows
    for _ in range(20):
        assert cones.dual_contains(inside + 0.2 * rng.uniform(-1, 1, size=inside.size))


@pytest.mark.parametrize("p", [2.7182818, 1.6180339, 1.5])
def test_conjugates_of_powers_belong_to_the_given_exponent(p):
    penalty = csr.FromExpression(lambda w: cp.sum(cp.power(cp.abs(w), p)))
    x = np.array([[1.7], [-0.8]])
    u = p * np.sign(x) * np.abs(x) ** (p - 1.0)
    exact = float(np.sum(u * x)) - penalty.value(x)  # Fenchel and Young, with equality
    assert exact <= sum(part.conj(u) for part in penalty.parts((2, 1))) <= exact + 1e-5


def test_powers_that_are_rounded():
    w = cp.Variable(2)
    rounded, fraction = cp.sum(cp.power(cp.abs(w), 2.7182818)), cp.sum(cp.power(cp.abs(w), 1.5))
    assert approximates(rounded) and not approximates(fraction) and not approximates(cp.pnorm(w, 2.7182818))
    assert with_exact_powers(fraction) is fraction and not approximates(with_exact_powers(rounded))
    limited = cp.transforms.indicator([rounded <= 1])
    assert approximates(limited) and not approximates(with_exact_powers(limited))
