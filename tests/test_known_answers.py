"""Problems whose answer is known, by hand or by another route."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from known_problems import (
    KERNEL,
    KINDS,
    LABELS,
    LOSSES,
    PAIRS,
    POINT,
    D,
    N,
    X,
    Y,
    assert_same,
    centred,
    minimum,
    solved,
)
from numpy.testing import assert_allclose, assert_array_equal

import cvxstructreg as csr

each_loss = pytest.mark.parametrize("loss, y", LOSSES.values(), ids=LOSSES)


class TestGroups:
    lists = ((0, 3), (1, 2, 4))

    def test_disjoint_groups_are_the_plain_group_lasso(self):
        groups = csr.Groups(self.lists, n_features=D, weights=[1.0, 2.0])
        solution = solved(csr.Linear(X), csr.Squared(Y) + 3.0 * csr.GroupLasso(groups))
        w, b = cp.Variable(D), cp.Variable()
        norms = [c * cp.norm(w[list(g)]) for c, g in zip([1.0, 2.0], self.lists, strict=True)]
        best = minimum(0.5 * cp.sum_squares(X @ w + b - Y) + 3.0 * cp.sum(norms))
        assert_allclose(solution.objective, best, rtol=1e-7)
        assert_allclose(solution.coef, w.value, atol=1e-4)

    @pytest.mark.parametrize("strength", [1.0, 8.0])
    def test_disjoint_groups_are_the_latent_norm_too(self, strength):
        groups = csr.Groups(self.lists, n_features=D, weights=[1.0, 2.0])
        direct = solved(csr.Linear(X), csr.Logistic(LABELS) + strength * csr.GroupLasso(groups))
        latent = solved(csr.Linear(X), csr.Logistic(LABELS) + strength * csr.LatentGroupLasso(groups))
        assert_same(direct, latent)
        w = POINT
        assert_allclose(csr.LatentGroupLasso(groups)(w), csr.GroupLasso(groups)(w), rtol=1e-12)

    def test_groups_of_one_feature_are_the_lasso(self):
        groups = csr.Groups([[j] for j in range(D)], n_features=D)
        assert_same(
            solved(csr.Linear(X), csr.Squared(Y) + 4.0 * csr.GroupLasso(groups)),
            solved(csr.Linear(X), csr.Squared(Y) + 4.0 * csr.L1()),
        )

    def test_overlapping_groups_have_two_meanings(self):
        groups = csr.Groups([[0, 1], [1, 2]], n_features=3)
        w = np.array([3.0, 4.0, 0.0])
        assert_allclose(csr.GroupLasso(groups)(w), 5.0 + 4.0)
        assert_allclose(csr.LatentGroupLasso(groups)(w), 5.0, rtol=1e-6)
        v = np.array([[3.0], [4.0], [1.0]])
        # latent: the survivors are the group {0, 1}; direct: dropping {1, 2} would drop feature 1 too
        assert_array_equal(csr.LatentGroupLasso(groups).prox(v, 3.0)[:, 0] != 0, [True, True, False])
        assert np.all(csr.GroupLasso(groups).prox(v, 1.0) != 0)

    def test_the_latent_norm_is_the_group_lasso_on_copied_features(self):
        lists = [[0, 1, 2], [2, 3], [1, 4]]
        groups = csr.Groups(lists, n_features=D)
        copies = csr.Groups([[0, 1, 2], [3, 4], [5, 6]], n_features=7)
        latent = solved(csr.Linear(X), csr.Squared(Y) + 3.0 * csr.LatentGroupLasso(groups))
        copied = solved(csr.Linear(X[:, np.concatenate(lists)]), csr.Squared(Y) + 3.0 * csr.GroupLasso(copies))
        assert_same(latent, copied)

    def test_the_strength_at_which_all_groups_vanish(self):
        groups = csr.Groups(self.lists, n_features=D, weights=[1.0, 2.0])
        pull = X.T @ (Y - Y.mean())
        highest = np.max(groups.norms(pull) / groups.weights)
        problem = csr.Linear(X), csr.Squared(Y)
        assert not solved(problem[0], problem[1] + 1.001 * highest * csr.GroupLasso(groups)).coef.any()
        assert solved(problem[0], problem[1] + 0.99 * highest * csr.GroupLasso(groups)).coef.any()


class TestGraphs:
    empty = csr.Graph(np.zeros((D, D)))
    signed = csr.Graph.from_edges([(0, 1), (1, 2), (0, 3), (3, 4), (2, 4)], [1.0, 2.0, -1.0, -0.5, 3.0], n_nodes=D)

    @pytest.mark.parametrize("penalty", [csr.FeatureNetwork, csr.Laplacian, csr.FusedLasso])
    def test_an_edgeless_graph_adds_nothing(self, penalty):
        assert penalty(self.empty)(POINT) == 0.0
        with_graph = csr.Logistic(LABELS) + 0.5 * csr.Ridge() + 7.0 * penalty(self.empty)
        assert_same(solved(csr.Linear(X), with_graph), solved(csr.Linear(X), csr.Logistic(LABELS) + 0.5 * csr.Ridge()))

    def test_signed_feature_networks_are_two_terms_or_one(self):
        W, w = self.signed.weights.toarray(), POINT
        similar, dissimilar = np.maximum(W, 0), np.maximum(-W, 0)

        def rows(weights):
            linked = weights.sum(axis=1) > 0
            return np.eye(D)[linked], weights[linked] / weights[linked].sum(axis=1, keepdims=True)

        (one, P), (other, Q) = rows(similar), rows(dissimilar)
        assert_allclose(csr.FeatureNetwork(self.signed.similarity())(w), np.sum(((one - P) @ w) ** 2))
        assert_allclose(csr.FeatureNetwork(self.signed.dissimilarity())(w), np.sum(((other + Q) @ w) ** 2))
        separate = np.sum(((one - P) @ w) ** 2) + np.sum(((other + Q) @ w) ** 2)
        assert_allclose(csr.FeatureNetwork(self.signed)(w), separate)
        mixed = W / np.abs(W).sum(axis=1, keepdims=True)
        joint = csr.FeatureNetwork(self.signed, signed="joint")(w)
        assert_allclose(joint, np.sum((w - mixed @ w) ** 2))
        assert abs(joint - separate) > 0.1

    def test_signed_feature_networks_split_in_a_problem(self):
        halves = 2.0 * csr.FeatureNetwork(self.signed.similarity()) + 2.0 * csr.FeatureNetwork(
            self.signed.dissimilarity()
        )
        rest = csr.Squared(Y) + 0.1 * csr.Ridge()
        whole = solved(csr.Linear(X), rest + 2.0 * csr.FeatureNetwork(self.signed))
        assert_same(whole, solved(csr.Linear(X), rest + halves))
        joint = solved(csr.Linear(X), rest + 2.0 * csr.FeatureNetwork(self.signed, signed="joint"))
        assert np.abs(whole.coef - joint.coef).max() > 1e-3

    def test_laplacians_by_their_sums(self):
        W, w = self.signed.weights.toarray(), POINT
        double = sum(abs(W[i, j]) * (w[i] - np.sign(W[i, j]) * w[j]) ** 2 for i in range(D) for j in range(D))
        assert_allclose(csr.Laplacian(self.signed)(w), 0.5 * double)
        scaled = w / np.sqrt(np.abs(W).sum(axis=1))
        assert_allclose(csr.Laplacian(self.signed, normalized=True)(w), csr.Laplacian(self.signed)(scaled))
        edges = sum(abs(W[i, j]) * abs(w[i] - np.sign(W[i, j]) * w[j]) for i in range(D) for j in range(i))
        assert_allclose(csr.FusedLasso(self.signed)(w), edges)

    @pytest.mark.parametrize("penalty", [csr.FeatureNetwork, csr.Laplacian])
    def test_virtual_nodes_are_class_means(self, penalty):
        pairs = [(0, 5), (1, 5), (2, 5), (3, 6), (4, 6)]
        graph = csr.Graph.from_edges(pairs, n_nodes=7, virtual=[5, 6], directed=penalty is csr.FeatureNetwork)
        w = POINT
        around = np.sum((w[:3] - w[:3].mean()) ** 2) + np.sum((w[3:] - w[3:].mean()) ** 2)
        assert_allclose(penalty(graph)(w), around)
        solution = solved(csr.Linear(X), csr.Squared(Y) + 6.0 * penalty(graph))
        u, b, means = cp.Variable(D), cp.Variable(), cp.Variable(2)
        distances = cp.sum_squares(u[:3] - means[0]) + cp.sum_squares(u[3:] - means[1])
        best = minimum(0.5 * cp.sum_squares(X @ u + b - Y) + 6.0 * distances)
        assert_allclose(solution.objective, best, rtol=1e-7)
        assert_allclose(solution.coef, u.value, atol=1e-4)

    def test_a_feature_of_two_classes_is_pulled_to_the_average_of_their_means(self):
        pairs, weights = [(0, 5), (1, 5), (2, 5), (2, 6), (3, 6), (4, 6)], [1.0, 1.0, 3.0, 1.0, 1.0, 1.0]
        graph = csr.Graph.from_edges(pairs, weights, n_nodes=7, virtual=[5, 6], directed=True)
        w, means = POINT, cp.Variable(2)
        distances = cp.sum_squares(w[:2] - means[0]) + cp.sum_squares(w[3:] - means[1])
        best = minimum(distances + cp.square(w[2] - 0.75 * means[0] - 0.25 * means[1]))
        assert_allclose(csr.FeatureNetwork(graph)(w), best, rtol=1e-6)

    def test_feature_network_with_ridge_is_ridge_in_other_coordinates(self):
        alpha, beta, graph = 3.0, 0.2, self.signed.similarity()
        factor = csr.FeatureNetwork(graph).quadratic(D).matrix.toarray()
        values, vectors = np.linalg.eigh(factor)
        rotated = csr.Linear(X @ vectors / np.sqrt(alpha * values + beta))
        objective = csr.Logistic(LABELS) + alpha * csr.FeatureNetwork(graph) + beta * csr.Ridge()
        assert_same(solved(csr.Linear(X), objective), solved(rotated, csr.Logistic(LABELS) + csr.Ridge()))

    def test_a_strong_fused_lasso_makes_connected_weights_equal(self):
        chain = csr.Graph.from_edges([(j, j + 1) for j in range(9)], n_nodes=10)
        y = Y[:10]
        solution = solved(csr.Linear(np.eye(10), intercept=False), csr.Squared(y) + 100.0 * csr.FusedLasso(chain))
        assert_allclose(solution.coef, y.mean(), atol=1e-4)


class TestKernels:
    @each_loss
    def test_the_linear_kernel_is_the_linear_model(self, loss, y):
        by_kernel = solved(csr.Kernel(X @ X.T), loss(y) + 0.5 * csr.RKHSNorm())
        assert_same(by_kernel, solved(csr.Linear(X), loss(y) + 0.5 * csr.RKHSNorm()))
        assert_same(by_kernel, solved(csr.Linear(X), loss(y) + 0.5 * csr.Ridge()))

    def test_scores_penalised_by_a_graph_are_weights_penalised_by_its_image(self):
        graph = csr.Graph.from_edges(PAIRS, [1.0, 2.0, -1.0, 0.5], n_nodes=N)
        on_scores = csr.Squared(Y) + 0.3 * csr.Laplacian(graph).on_scores() + 0.1 * csr.Ridge()
        image = csr.Quadratic(matrix=X.T @ graph.laplacian().toarray() @ X)
        model = csr.Linear(X, intercept=False)
        assert_same(solved(model, on_scores), solved(model, csr.Squared(Y) + 0.3 * image + 0.1 * csr.Ridge()))

    @pytest.mark.parametrize("loss", [csr.Hinge, csr.SquaredHinge])
    def test_a_graph_on_the_scores_is_a_warped_kernel(self, loss):
        lam1, lam2, rows = 0.3, 0.2, np.arange(10)
        graph = csr.Graph.from_edges(PAIRS, [1.0, 2.0, -1.0, 0.5], n_nodes=N)
        M = (lam2 / lam1) * graph.laplacian().toarray()
        warped = KERNEL @ np.linalg.inv(np.eye(N) + M @ KERNEL)
        labelled = loss(LABELS[rows], rows=rows)
        with_graph = labelled + lam1 * csr.RKHSNorm() + lam2 * csr.Laplacian(graph).on_scores()
        one = solved(csr.Kernel(KERNEL, intercept=False), with_graph)
        other = solved(csr.Kernel(warped, intercept=False), labelled + lam1 * csr.RKHSNorm())
        assert_same(one, other)

    @pytest.mark.parametrize("loss", [csr.MulticlassHinge, csr.Multinomial])
    def test_the_norm_of_the_function_follows_from_its_scores(self, loss):
        solution = solved(csr.Kernel(KERNEL, intercept=False), loss(KINDS) + 0.1 * csr.RKHSNorm())
        norm = np.sum(solution.scores * np.linalg.solve(KERNEL, solution.scores))
        assert_allclose(solution.objective, loss(KINDS)(solution.scores) + 0.1 * norm, rtol=1e-6)


class TestMulticlass:
    @pytest.mark.parametrize("power", [1, 2])
    def test_two_classes_are_the_binary_problem(self, power):
        # F = (-f, f): (F_ij + 1)_+ = (1 - y f)_+, sum_j (F_sj + F_tj)_+^p = |f_s + f_t|^p, tr(C'KC) = 2 c'Kc
        pairs = csr.Dissimilarity(PAIRS, power=power)
        two = csr.MulticlassHinge(LABELS[:12], rows=np.arange(12)) + 0.3 * pairs + 0.1 * csr.RKHSNorm()
        one = csr.Hinge(LABELS[:12], rows=np.arange(12)) + 0.3 * pairs + 0.2 * csr.RKHSNorm()
        multiclass, binary = solved(csr.Kernel(KERNEL), two), solved(csr.Kernel(KERNEL), one)
        assert_allclose(multiclass.objective, binary.objective, rtol=1e-7)
        expected = np.column_stack([-binary.scores, binary.scores])
        assert_allclose(centred(multiclass.scores), expected, atol=1e-4)

    def test_two_classes_of_the_multinomial_loss_are_the_logistic_loss(self):
        # F = (-f/2, f/2) has the same loss as f, and ||W||^2 = ||w||^2 / 2
        two = solved(csr.Linear(X), csr.Multinomial(LABELS) + 0.6 * csr.Ridge(), tol=1e-11)
        one = solved(csr.Linear(X), csr.Logistic(LABELS) + 0.3 * csr.Ridge(), tol=1e-11)
        assert_allclose(two.objective, one.objective, rtol=1e-7)
        assert_allclose(two.scores[:, 1] - two.scores[:, 0], one.scores, atol=1e-4)

    def test_the_constraint_is_built_in(self):
        solution = solved(csr.Linear(X), csr.MulticlassHinge(KINDS) + 0.2 * csr.Ridge())
        W, b = cp.Variable((D, 3)), cp.Variable((1, 3))
        F = X @ W + np.ones((N, 1)) @ b
        wrong = np.arange(3)[None, :] != KINDS[:, None]
        hinges = cp.sum(cp.multiply(wrong.astype(float), cp.pos(F + 0.5)))
        best = minimum(hinges + 0.2 * cp.sum_squares(W), [F @ np.ones(3) == 0])
        assert_allclose(solution.objective, best, rtol=1e-6)
        assert_allclose(solution.coef.sum(axis=1), 0.0, atol=1e-4)
        assert_allclose(solution.coef, W.value, atol=1e-4)

    def test_the_textbook_dissimilarity_problem(self):
        rows = np.arange(8)
        pairs = csr.Dissimilarity(PAIRS, power=1)
        objective = csr.MulticlassHinge(KINDS[rows], rows=rows) + 0.05 * csr.RKHSNorm() + 0.4 * pairs
        solution = solved(csr.Kernel(KERNEL), objective)
        C, b = cp.Variable((N, 3)), cp.Variable((1, 3))
        F = KERNEL @ C + np.ones((N, 1)) @ b
        wrong = (np.arange(3)[None, :] != KINDS[rows][:, None]).astype(float)
        hinges = cp.sum(cp.multiply(wrong, cp.pos(F[rows] + 0.5)))
        s, t = np.array(PAIRS).T
        alike = cp.sum(cp.pos(F[s] + F[t] - 0.5))
        norm = cp.sum_squares(np.linalg.cholesky(KERNEL).T @ C)
        best = minimum(hinges + 0.4 * alike + 0.05 * norm, [F @ np.ones(3) == 0])
        assert_allclose(solution.objective, best, rtol=1e-6)
        assert_allclose(centred(solution.scores), F.value, atol=1e-4)


class TestClosedForms:
    Q = np.linalg.qr(X)[0]

    def test_the_lasso_of_an_orthogonal_design_is_soft_thresholding(self):
        pull, lam = self.Q.T @ Y, 0.8
        solution = solved(csr.Linear(self.Q, intercept=False), csr.Squared(Y) + lam * csr.L1())
        assert_allclose(solution.coef, np.sign(pull) * np.maximum(np.abs(pull) - lam, 0.0), atol=1e-4)

    def test_the_group_lasso_of_an_orthogonal_design_shortens_groups(self):
        pull, lam, lists = self.Q.T @ Y, 1.5, [[0, 1], [2, 3, 4]]
        groups = csr.Groups(lists, n_features=D)
        solution = solved(csr.Linear(self.Q, intercept=False), csr.Squared(Y) + lam * csr.GroupLasso(groups))
        for g in lists:
            expected = max(0.0, 1.0 - lam / np.linalg.norm(pull[g])) * pull[g]
            assert_allclose(solution.coef[g], expected, atol=1e-4)

    @pytest.mark.parametrize("name", ["Squared", "Logistic", "SquaredHinge"])
    @pytest.mark.parametrize("sparse", [False, True])
    def test_weights_vanish_from_lambda_max_on(self, name, sparse):
        loss = LOSSES[name][0](LOSSES[name][1])
        null = scipy.optimize.minimize_scalar(lambda b: loss(np.full(N, b)), bracket=(-1, 1), tol=1e-14).x
        highest = np.max(np.abs(X.T @ loss.grad(np.full((N, 1), null))))
        model = csr.Linear(sp.csr_array(X) if sparse else X)
        above = solved(model, loss + 1.0001 * highest * csr.L1())
        assert_array_equal(above.coef, np.zeros(D))
        assert_allclose(above.intercept, null, atol=1e-4)
        assert np.count_nonzero(solved(model, loss + 0.99 * highest * csr.L1()).coef) == 1

    @pytest.mark.parametrize("solver", ["auto", "admm", "cvxpy"])
    def test_terms_without_strength_change_nothing(self, solver):
        graph, groups = TestGraphs.signed, csr.Groups([[0, 1], [1, 2]], n_features=D)
        rest = csr.Squared(Y) + 0.7 * csr.Ridge()
        absent = 0 * csr.GroupLasso(groups) + 0.0 * csr.LatentGroupLasso(groups) + 0 * csr.Quadratic(matrix=np.eye(D))
        absent += 0 * csr.Laplacian(graph) + 0 * csr.FusedLasso(graph) + 0 * csr.Dissimilarity(PAIRS)
        absent += 0 * csr.L1() + 0 * csr.Hinge(LABELS) + 0 * csr.Laplacian(csr.Graph(KERNEL - np.eye(N))).on_scores()
        assert_same(solved(csr.Linear(X), rest + absent, solver=solver), solved(csr.Linear(X), rest, solver=solver))

    @pytest.mark.parametrize("solver", ["fista", "admm", "cvxpy"])
    def test_bounds_hold_whatever_their_strength(self, solver):
        objective = csr.Squared(Y) + 0 * csr.NonNegative() + 0.5 * csr.Box(-1.0, 0.4)
        solution = solved(csr.Linear(X), objective, solver=solver, tol=1e-7)
        same = solved(csr.Linear(X), csr.Squared(Y) + csr.Box(0.0, 0.4))
        assert solution.coef.min() >= 0.0 and solution.coef.max() <= 0.4
        assert_allclose(solution.objective, same.objective, rtol=1e-6)

    @pytest.mark.parametrize("solver", ["admm", "cvxpy"])
    def test_bounds_on_the_scores(self, solver):
        objective = csr.Squared(Y) + csr.Box(-1.0, 1.0).on_scores() + 0.1 * csr.Ridge()
        solution = solved(csr.Linear(X), objective, solver=solver, tol=1e-8)
        w, b = cp.Variable(D), cp.Variable()
        f = X @ w + b
        best = minimum(0.5 * cp.sum_squares(f - Y) + 0.1 * cp.sum_squares(w), [f <= 1.0, f >= -1.0])
        assert_allclose(solution.objective, best, rtol=1e-7)
        assert_allclose(solution.coef, w.value, atol=1e-4)

    def test_splitting_a_strength_changes_nothing(self):
        one = solved(csr.Linear(X), csr.Squared(Y) + 1.5 * csr.L1() + 0.5 * csr.Ridge())
        two = solved(csr.Linear(X), 0.4 * csr.Squared(Y) + 0.6 * (csr.Squared(Y) + 2.5 * csr.L1()) + 0.5 * csr.Ridge())
        assert_same(one, two)


class TestSamples:
    @each_loss
    def test_a_weight_of_two_is_a_row_twice(self, loss, y):
        weights = np.ones(N)
        weights[[1, 4]] = 2.0
        again = np.concatenate([np.arange(N), [1, 4]])
        once = solved(csr.Linear(X), loss(y, sample_weight=weights) + 0.5 * csr.Ridge())
        twice = solved(csr.Linear(X[again]), loss(y[again]) + 0.5 * csr.Ridge())
        assert_allclose(once.objective, twice.objective, rtol=1e-7)
        assert_allclose(once.coef, twice.coef, atol=1e-4)

    @each_loss
    def test_a_weight_of_zero_is_no_row(self, loss, y):
        weights = np.ones(N)
        weights[[1, 4]] = 0.0
        rest = np.delete(np.arange(N), [1, 4])
        zero = solved(csr.Linear(X), loss(y, sample_weight=weights) + 0.5 * csr.Ridge())
        less = solved(csr.Linear(X[rest]), loss(y[rest]) + 0.5 * csr.Ridge())
        assert_allclose(zero.objective, less.objective, rtol=1e-7)
        assert_allclose(zero.coef, less.coef, atol=1e-4)

    @each_loss
    def test_labelled_rows_are_the_subset(self, loss, y):
        rows = np.array([17, 3, 8, 9, 20, 2, 12, 0, 5, 1, 14])
        some = solved(csr.Linear(X), loss(y[rows], rows=rows) + 0.5 * csr.Ridge())
        subset = solved(csr.Linear(X[rows]), loss(y[rows]) + 0.5 * csr.Ridge())
        assert_allclose(some.objective, subset.objective, rtol=1e-7)
        assert_allclose(some.coef, subset.coef, atol=1e-4)
        assert some.scores.shape[0] == N

    @each_loss
    def test_scaling_everything_scales_the_objective(self, loss, y):
        one = solved(csr.Linear(X), loss(y) + 0.5 * csr.Ridge())
        ten = solved(csr.Linear(X), loss(y, sample_weight=np.full(N, 10.0)) + 5.0 * csr.Ridge())
        assert_allclose(ten.objective, 10.0 * one.objective, rtol=1e-7)
        assert_allclose(ten.coef, one.coef, atol=1e-4)

    def test_shifted_targets_shift_the_intercept_only(self):
        objective = 0.5 * csr.L1() + 0.5 * csr.Ridge()
        plain = solved(csr.Linear(X), csr.Squared(Y) + objective)
        shifted = solved(csr.Linear(X), csr.Squared(Y + 100.0) + objective)
        assert_allclose(shifted.objective, plain.objective, rtol=1e-6)
        assert_allclose(shifted.coef, plain.coef, atol=1e-4)
        assert_allclose(shifted.intercept, plain.intercept + 100.0, atol=1e-4)

    def test_swapped_classes_flip_the_sign(self):
        one = solved(csr.Linear(X), csr.Logistic(LABELS) + 0.5 * csr.L1())
        other = solved(csr.Linear(X), csr.Logistic(LABELS, classes=(1, 0)) + 0.5 * csr.L1())
        assert_allclose(one.coef, -other.coef, atol=1e-6)

    @pytest.mark.parametrize("loss", [csr.Multinomial, csr.MulticlassHinge])
    def test_the_order_of_classes_is_the_order_of_columns(self, loss):
        one = solved(csr.Linear(X), loss(KINDS) + 0.5 * csr.Ridge())
        other = solved(csr.Linear(X), loss(KINDS, classes=(2, 0, 1)) + 0.5 * csr.Ridge())
        assert_allclose(one.coef[:, [2, 0, 1]], other.coef, atol=1e-4)


def test_rows_that_are_nearly_certain_keep_the_digits_of_the_multinomial_loss():
    loss, scores = csr.Multinomial([0, 1, 2], sample_weight=[1000.0, 1.0, 1e-4]), 40.0 * np.eye(3)
    small = np.exp(-40.0)
    assert loss.value(scores) == pytest.approx(1001.0001 * 2.0 * small, rel=1e-12)
    expected = np.array([[1000.0], [1.0], [1e-4]]) * small * (1.0 - 3.0 * np.eye(3))
    assert np.allclose(loss.grad(scores), expected, rtol=1e-12, atol=0.0)
    far = csr.Multinomial([0, 1, 2]).value(np.array([[-900.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 900.0]]))
    assert far == pytest.approx(900.0 + np.log(2.0) + np.log(3.0), rel=1e-14)
