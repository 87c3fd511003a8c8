"""``prob.solve(method="structreg")``: what a problem has after the solve, parameters, and atoms inside problems."""

from __future__ import annotations

import gc
import pickle
import weakref

import cvxpy as cp
import numpy as np
import pytest

import cvxstructreg as csr

RNG = np.random.default_rng(3)
X = RNG.normal(size=(50, 6))
Y = X[:, 0] - 0.5 * X[:, 1] + 0.3 * RNG.normal(size=50)
LABELS = np.where(Y > 0, 1.0, -1.0)


def lasso(strength=2.0, constraints=lambda w: []):
    w, b = cp.Variable(6, name="w"), cp.Variable(name="b")
    objective = cp.sum_squares(X @ w + b - Y) + strength * cp.norm1(w)
    return cp.Problem(cp.Minimize(objective), constraints(w)), w, b


class TestAfterTheSolve:
    def test_values_status_objective_and_statistics(self):
        prob, w, b = lasso()
        value = prob.solve(method="structreg", tol=1e-9)
        stats = prob.solver_stats
        assert value == prob.value == prob.objective.value and prob.status == cp.OPTIMAL
        assert w.value.shape == (6,) and np.shape(b.value) == ()
        assert isinstance(stats.extra_stats, csr.Certificate) and stats.extra_stats.relative_gap <= 1e-9
        assert stats.solver_name.startswith("cvxstructreg ") and stats.num_iters >= 1 and stats.solve_time > 0
        ours = w.value
        prob.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(ours, w.value, atol=1e-4)

    @pytest.mark.parametrize("sense", [cp.Minimize, cp.Maximize])
    def test_multipliers_of_bounds(self, sense):
        w, b = cp.Variable(6), cp.Variable()
        sign = 1.0 if sense is cp.Minimize else -1.0
        goal = sense(sign * (cp.sum_squares(X @ w + b - Y) + 2 * cp.norm1(w[1:])))
        limits = [w <= 0.5, -2 * w <= 0.4, cp.abs(w[2:]) <= 0.01, w[1] == -0.15]
        prob = cp.Problem(goal, limits)
        value = prob.solve(method="structreg", tol=1e-10)
        found = [limit.dual_value for limit in limits]
        assert value == pytest.approx(prob.solve(solver=cp.CLARABEL), rel=1e-7)
        for ours, limit in zip(found, limits, strict=True):
            np.testing.assert_allclose(ours, limit.dual_value, atol=1e-4)
            assert np.shape(ours) == np.shape(limit.dual_value)

    def test_bounds_that_contradict_each_other(self):
        prob, w, _ = lasso(constraints=lambda w: [w >= 1, w[2] <= 0])
        assert prob.solve(method="structreg") == np.inf
        assert prob.status == cp.INFEASIBLE and w.value is None

    def test_other_constraints_that_contradict_each_other(self):
        prob, w, _ = lasso(constraints=lambda w: [cp.sum(w) <= 1, cp.sum(w) >= 2])
        assert prob.solve(method="structreg") == np.inf and prob.status == cp.INFEASIBLE and w.value is None

    def test_limits_give_their_status(self):
        prob, _, _ = lasso(1e-3)
        with pytest.warns(csr.InaccurateWarning, match="max_iter"):
            prob.solve(method="structreg", tol=1e-14, solver="fista", max_iter=2)
        assert prob.status == cp.USER_LIMIT and prob.solver_stats.num_iters <= 2

    def test_arguments_of_cvxpy_are_refused_in_words(self):
        prob, _, _ = lasso()
        with pytest.raises(TypeError, match="does not take gp="):
            prob.solve(method="structreg", gp=True)
        with pytest.raises(ValueError, match="is a solver of CVXPY; write solver='cvxpy', cvxpy_solver='SCS'"):
            prob.solve(method="structreg", solver="SCS")
        prob.solve(method="structreg", solver="cvxpy", gp=False)
        assert prob.solver_stats.solver_name == "cvxstructreg cvxpy"

    def test_the_objectives_are_compared(self, monkeypatch):
        prob, _, _ = lasso()
        wrong = csr.from_cvxpy(prob)
        wrong.constant += 1.0
        monkeypatch.setattr("cvxstructreg.cvx.solving.problem_of", lambda _: wrong)
        with pytest.raises(RuntimeError, match="is not that of the CVXPY problem"):
            prob.solve(method="structreg")


class TestParameters:
    def test_strengths_change_between_solves(self):
        lam = cp.Parameter(nonneg=True, name="lam")
        prob, _, _ = lasso(lam)
        with pytest.raises(csr.UnrecognisedError, match="lam has no value"):
            prob.solve(method="structreg")
        for strength in (20.0, 5.0, 0.0, 5.0):
            lam.value = strength
            value = prob.solve(method="structreg", tol=1e-8)
            assert value == pytest.approx(prob.solve(solver=cp.CLARABEL), rel=1e-6)

    def test_the_last_solution_is_the_start(self):
        lam = cp.Parameter(nonneg=True, value=5.0)
        prob, _, _ = lasso(lam)
        cold = [prob.solve(method="structreg", solver="fista", warm_start=False), prob.solver_stats.num_iters]
        warm = [prob.solve(method="structreg", solver="fista"), prob.solver_stats.num_iters]
        assert warm[0] == pytest.approx(cold[0], rel=1e-6) and warm[1] < cold[1]

    def test_a_solved_problem_is_not_kept_alive(self):
        prob, _, _ = lasso()
        prob.solve(method="structreg")
        alive = weakref.ref(prob)
        del prob
        gc.collect()
        assert alive() is None

    def test_data_in_parameters(self):
        A, y = cp.Parameter((50, 6), value=X), cp.Parameter(50, value=Y)
        w = cp.Variable(6)
        prob = cp.Problem(cp.Minimize(cp.sum_squares(A @ w - y) / y.size + cp.norm1(w) / np.sqrt(4.0)))
        for move in (0.0, 1.0):
            y.value = Y + move
            assert prob.solve(method="structreg") == pytest.approx(prob.solve(solver=cp.CLARABEL), rel=1e-5)


class TestAtomsInsideProblems:
    GROUPS = csr.Groups([[0, 1, 2], [2, 3], [4, 5]], n_features=6)

    def test_identity_survives_sums_scaling_and_pickling(self):
        w, lam = cp.Variable(6), cp.Parameter(nonneg=True, value=3.0)
        penalty = csr.GroupLasso(self.GROUPS)(w)
        prob = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - Y) + lam * (penalty + cp.sum_squares(w)) + penalty / 2))
        assert prob.is_dcp() and prob.is_dpp()
        for copy in (prob, pickle.loads(pickle.dumps(prob))):
            terms = csr.from_cvxpy(copy).terms
            assert [term.scale for term in terms if isinstance(term.atom, csr.GroupLasso)] == [3.0, 0.5]
        ours = prob.solve(method="structreg", tol=1e-8)
        for solver in (cp.CLARABEL, cp.SCS):
            assert prob.solve(solver=solver) == pytest.approx(ours, rel=1e-4)

    def test_a_loss_keeps_its_labels_weights_and_offset(self):
        w, b = cp.Variable(6), cp.Variable()
        loss = csr.Logistic(LABELS > 0, sample_weight=np.linspace(0.5, 2, 50), offset=0.1 * Y)
        prob = cp.Problem(cp.Minimize(2 * loss(X @ w + b + 0.2) + csr.L1()(w)))
        terms = csr.from_cvxpy(prob).terms
        assert isinstance(terms[0].atom, csr.Logistic) and terms[0].scale == 2.0
        assert prob.solve(method="structreg", tol=1e-8) == pytest.approx(prob.solve(solver=cp.CLARABEL), rel=1e-6)

    def test_an_argument_that_is_not_affine_is_left_as_it_is(self):
        w = cp.Variable(6)
        prob = cp.Problem(cp.Minimize(cp.sum_squares(X @ w - Y) + csr.L1()(cp.square(w))))
        assert prob.solve(method="structreg", tol=1e-8) == pytest.approx(prob.solve(solver=cp.CLARABEL), rel=1e-6)

    def test_numbers_stay_numbers(self):
        assert csr.L1()([1.0, -2.0]) == 3.0 and (2.0 * csr.L1())(np.ones(2)) == 4.0
        assert csr.L1()(cp.Constant([1.0, -2.0])).value == 3.0


class TestTheMapBack:
    def test_points_go_both_ways(self):
        prob, w, b = lasso()
        problem = csr.from_cvxpy(prob)
        solution = problem.solve()
        values = problem.values_of(solution)
        coef, intercept = problem.weights_at(values)
        np.testing.assert_array_equal(coef, solution.coef)
        assert intercept == solution.intercept == values[b]
        np.testing.assert_array_equal(values[w], solution.coef)
        with pytest.raises(ValueError, match="w has no value"):
            problem.weights_at()

    def test_a_hidden_intercept_in_other_units(self):
        w = cp.Variable(6)
        A = np.column_stack([X[:, :3], np.full(50, -4.0), X[:, 4:]])
        prob = cp.Problem(cp.Minimize(cp.sum(cp.logistic(-cp.multiply(LABELS, A @ w))) + cp.norm1(w[[0, 1, 2, 4, 5]])))
        problem = csr.from_cvxpy(prob)
        assert problem.given.intercept and problem.given.n_weights == 5
        value = prob.solve(method="structreg", tol=1e-9)
        ours = w.value
        assert value == pytest.approx(prob.solve(solver=cp.CLARABEL), rel=1e-7)
        np.testing.assert_allclose(ours, w.value, atol=1e-4)

    def test_a_certificate_for_the_values_of_any_solver(self):
        prob, w, b = lasso()
        prob.solve(solver=cp.CLARABEL)
        for given in [
            (),
            ({w: w.value, b: b.value},),
            ((w.value, b.value),),
            (w.value, b.value),
            (w, b),
            ({b: b.value},),
        ]:
            assert csr.certify(prob, *given).relative_gap <= 1e-6
        best, w.value = prob.objective.value, w.value + 0.1
        assert csr.certify(prob).gap == pytest.approx(prob.objective.value - best, rel=1e-3)
        with pytest.raises(ValueError, match="is no variable of the problem"):
            csr.certify(prob, {cp.Variable(name="u"): 1.0})

    def test_a_plain_problem_is_verified_with_its_own_solution(self):
        prob, _, _ = lasso(constraints=lambda w: [w >= -0.1])
        report = csr.verify(prob)
        assert report.agrees
        assert {"cvxpy", "given problem", "working_set"} <= {row.solver for row in report.rows}
        assert all(row.status == "optimal" for row in report.rows)
