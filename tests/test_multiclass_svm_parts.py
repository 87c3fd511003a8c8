"""The multiclass support vector machine in parts: its CVXPY form, its intercepts and the steps of its solvers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from multiclass_machines import PAIRS, RBF, ROWS, K, N, X, Y, standard
from numpy.testing import assert_allclose, assert_array_equal

import cvxstructreg as csr
from cvxstructreg.forms import centred_hinge
from cvxstructreg.reductions.sum_to_zero_program import row_coordinates
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.multiclass import compiled_hinge, douglas_rachford, hinge_newton, hinge_polish
from cvxstructreg.solvers.multiclass.anderson import Anderson
from cvxstructreg.solvers.multiclass.hinge_bounds import Bounds
from cvxstructreg.solvers.multiclass.hinge_intercepts import best_intercepts
from cvxstructreg.solvers.multiclass.hinge_rows import HingeRows, geometry


class TestCvxpyForm:
    """What to_cvxpy() makes of sum-to-zero machines."""

    GRAPH = csr.Graph.from_edges([(3, 6), (4, 8), (0, 14), (15, 16)], [1.0, -2.0, 0.5, 1.0], n_nodes=N)
    CASES = (
        ("kernel", csr.Kernel(RBF), None, "v"),
        ("kernel of rank 2", csr.Kernel(X @ X.T), None, "v"),
        ("kernel without intercept", csr.Kernel(RBF, intercept=False), None, "v"),
        ("kernel with a graph", csr.Kernel(RBF), 0.2 * csr.Laplacian(GRAPH).on_scores(), "theta"),
        ("few features", csr.Linear(X), None, "theta"),
        ("many features", csr.Linear(RBF[:, :20]), None, "v"),
        ("many sparse features", csr.Linear(sp.csr_array(np.where(RBF > 0.5, RBF, 0.0))), None, "v"),
        ("weighted features", csr.Linear(RBF), 0.1 * csr.Ridge(weights=np.arange(1.0, N + 1)), "v"),
    )

    @pytest.mark.parametrize("power", [1, 2])
    @pytest.mark.parametrize("model, more, variable", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
    def test_it_has_the_optimum_and_the_weights(self, model, more, variable, power):
        objective = csr.MulticlassHinge(Y[ROWS], rows=ROWS) + 0.05 * csr.RKHSNorm()
        objective = objective + 0.4 * csr.Dissimilarity(PAIRS, power=power)
        problem = csr.Problem(model, objective if more is None else objective + more)
        fast, program = problem.solve(tol=1e-9), problem.to_cvxpy()
        variables = {v.name(): v for v in program.variables()}
        assert variable in variables
        if variable == "v":  # no more than one for each row that counts
            assert variables["v"].shape[0] <= len(ROWS) + len(PAIRS)
        with pytest.raises(ValueError, match="has no weights"):
            problem.weights_of(program)
        accuracy = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
        assert_allclose(program.solve(solver="CLARABEL", **accuracy), fast.objective, rtol=1e-7)
        coef, intercept = problem.weights_of(program)
        assert_allclose(problem.value(coef, intercept), fast.objective, rtol=1e-7)
        assert_allclose(problem.model.scores(coef, intercept), fast.scores, atol=1e-4)

    def test_the_dual_points_of_the_reference_prove_its_optimum(self):
        for _, model, more, _ in self.CASES:
            base = csr.MulticlassHinge(Y[ROWS], rows=ROWS) + 0.05 * csr.RKHSNorm() + 0.4 * csr.Dissimilarity(PAIRS)
            solution = csr.Problem(model, base if more is None else base + more).solve("cvxpy", tol=1e-7)
            assert (solution.status, solution.certificate.kind) == ("optimal", "duality_gap")

    def test_terms_that_are_no_hinges_of_centred_scores_leave_all_weights(self):
        loss = csr.MulticlassHinge(Y[ROWS], rows=ROWS)
        for problem in (
            csr.Problem(csr.Linear(RBF), loss + 0.1 * csr.Ridge() + 0.1 * csr.L1()),
            csr.Problem(csr.Linear(RBF), csr.Multinomial(Y) + 0.1 * csr.Ridge()),
            csr.Problem(csr.Linear(RBF), loss + 0.1 * csr.GroupLasso(csr.Groups([list(range(N))], n_features=N))),
        ):
            assert {"theta", "b"} <= {v.name() for v in problem.to_cvxpy().variables()}
            assert row_coordinates(problem) is None

    def test_no_pairs_and_no_labels_of_weight(self):
        loss = csr.MulticlassHinge(Y[ROWS], rows=ROWS) + 0.05 * csr.RKHSNorm()
        plain = csr.Problem(csr.Kernel(RBF), loss).solve("cvxpy")
        empty = csr.Problem(csr.Kernel(RBF), loss + csr.Dissimilarity([])).solve("cvxpy")
        assert_allclose(empty.objective, plain.objective, rtol=1e-8)


class TestIntercepts:
    @staticmethod
    def value(b, Z, costs, tau, squared, q):
        excess = np.maximum(0.0, Z + np.outer(q, b) - tau[:, None])
        return float(np.sum(costs * np.where(squared[:, None], excess**2, excess)))

    @pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
    @pytest.mark.parametrize("seed", range(6))
    def test_they_are_the_best(self, seed, share):
        rng = np.random.default_rng(seed)
        m, k = int(rng.integers(2, 15)), int(rng.integers(2, 5))
        costs = 10.0 ** rng.uniform(-3, 2, size=(m, k)) * (rng.random((m, k)) < 0.8)
        costs[0] += 0.1
        data = rng.normal(size=(m, k)), costs, rng.normal(size=m), rng.random(m) < share, rng.choice([1.0, 2.0], size=m)
        b = best_intercepts(*data)
        assert abs(b.sum()) <= 1e-12 * max(1.0, np.abs(b).max())
        for _ in range(200):  # no other b of zero sum is better, near or far: the function is convex
            direction = rng.normal(size=k)
            step = 10.0 ** rng.uniform(-5, 1) * (direction - direction.mean())
            assert self.value(b, *data) <= self.value(b + step, *data) * (1 + 1e-10) + 1e-12

    @pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
    @pytest.mark.parametrize("seed", range(4))
    def test_compiled_and_plain_steps_agree(self, seed, share, monkeypatch):
        rng = np.random.default_rng(seed)
        costs = rng.uniform(0.5, 1.5, size=(9, 3)) * (rng.random((9, 3)) < 0.8) + 0.01
        data = rng.normal(size=(9, 3)), costs, rng.normal(size=9), rng.random(9) < share, rng.choice([1.0, 2.0], size=9)
        compiled = best_intercepts(*data)
        for name in ("slopes_of_columns", "intercepts_at", "bisected_intercepts"):
            monkeypatch.setattr(compiled_hinge, name, getattr(compiled_hinge, name).py_func)
        assert_allclose(best_intercepts(*data), compiled, rtol=0.0, atol=1e-12)

    @pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
    def test_slopes_are_reached_where_they_are_said_to_be(self, share):
        rng = np.random.default_rng(int(10 * share))
        costs, q, squared = rng.uniform(0.5, 1.5, 9), rng.choice([1.0, 2.0], size=9), rng.random(9) < share
        kinks, lines, after = np.empty(9), np.empty((3, 9)), np.empty(9)
        at = rng.normal(size=9)
        at[3] = np.inf  # one row without costs
        columns = at[:, None], np.argsort(at)[:, None], costs[:, None]
        starts = compiled_hinge.slopes_of_columns(*columns, squared, q, kinks, lines, after)
        assert starts.tolist() == [0, 8]
        kinks, lines, after = kinks[:8], lines[:, :8], after[:8]
        assert_array_equal(np.sort(at)[:8], kinks)
        for t, slope in zip(kinks, after, strict=True):  # the sum of the derivatives of the hinges that are reached
            reached = at <= t
            steep = np.where(squared, 2.0 * costs * q**2 * (t - at), costs * q)
            assert slope == pytest.approx(steep[reached].sum())
        b = np.empty(1)
        for slope in np.linspace(0.0, 1.5 * after[-1], 40):
            assert compiled_hinge.intercepts_at(slope, starts, kinks, lines, after, b) == b[0]
            i = np.searchsorted(kinks, b[0], side="right") - 1  # the slope is reached here, and not before
            assert lines[0, i] + lines[1, i] * b[0] - lines[2, i] >= slope * (1 - 1e-12) or lines[1, -1] == 0
            before = kinks[kinks < b[0] - 1e-12]
            assert before.size == 0 or after[before.size - 1] <= slope * (1 + 1e-12)

    def test_where_nothing_or_everything_is_reached(self):
        one, tau, linear = np.ones((2, 2)), np.zeros(2), np.zeros(2, dtype=bool)
        assert self.value(best_intercepts(-one, one, tau, linear, np.ones(2)), -one, one, tau, linear, np.ones(2)) == 0
        costs = np.array([[1.0, 2.0], [1.0, 2.0]])  # the cheaper class may grow without end
        b = best_intercepts(5.0 * one, costs, tau, linear, np.ones(2))
        assert self.value(b, 5.0 * one, costs, tau, linear, np.ones(2)) == pytest.approx(20.0)

    def test_a_class_without_costs_has_none(self):
        costs = np.array([[1.0, 0.0]])
        assert best_intercepts(np.zeros((1, 2)), costs, np.zeros(1), np.zeros(1, dtype=bool), np.ones(1)) is None


class TestParts:
    """Compiled kernels and linear algebra against plain twins."""

    rng = np.random.default_rng(3)
    costs = rng.uniform(0.5, 1.5, size=(12, 4)) * (rng.random((12, 4)) < 0.8)
    tau = rng.normal(size=12)
    squared = np.arange(12) % 3 == 0
    v = rng.normal(size=(12, 4))
    q = np.where(np.arange(12) % 2, 2.0, 1.0)

    def test_reflect(self):
        Z, V, t = np.empty_like(self.v), np.empty_like(self.v), 0.4
        compiled_hinge.reflect(self.v, self.costs, self.tau, self.squared, t, Z, V)
        s = self.v - self.tau[:, None]
        linear = np.where(s > 0, np.maximum(0.0, s - t * self.costs), s)
        expected = np.where(self.squared[:, None], np.where(s > 0, s / (1 + 2 * t * self.costs), s), linear)
        assert_allclose(Z, expected + self.tau[:, None], atol=1e-14)
        assert_allclose(V, centred_hinge.centred(2 * Z - self.v), atol=1e-14)

    @pytest.mark.parametrize("n", [1, 5, 64, 150])
    def test_mirror(self, n):
        matrix = np.random.default_rng(n).normal(size=(n, n))
        mirrored = matrix.copy()
        compiled_hinge.mirror(mirrored)
        assert_array_equal(mirrored, np.triu(matrix) + np.triu(matrix, 1).T)

    def test_a_bordered_inverse_is_the_inverse(self, monkeypatch):
        monkeypatch.setattr(douglas_rachford, "FEW", np.inf)  # border whenever rows enter
        problem = standard(1, pairs=np.array([(i, i + 12) for i in range(12)]))
        start = Iterate(np.zeros((N, K)), np.zeros(K))
        run = douglas_rachford._Run(problem, start, 1e-8, None, 8, True)
        first = len(run.W)
        steps = run.steps()
        while run.left > 1e-8:
            next(steps)
        assert len(run.W) > first
        assert_allclose(run.inverse, np.linalg.inv(run.K + np.eye(len(run.W)) / run.sigma), rtol=1e-7, atol=1e-9)

    def test_sums(self):
        s = np.maximum(0.0, self.v - self.tau[:, None])
        powers = np.where(self.squared[:, None], s**2, s)
        value = compiled_hinge.hinge_sum(self.v, self.costs, self.tau, self.squared)
        assert_allclose(value, np.sum(self.costs * powers))
        U = np.abs(self.v) * (self.costs > 0)
        squares = U**2 / np.where(self.costs > 0, 4 * self.costs, 1.0) * self.squared[:, None]
        value = compiled_hinge.dual_sum(U, self.costs, self.tau, self.squared)
        assert_allclose(value, np.sum(self.tau[:, None] * U + squares))

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 10_000))
    def test_feasible_points(self, seed):
        rng = np.random.default_rng(seed)
        U = rng.normal(0.5, 1.0, size=self.costs.shape)
        compiled_hinge.into_domain(U, self.costs, self.squared)
        highest = np.where(self.squared[:, None] & (self.costs > 0), np.inf, self.costs)
        assert np.all(U >= 0) and np.all(highest >= U)
        before = U.copy()
        assert compiled_hinge.balance(U, self.costs, self.squared, self.q)
        sums = self.q @ U
        assert np.all(U >= 0) and np.all(highest >= U)
        assert_allclose(sums, sums[0], rtol=1e-12)
        again = U.copy()
        assert compiled_hinge.balance(again, self.costs, self.squared, self.q)
        assert_allclose(again, U, atol=1e-12)
        # the balance is met by a shift of the entries between their bounds, where these suffice
        assert np.abs(U - before).max() <= 4 * np.abs(self.q @ before - sums[0]).max()

    def test_a_balance_that_cannot_be_had(self):
        costs = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])  # nothing in the third class: all sums must be zero
        U = np.full((2, 3), 0.5) * (costs > 0)
        assert compiled_hinge.balance(U, costs, np.zeros(2, dtype=bool), np.ones(2))
        assert_allclose(U, 0.0, atol=1e-14)

    @pytest.mark.parametrize("intercept", [True, False])
    def test_polishing_solves_the_system_of_its_zones(self, intercept):
        problem = standard(2, csr.Kernel(RBF, intercept=intercept))
        solution = problem.solve("douglas_rachford", tol=1e-6, polish=False)
        rows = HingeRows.of(problem)
        everything = np.arange(len(rows.tau))
        gram = geometry(problem, rows).columns(everything)
        q = np.asarray(rows.R.sum(axis=1)).ravel() if intercept else None
        bounds = Bounds(rows, everything, q)
        v = rows.R @ solution.scores + rows.multipliers(solution.dual)
        free, compliance, fixed = hinge_polish.zones(bounds, v, 1.0)
        U, b = hinge_polish.polished(bounds, gram, free, compliance, fixed)
        F = -gram @ centred_hinge.centred(U) + (0.0 if q is None else np.outer(q, b))
        assert_allclose(F[free], (rows.tau[:, None] + compliance * U)[free], atol=1e-8)
        if q is not None:
            assert_allclose(q @ centred_hinge.centred(U), 0.0, atol=1e-10)
            assert_allclose(b.sum(), 0.0, atol=1e-8)
        bounds.offer(U, b, gram)
        assert bounds.gap <= 1e-9

    def test_newton_steps_solve_the_coupled_system(self):
        rng = np.random.default_rng(0)
        Phi, curvature = rng.normal(size=(15, 4)), rng.random((15, 3)) * (rng.random((15, 3)) < 0.6)
        held, gradient = np.array([[1.0], [1.0], [1.0], [0.0]]), centred_hinge.centred(rng.normal(size=(4, 3)))
        step = hinge_newton._newton_step(Phi, curvature, gradient, held, 0.1)
        blocks = [np.diag([1, 1, 1, 0.1]) + Phi.T @ (curvature[:, [j]] * Phi) for j in range(3)]
        left = np.column_stack([H @ step[:, j] for j, H in enumerate(blocks)]) + gradient
        assert_allclose(left, left.mean(axis=1, keepdims=True) * np.ones((1, 3)), atol=1e-10)
        assert_allclose(step.sum(axis=1), 0.0, atol=1e-10)

    def test_anderson_solves_linear_systems(self):
        rng = np.random.default_rng(1)
        M = rng.normal(size=(6, 6))
        M = 0.95 * M / np.linalg.norm(M, 2)
        c, x, accelerated = rng.normal(size=6), np.zeros(6), Anderson(6, 8)
        for _ in range(20):
            x = accelerated.next(x, M @ x + c - x)
        assert_allclose(x, np.linalg.solve(np.eye(6) - M, c), atol=1e-6)

    def test_anderson_takes_plain_steps_along_a_line(self):
        accelerated, x = Anderson(2, 8), np.zeros(2)
        for _ in range(50):
            x = accelerated.next(x, np.array([1.0, 0.5]))
        assert np.all(np.isfinite(x)) and x[0] >= 1.0

    @pytest.mark.parametrize(
        "atom, shape", [(csr.MulticlassHinge([0, 1, 2]), (3, 3)), (csr.MulticlassHinge([0, 1]), (2, 2))]
    )
    def test_hinges_are_the_loss(self, atom, shape):
        z = np.random.default_rng(0).normal(size=shape)
        assert_allclose(atom.centred_hinges(shape[1]).value(z), atom(z))

    @pytest.mark.parametrize("power", [1, 2])
    def test_hinges_are_the_pairs(self, power):
        pairs, _ = csr.Dissimilarity([(0, 1), (1, 2)], power=power, weights=[1.0, 0.5]).split()
        z = 3.0 * np.random.default_rng(0).normal(size=(2, 4))
        assert_allclose(pairs.centred_hinges(4).value(z), pairs(z))
        with pytest.raises(ValueError, match="single output"):
            pairs.centred_hinges(1)


def test_a_graph_with_virtual_nodes_that_leaves_the_intercept_free():
    """Only round-off of eliminated virtual nodes pulls at constants: the intercept is free, not held by 1e-18."""
    x = np.array([1.0, -0.35, -0.63, 0.13])
    graph = csr.Graph.from_edges(
        [(4, 3), (0, 5), (0, 1), (0, 4), (3, 4)], [1.7, 1.05, 0.9, 1.85, 1.87], 6, directed=True, virtual=[1, 4]
    )
    network = 0.01 * csr.FeatureNetwork(graph, signed="separate").on_scores()
    pairs = csr.Dissimilarity([(1, 0), (1, 3), (0, 2), (0, 3)], power=1)
    loss = csr.MulticlassHinge([0, 1, 0, 0], classes=[0, 1])
    problem = csr.Problem(csr.Kernel(4.0 * np.outer(x, x)), loss + csr.RKHSNorm() + network + pairs)
    found, reference = problem.solve("douglas_rachford", tol=1e-5), problem.solve("cvxpy", tol=1e-5)
    assert found.status == "optimal"
    assert abs(found.objective - reference.objective) <= found.certificate.gap + reference.certificate.gap
