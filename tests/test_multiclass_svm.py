"""The multiclass support vector machine with dissimilar pairs: fast solvers against CVXPY and the textbook."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.forms import centred_hinge
from cvxstructreg.reductions.sum_to_zero_program import row_coordinates
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.iterate import Iterate
from cvxstructreg.solvers.multiclass import compiled_hinge, douglas_rachford, hinge_newton, hinge_polish
from cvxstructreg.solvers.multiclass.anderson import Anderson
from cvxstructreg.solvers.multiclass.hinge_bounds import Bounds
from cvxstructreg.solvers.multiclass.hinge_intercepts import best_intercepts
from cvxstructreg.solvers.multiclass.hinge_rows import HingeRows, geometry
from cvxstructreg.testing import check_solver
from random_problems import random_graph

RNG = np.random.default_rng(0)
N, K = 24, 3
X = RNG.normal(size=(N, 2))
Y = np.arange(N) % K
X[:, 0] += Y
RBF = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
ROWS = np.array([0, 1, 2, 5, 7, 9, 12, 13])
PAIRS = np.array([(3, 4), (6, 8), (0, 10), (1, 2), (14, 15), (16, 20), (3, 8)])


def random_problem(seed, models=("rbf", "low rank", "linear", "sparse"), graphs=(None, "similar", "signed")):
    """A multiclass problem of any kind: pairs of either power, weights, edges, with and without intercept."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(12, 30)), int(rng.integers(2, 5))
    labelled = int(rng.integers(k, n - 4))
    points = rng.normal(size=(n, 3))
    y = rng.permutation(np.arange(labelled) % k)
    rows, weights = rng.permutation(n)[:labelled], rng.uniform(0.2, 2.0, size=labelled)
    objective = float(rng.uniform(0.2, 2.0)) * csr.MulticlassHinge(y, rows=rows, sample_weight=weights)
    i, j = np.triu_indices(n, 1)
    for power in (1, 2):
        picked = rng.permutation(len(i))[: rng.integers(0, 6)]
        pairs = np.stack([i[picked], j[picked]], axis=1)
        costs = rng.uniform(0.2, 2.0, size=len(pairs))
        objective = objective + float(rng.uniform(0.1, 2.0)) * csr.Dissimilarity(pairs, power=power, weights=costs)
    graph = graphs[rng.integers(len(graphs))]
    if graph is not None:
        edges = random_graph(rng, n, graph == "signed")
        objective = objective + float(rng.uniform(0.05, 1.0)) * csr.Laplacian(edges).on_scores()
    intercept, lam = bool(rng.integers(2)), 10 ** float(rng.uniform(-2.0, 0.5))
    model = models[rng.integers(len(models))]
    if model in ("rbf", "low rank"):
        squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
        gram = np.exp(-0.5 * squares) if model == "rbf" else points @ points.T
        return csr.Problem(csr.Kernel(gram, intercept=intercept), objective + lam * csr.RKHSNorm())
    if model == "linear":
        return csr.Problem(csr.Linear(points, intercept=intercept), objective + lam * csr.Ridge())
    design = sp.csr_array(points * (rng.random(points.shape) < 0.7))
    ridge = csr.Ridge(weights=rng.uniform(0.5, 2.0, size=3))
    return csr.Problem(csr.Linear(design, intercept=intercept), objective + lam * ridge)


def standard(power=1, model=None, pairs=PAIRS, **more):
    """Eight labelled points, seven pairs."""
    objective = csr.MulticlassHinge(Y[ROWS], rows=ROWS) + 0.05 * csr.RKHSNorm()
    objective = objective + 0.4 * csr.Dissimilarity(pairs, power=power, **more)
    return csr.Problem(model or csr.Kernel(RBF), objective)


def textbook(gram, y, rows, pairs, lam1, lam2, power, intercept):
    """Eq. (12): all n x k coefficients, scores of zero sum at all points, a quadratic form for each class."""
    n, k = len(gram), int(y.max()) + 1
    C, b = cp.Variable((n, k)), cp.Variable((1, k))
    F = gram @ C + (np.ones((n, 1)) @ b if intercept else 0.0)
    wrong = (np.arange(k)[None, :] != y[:, None]).astype(float)
    loss = cp.sum(cp.multiply(wrong, cp.pos(F[rows] + 1.0 / (k - 1))))
    alike = cp.sum(cp.pos(F[pairs[:, 0]] + F[pairs[:, 1]] - (k - 2) / (k - 1)) ** power)
    norm = cp.sum([cp.quad_form(C[:, j], cp.psd_wrap(gram)) for j in range(k)])
    problem = cp.Problem(cp.Minimize(loss + lam1 * norm + lam2 * alike), [F @ np.ones(k) == 0])
    accuracy = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    return problem.solve(solver=cp.CLARABEL, **accuracy), F.value


class TestAgainstReferences:
    @pytest.mark.parametrize("seed", range(25))
    def test_splitting_on_random_problems(self, seed):
        check_solver("douglas_rachford", random_problem(seed))

    @pytest.mark.parametrize("seed", range(25))
    def test_newton_on_random_problems(self, seed):
        check_solver("hinge_newton", random_problem(seed, models=("linear", "sparse")))

    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("power", [1, 2])
    def test_the_textbook_program(self, power, intercept):
        problem = standard(power, csr.Kernel(RBF, intercept=intercept))
        solution = problem.solve(tol=1e-9)
        assert (solution.solver, solution.status) == ("douglas_rachford", "optimal")
        best, F = textbook(RBF, Y[ROWS], ROWS, PAIRS, 0.05, 0.4, power, intercept)
        assert_allclose(solution.objective, best, rtol=1e-7)
        assert_allclose(solution.scores, F, atol=1e-4)
        assert_allclose(solution.scores.sum(axis=1), 0.0, atol=1e-9)  # also where nothing is labelled

    def test_a_linear_kernel_is_the_linear_model(self):
        kernel = standard(model=csr.Kernel(X @ X.T)).solve(tol=1e-9)
        linear = standard(model=csr.Linear(X)).solve(tol=1e-9)
        assert (kernel.solver, linear.solver) == ("douglas_rachford", "hinge_newton")
        assert_allclose(kernel.objective, linear.objective, rtol=1e-8)
        assert_allclose(kernel.scores, linear.scores, atol=1e-4)

    @pytest.mark.parametrize("intercept", [True, False])
    def test_similarity_edges_are_a_warped_kernel(self, intercept):
        graph = csr.Graph.from_edges([(3, 6), (4, 8), (0, 14), (15, 16)], [1.0, 2.0, 0.5, 1.0], n_nodes=N)
        model = csr.Kernel(RBF, intercept=intercept)
        base = csr.MulticlassHinge(Y[ROWS], rows=ROWS) + 0.05 * csr.RKHSNorm() + 0.4 * csr.Dissimilarity(PAIRS)
        one = csr.Problem(model, base + 0.2 * csr.Laplacian(graph).on_scores()).solve(tol=1e-9)
        M = (0.2 / 0.05) * graph.laplacian().toarray()
        warped = RBF @ np.linalg.inv(np.eye(N) + M @ RBF)
        other = csr.Problem(csr.Kernel((warped + warped.T) / 2, intercept=intercept), base).solve(tol=1e-9)
        assert_allclose(one.objective, other.objective, rtol=1e-8)
        assert_allclose(one.scores, other.scores, atol=1e-5)


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


class TestSpecialCases:
    @pytest.mark.parametrize("power", [1, 2])
    def test_two_classes_are_the_binary_method(self, power):
        labels = np.where(Y[ROWS] == 0, 0, 1)
        pairs = csr.Dissimilarity(PAIRS, power=power)
        two = csr.MulticlassHinge(labels, rows=ROWS) + 0.3 * pairs + 0.1 * csr.RKHSNorm()
        one = csr.Hinge(labels, rows=ROWS) + 0.3 * pairs + 0.2 * csr.RKHSNorm()
        fast = csr.Problem(csr.Kernel(RBF), two).solve("douglas_rachford", tol=1e-9)
        binary = csr.Problem(csr.Kernel(RBF), one).solve("cvxpy", tol=1e-7)
        assert_allclose(fast.objective, binary.objective, rtol=1e-6)
        assert_allclose(fast.scores, np.column_stack([-binary.scores, binary.scores]), atol=1e-4)

    def test_without_pairs_it_is_the_machine_of_lee_lin_and_wahba(self):
        plain = csr.MulticlassHinge(Y[ROWS], rows=ROWS) + 0.05 * csr.RKHSNorm()
        solution = csr.Problem(csr.Kernel(RBF), plain).solve(tol=1e-9)
        best, F = textbook(RBF, Y[ROWS], ROWS, PAIRS, 0.05, 0.0, 1, True)
        assert_allclose(solution.objective, best, rtol=1e-7)
        assert_allclose(solution.scores, F, atol=1e-4)
        empty = csr.Problem(csr.Kernel(RBF), plain + 1.0 * csr.Dissimilarity([])).solve(tol=1e-9)
        assert_allclose(empty.objective, solution.objective, rtol=1e-9)

    def test_a_strong_norm_leaves_only_the_intercept(self):
        problem = csr.Problem(csr.Kernel(RBF), csr.MulticlassHinge(Y) + 1e4 * csr.RKHSNorm())
        solution = problem.solve()
        assert solution.status == "optimal"
        assert_allclose(np.ptp(solution.scores, axis=0), 0.0, atol=1e-2)

    def test_pairs_of_labelled_points(self):
        for pairs in ([(0, 1)], [(0, 1), (1, 2), (5, 7)]):
            check_solver("douglas_rachford", standard(pairs=np.array(pairs)))
        alike = [(0, 9)]  # both of class 0: the pair contradicts the labels, which is no error
        assert Y[0] == Y[9]
        check_solver("douglas_rachford", standard(pairs=np.array(alike)))

    def test_a_pair_that_is_similar_and_dissimilar_at_once(self):
        graph = csr.Graph.from_edges(PAIRS[:2], n_nodes=N)
        objective = csr.MulticlassHinge(Y[ROWS], rows=ROWS) + 0.05 * csr.RKHSNorm() + 0.4 * csr.Dissimilarity(PAIRS)
        check_solver("douglas_rachford", csr.Problem(csr.Kernel(RBF), objective + csr.Laplacian(graph).on_scores()))

    @pytest.mark.parametrize("solver", ["douglas_rachford", "hinge_newton"])
    def test_one_labelled_point_and_classes_without_any(self, solver):
        model = csr.Kernel(RBF) if solver == "douglas_rachford" else csr.Linear(X)
        one = csr.MulticlassHinge([1], rows=[4], classes=(0, 1, 2)) + 0.1 * csr.RKHSNorm()
        check_solver(solver, csr.Problem(model, one + 0.5 * csr.Dissimilarity(PAIRS)))
        solution = csr.Problem(model, one).solve()
        assert np.argmax(solution.scores[4]) == 1

    @pytest.mark.parametrize("pairs", [[], PAIRS])
    @pytest.mark.parametrize("costs", [(1e3, 1e-4), (1.0, 1e-4), (1e4, 1e-4), (1e3, 1e-2)])
    def test_class_weights_of_different_orders(self, costs, pairs):
        for seed in range(3):
            labels = np.random.default_rng(seed).permutation(np.arange(len(ROWS)) % 2)
            weights = np.where(labels == 0, *costs)
            objective = csr.MulticlassHinge(labels, rows=ROWS, sample_weight=weights) + 0.05 * csr.RKHSNorm()
            problem = csr.Problem(csr.Kernel(RBF), objective + csr.Dissimilarity(pairs))
            assert problem.solve("douglas_rachford", max_iter=500).status == "optimal"

    def test_zero_weights(self):
        loss = csr.MulticlassHinge(Y[ROWS], rows=ROWS, sample_weight=[1, 0, 2, 0, 1, 1, 1, 1])
        pairs = csr.Dissimilarity(PAIRS, weights=[0, 1, 1, 0, 1, 1, 1])
        check_solver("douglas_rachford", csr.Problem(csr.Kernel(RBF), loss + 0.05 * csr.RKHSNorm() + 0.4 * pairs))


class TestBehaviour:
    @pytest.mark.parametrize("model", [csr.Kernel(RBF), csr.Linear(X)])
    def test_warm_starts(self, model):
        cold = standard(model=model).solve(tol=1e-8)
        again = standard(model=model).solve(tol=1e-8, warm_start=cold)
        assert again.status == "optimal"
        assert again.n_iter <= cold.n_iter
        assert_allclose(again.objective, cold.objective, rtol=1e-7)
        weights_only = standard(model=model).solve(tol=1e-8, warm_start=(cold.coef, cold.intercept))
        assert_allclose(weights_only.objective, cold.objective, rtol=1e-7)

    @pytest.mark.parametrize("model", [csr.Kernel(RBF), csr.Linear(X)])
    def test_limits_are_honest(self, model):
        optimum = standard(model=model).solve(tol=1e-9)
        for limit in ({"max_iter": 1}, {"max_iter": 5}, {"time_limit": 1e-9}):
            with pytest.warns(csr.InaccurateWarning, match="gap"):
                short = standard(model=model).solve(tol=1e-12, **limit)
            assert short.status in limit
            assert 0 <= short.objective - optimum.objective <= short.certificate.gap + 1e-9 * optimum.objective

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10_000), st.integers(1, 60))
    def test_no_negative_gap(self, seed, max_iter):
        problem = random_problem(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", csr.InaccurateWarning)
            solution = problem.solve(max_iter=max_iter)
        assert solution.solver in ("douglas_rachford", "hinge_newton")
        theta, b = problem.shaped(solution.coef, solution.intercept)
        certificate = certify_point(problem, theta, b, solution.dual)
        assert certificate.gap >= 0
        assert all(record.certificate.gap >= 0 for record in solution.history)

    def test_the_certificate_is_as_tight_as_the_solver(self):
        for seed in range(10):
            solution = random_problem(seed).solve(tol=1e-9)
            assert solution.certificate.relative_gap <= 1e-9

    @pytest.mark.parametrize("options", [{"memory": 0}, {"polish": False}, {"sigma": 0.3}])
    def test_options_change_the_way_and_not_the_end(self, options):
        expected = standard().solve(tol=1e-7)
        assert_allclose(
            standard().solve("douglas_rachford", tol=1e-7, **options).objective, expected.objective, rtol=1e-6
        )

    def test_refusals(self):
        def reason(solver, model, objective):
            return solver.SOLVER.refusal(csr.Problem(model, objective)).reason

        loss, kernel = csr.MulticlassHinge(Y), csr.Kernel(RBF)
        assert "2 or more outputs" in reason(douglas_rachford, kernel, csr.Hinge(Y % 2) + csr.RKHSNorm())
        assert "no hinges of centred scores" in reason(douglas_rachford, kernel, csr.Multinomial(Y) + csr.RKHSNorm())
        assert "only quadratic terms on the weights" in reason(douglas_rachford, csr.Linear(X), loss + csr.L1())
        assert "RKHSNorm" in reason(douglas_rachford, kernel, loss + csr.Ridge())
        assert "penalises every weight" in reason(douglas_rachford, csr.Linear(X), loss + csr.Ridge(weights=[1.0, 0.0]))
        assert "Linear models" in reason(hinge_newton, kernel, loss + csr.RKHSNorm())
        assert "features" in reason(hinge_newton, csr.Linear(RBF), loss + csr.Ridge())
        assert registry.choose(csr.Problem(csr.Linear(RBF), loss + csr.Ridge()), "auto") is douglas_rachford.SOLVER


class TestBadInput:
    def test_an_indefinite_kernel(self):
        values, vectors = np.linalg.eigh(RBF)
        indefinite = (vectors * np.where(values > 1.0, values, -values)) @ vectors.T
        with pytest.raises(ValueError, match=r"positive semidefinite.*add at least .* to its diagonal"):
            standard(model=csr.Kernel((indefinite + indefinite.T) / 2)).solve("douglas_rachford")

    @pytest.mark.parametrize(
        "gram, message",
        [
            (RBF + np.triu(np.ones((N, N)), 1), "symmetric"),
            (np.where(np.eye(N) > 0, np.nan, RBF), "NaN"),
            (RBF[:5], "square"),
        ],
    )
    def test_other_matrices_that_are_no_kernels(self, gram, message):
        with pytest.raises(ValueError, match=message):
            csr.Kernel(gram)

    def test_one_class(self):
        with pytest.raises(ValueError, match="only one class"):
            csr.MulticlassHinge([0, 0, 0])

    @pytest.mark.parametrize(
        "solver, options",
        [("douglas_rachford", {"sigma": -1.0}), ("douglas_rachford", {"memory": -1}), ("hinge_newton", {"growth": 1})],
    )
    def test_options(self, solver, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            standard(model=csr.Linear(X)).solve(solver, **options)


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
