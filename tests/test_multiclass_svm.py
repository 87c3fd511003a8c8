"""The multiclass support vector machine with dissimilar pairs: solvers against CVXPY, special cases, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multiclass_machines import PAIRS, RBF, ROWS, N, X, Y, random_problem, standard, textbook
from numpy.testing import assert_allclose

import cvxstructreg as csr
from cvxstructreg.certificates.certificate import certify_point
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.multiclass import douglas_rachford, hinge_newton
from cvxstructreg.testing import check_solver


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
