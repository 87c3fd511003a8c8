"""CVXPY expressions as terms of an objective, and CVXPY parameters as strengths."""

from __future__ import annotations

import subprocess
import sys

import cvxpy as cp
import numpy as np
import pytest

import cvxstructreg as csr

RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 6))
Y = X @ [1.0, 0.0, -1.0, 0.0, 0.5, 0.0] + 0.3 * RNG.normal(size=30)


def test_functions_and_expressions_join_a_sum_from_both_sides():
    loss, w = csr.Squared(Y), cp.Variable(6)
    expected = csr.Problem(csr.Linear(X), loss + 0.5 * csr.L1()).solve(tol=1e-9).objective
    for objective in (
        loss + (lambda w: 0.5 * cp.norm1(w)),
        (lambda w: 0.5 * cp.norm1(w)) + loss,
        loss + 0.5 * cp.norm1(w),
        0.5 * cp.norm1(w) + loss,
        cp.norm1(w) * 0.5 + (loss + 0.0 * csr.Ridge()),
        0.25 * cp.norm1(w) + (0.25 * csr.L1() + loss),
        loss + 0.5 * cp.norm1(cp.Variable((6, 1))),
        loss + csr.FromExpression(cp.norm1(w / 2)),
        loss + 0.5 * csr.Penalty(cp.norm1),
        loss + 0.5 * csr.Penalty(cp.norm1(w)),
    ):
        solution = csr.Problem(csr.Linear(X), objective).solve(tol=1e-9)
        assert solution.certificate.kind == "duality_gap" and solution.objective == pytest.approx(expected, rel=1e-8)
    assert (loss + 0.5 * cp.norm1(w)).terms[1].scale == 0.5


OWN = "type('Largest', (csr.Penalty,), {'expr': lambda self, z: cp.max(cp.abs(z))})()"


@pytest.mark.parametrize(
    "penalty", ["0.5 * cp.norm1(cp.Variable(2))", "(lambda w: cp.norm1(w))", "csr.Penalty(cp.norm1)", OWN]
)
def test_expressions_are_terms_before_anything_else_of_the_library_is_used(penalty):
    lines = ["import cvxpy as cp, cvxstructreg as csr", "loss = csr.Squared([1.0, 2.0])"]
    lines += ["model = csr.Linear([[1.0, 2.0], [2.0, 1.0]])", f"problem = csr.Problem(model, loss + {penalty})"]
    lines += ["assert problem.solve().status == 'optimal'"]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, timeout=300)


def test_an_expression_of_a_matrix_is_a_joint_penalty():
    W = cp.Variable((6, 2))
    loss = csr.MultiTask(np.column_stack([Y, -Y]))
    problem = csr.Problem(csr.Linear(X), loss + 2.0 * cp.normNuc(W))
    nuclear = csr.Problem(csr.Linear(X), loss + 2.0 * csr.NuclearNorm())
    assert problem.solve().objective == pytest.approx(nuclear.solve().objective, rel=1e-5)


def test_an_expression_that_is_no_penalty_on_the_weights_is_refused():
    loss, w, v = csr.Squared(Y), cp.Variable(6, name="w"), cp.Variable(6, name="v")
    with pytest.raises(TypeError, match=r"has one variable.*has w, v.*from_cvxpy"):
        loss + cp.norm1(w + v)
    with pytest.raises(ValueError, match=r"different variables, w, v.*from_cvxpy"):
        loss + cp.norm1(w) + cp.norm2(v)
    with pytest.raises(ValueError, match=r"declared nonneg.*NonNegative\(\)"):
        loss + cp.sum(cp.Variable(6, nonneg=True))
    with pytest.raises(ValueError, match=r"acts on 5 rows, but the model has 6 features"):
        csr.Problem(csr.Linear(X), loss + cp.norm1(cp.Variable(5)))
    with pytest.raises(ValueError, match="must be finite and at least 0"):
        loss + (-1.0) * cp.norm1(w)
    with pytest.raises(ValueError, match="not convex"):
        csr.Problem(csr.Linear(X), loss + cp.sum(cp.sqrt(w)))
    with pytest.raises(ValueError, match="has no loss"):
        csr.Problem(csr.Linear(X), cp.norm1(w))
    with pytest.raises(TypeError, match="Penalty is a base class"):
        csr.Penalty()


class TestParametersAsStrengths:
    """``lam * L1()`` with a CVXPY parameter: each call uses its current value."""

    def problem(self, lam):
        return csr.Problem(csr.Linear(X), csr.Squared(Y) + lam * csr.L1() + 0.1 * csr.Ridge())

    def test_all_calls_use_the_current_value(self):
        lam = cp.Parameter(nonneg=True, name="lam")
        problem = self.problem(lam)
        assert "lam * L1()" in repr(problem)
        with pytest.raises(ValueError, match=r"lam in the strength of lam \* L1\(\) has no value; set lam.value"):
            problem.solve()
        found = []
        for strength in (5.0, 0.5, 5.0):
            lam.value = strength
            fixed = self.problem(strength)
            solution = problem.solve(tol=1e-8)
            found.append(solution)
            assert solution.objective == pytest.approx(fixed.solve(tol=1e-8).objective, rel=1e-7)
            assert csr.certify(problem, solution).relative_gap <= 1e-8
            assert problem.value(solution.coef, solution.intercept) == fixed.value(solution.coef, solution.intercept)
            assert problem.to_cvxpy().solve(solver="CLARABEL") == pytest.approx(solution.objective, rel=1e-6)
            assert problem.describe() == fixed.describe()
            assert csr.lambda_max(problem) == csr.lambda_max(fixed)
        lam.value = 50.0
        assert found[0].problem.terms[1].scale == 5.0  # a solution keeps the problem that it solves
        assert csr.verify(problem, ["working_set"]).agrees

    def test_products_of_parameters_and_numbers(self):
        a, b = cp.Parameter(nonneg=True, value=2.0), cp.Parameter(nonneg=True, value=3.0)
        terms = [
            a * b * csr.L1(),
            a * (3.0 * csr.L1()),
            csr.L1() * (3 * a),
            (a * (b * csr.L1() + csr.Ridge())).terms[0],
        ]
        assert [term.value([1.0, -1.0]) for term in terms] == [12.0] * 4
        assert (cp.Constant(2.0) * csr.L1()).scale == 2.0
        a.value = 1.0
        assert terms[0].prox([5.0, 1.0], 1.0).tolist() == [2.0, 0.0] and terms[0].dual_norm([3.0]) == 1.0

    def test_the_expression_of_a_term_keeps_the_parameter(self):
        lam, w = cp.Parameter(nonneg=True), cp.Variable(6)
        prob = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - Y) + (lam * csr.L1())(w)))
        assert prob.is_dpp() and prob.parameters() == [lam]
        for strength in (4.0, 1.0):
            lam.value = strength
            assert prob.solve(method="structreg") == pytest.approx(prob.solve(solver=cp.CLARABEL), rel=1e-5)

    def test_what_is_no_strength_is_refused(self):
        negative = cp.Parameter(value=-1.0)
        with pytest.raises(ValueError, match="at least 0"):
            self.problem(negative).solve()
        with pytest.raises(TypeError, match=r"has variables.*L1\(\)\(w\)"):
            cp.Variable() * csr.L1()
        with pytest.raises(TypeError, match=r"has shape \(2,\)"):
            cp.Parameter(2) * csr.L1()
        with pytest.raises(TypeError, match=r"L1\(\)\(w\)"):
            cp.Variable() / csr.L1()
