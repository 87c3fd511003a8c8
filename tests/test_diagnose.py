"""Wrong solvers are diagnosed: the strength, convention or mistake that explains their weights is named."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.svm import LinearSVC

import cvxstructreg as csr

RNG = np.random.default_rng(0)
N, D, LAM = 120, 8, 5.0
X = RNG.normal(size=(N, D)) * RNG.uniform(0.3, 3.0, D) + RNG.normal(size=D)
Y = X @ [1.0, -2.0, 0.5, 0.0, 0.0, 0.0, 1.0, 0.0] + RNG.normal(size=N) + 2.0
LABEL = np.where(np.median(Y) < Y, 1, 0)
NAMES = tuple("abcdefgh")


def lasso(lam=LAM):
    return csr.Problem(csr.Linear(X), csr.Squared(Y) + lam * csr.L1())


def ridge_logistic(lam=0.5, label=LABEL):
    return csr.Problem(csr.Linear(X), csr.Logistic(label) + lam * csr.Ridge())


def ista(steps=3000, sign=1.0, step=1.0, threshold=1.0, mean=False, intercept=True):
    """Proximal gradient for the lasso, with places for mistakes."""
    w, b, t = np.zeros(D), 0.0, step / (np.linalg.norm(np.column_stack([X, np.ones(N)]), 2) ** 2)
    for _ in range(steps):
        residual = (X @ w + b - Y) / (N if mean else 1)
        w = w - sign * t * (N if mean else 1) * (X.T @ residual)
        w = np.sign(w) * np.maximum(np.abs(w) - threshold * LAM * t * (N if mean else 1), 0.0)
        b = b - t * residual.sum() * (N if mean else 1) if intercept else 0.0
    return w, b


def words(diagnosis):
    return [item.words for item in diagnosis.explanations]


class TestWrongSolvers:
    def test_a_right_one_is_optimal(self):
        diagnosis = csr.diagnose(lasso(), ista())
        assert diagnosis.is_optimal and not diagnosis.explanations
        assert str(diagnosis).startswith("The weights are optimal")

    def test_a_doubled_threshold(self):
        diagnosis = csr.diagnose(lasso(), ista(threshold=2.0))
        assert words(diagnosis) == ["for 10 * L1(), twice your strength"]
        (found,) = diagnosis.explanations
        assert csr.certify(found.problem, found.coef, found.intercept).relative_gap <= 1e-5
        sizes = [item.size for item in diagnosis.violations if item.kind == "feature" and item.weight != 0]
        assert sizes[0] == pytest.approx(LAM, rel=1e-3)

    def test_a_mean_for_a_sum(self):
        few = 0.2
        diagnosis = csr.diagnose(lasso(few), Lasso(alpha=few, tol=1e-10).fit(X, Y))
        assert words(diagnosis) == [
            "for 24 * L1(), 120 times your strength: the loss is a mean over rows there, not a sum"
        ]

    def test_a_wrong_sign_of_the_weights_and_of_the_step(self):
        w, b = ista()
        assert words(csr.diagnose(lasso(), -w, -b)) == ["with the opposite sign"]
        diverged = csr.diagnose(lasso(), ista(steps=3, sign=-1.0))
        assert not diverged.explanations and "diverges, or a sign is wrong" in diverged.remark

    def test_a_forgotten_intercept(self):
        w, b = ista()
        assert words(csr.diagnose(lasso(), w)) == [f"with the intercept {b:.6g}: the intercept is missing"]
        assert words(csr.diagnose(lasso(), w, b + 1.0)) == [f"with the intercept {b:.6g}: the intercept is off"]
        diagnosis = csr.diagnose(lasso(), ista(intercept=False))
        assert words(diagnosis) == ["for a model without intercept"]
        assert diagnosis.violations[0].kind == "intercept"

    @pytest.mark.parametrize("mistake", [{"steps": 8}, {"steps": 200, "step": 0.02}])
    def test_a_solver_that_stopped_early(self, mistake):
        diagnosis = csr.diagnose(lasso(), ista(**mistake))
        assert not diagnosis.explanations
        assert "% of the way" in diagnosis.remark and "stops early" in diagnosis.remark
        assert diagnosis.violations and "Largest violations" in str(diagnosis)

    def test_zero_weights(self):
        diagnosis = csr.diagnose(lasso(), np.zeros(D))
        largest = csr.lambda_max(lasso(1.0))
        assert f"from the strength {largest:.6g} * L1()" in words(diagnosis)[0]
        assert f"with the intercept {Y.mean():.6g}" in words(diagnosis)[0]


class TestConventions:
    def test_c_before_the_loss_and_halves(self):
        model = LogisticRegression(C=0.1, tol=1e-12, max_iter=10_000).fit(X, LABEL)
        (found,) = words(csr.diagnose(ridge_logistic(0.1), model))
        assert "50 times your strength: the strength is C before the loss there" in found
        model = LogisticRegression(C=10.0, tol=1e-12, max_iter=10_000).fit(X, LABEL)
        (found,) = words(csr.diagnose(ridge_logistic(0.1), model))
        assert "half your strength" in found and "factor 1/2" in found

    def test_swapped_labels(self):
        weights = ridge_logistic(label=1 - LABEL).solve(tol=1e-9)
        assert words(csr.diagnose(ridge_logistic(), weights)) == ["with the opposite sign: the labels are swapped"]

    def test_classes_in_another_order(self):
        y = np.digitize(Y, [0.0, 2.0])
        problem = csr.Problem(csr.Linear(X), csr.Multinomial(y) + csr.Ridge())
        solution = problem.solve(tol=1e-9)
        shuffled = solution.coef[:, [2, 0, 1]], solution.intercept[[2, 0, 1]]
        assert words(csr.diagnose(problem, shuffled)) == ["with the classes in another order"]

    @pytest.mark.parametrize("sparse", [False, True])
    def test_standardised_columns(self, sparse):
        mean, std = X.mean(axis=0), X.std(axis=0)
        model = Lasso(alpha=LAM / N, tol=1e-12).fit((X - mean) / std, Y)
        data = sp.csr_array(X) if sparse else X
        problem = csr.Problem(csr.Linear(data), csr.Squared(Y) + LAM * csr.L1())
        expected = "for columns scaled to unit variance: these are the weights of the scaled columns"
        assert words(csr.diagnose(problem, model))[0] == expected
        back = model.coef_ / std, model.intercept_ - mean @ (model.coef_ / std)
        expected = "if the penalty acts on the weights of columns scaled to unit variance"
        assert words(csr.diagnose(problem, back))[0] == expected

    def test_ignored_sample_weights(self):
        weights = RNG.uniform(0.5, 2.0, N)
        problem = csr.Problem(csr.Linear(X), csr.Logistic(LABEL, sample_weight=weights) + 0.5 * csr.Ridge())
        assert words(csr.diagnose(problem, ridge_logistic().solve(tol=1e-9)))[0] == "without the sample weights"

    def test_two_strengths_at_once(self):
        problem = csr.Problem(csr.Linear(X), csr.Squared(Y) + 4.0 * csr.L1() + 3.0 * csr.Ridge())
        other = csr.Problem(csr.Linear(X), csr.Squared(Y) + 6.0 * csr.L1() + 30.0 * csr.Ridge())
        (found,) = words(csr.diagnose(problem, other.solve(tol=1e-10)))
        assert "6 * L1(), 1.5 times your strength and 30 * Ridge(), 10 times your strength" in found
        one = csr.Problem(csr.Linear(X), csr.Squared(Y) + 4.0 * csr.L1() + 9.0 * csr.Ridge())
        assert words(csr.diagnose(problem, one.solve(tol=1e-10)))[0] == "for 9 * Ridge(), 3 times your strength"

    def test_groups_by_name(self):
        groups = csr.Groups([[0, 1, 2], [2, 3, 4], [5, 6, 7]], names=["left", "middle", "right"], feature_names=NAMES)

        def problem(lam):
            return csr.Problem(csr.Linear(X), csr.Squared(Y) + lam * csr.GroupLasso(groups))

        diagnosis = csr.diagnose(problem(4.0), problem(8.0).solve(tol=1e-10))
        assert "twice your strength" in words(diagnosis)[0]
        named = {item.name for item in diagnosis.violations}
        assert {"left", "right"} <= named and named & set(NAMES)

    def test_fused_weights(self):
        chain = csr.Graph.from_edges([(j, j + 1) for j in range(D - 1)], n_nodes=D)

        def problem(lam):
            return csr.Problem(csr.Linear(X), csr.Squared(Y) + lam * csr.FusedLasso(chain))

        solution = problem(60.0).solve(tol=1e-10)
        assert np.any(np.abs(np.diff(solution.coef)) < 1e-9)  # some neighbours are fused
        assert "twice your strength" in words(csr.diagnose(problem(30.0), solution))[0]

    def test_terms_with_several_parts_keep_one_strength(self):
        def problem(lam):
            half = csr.compose(csr.L1(), np.eye(D)[: D // 2])
            return csr.Problem(csr.Linear(X), csr.Squared(Y) + lam * half + 1.0 * csr.Ridge())

        found = words(csr.diagnose(problem(5.0), problem(15.0).solve(tol=1e-10)))[0]
        assert "3 times your strength" in found

    def test_an_example_of_a_kernel_model(self):
        problem = csr.Problem(csr.Kernel(X @ X.T + 1.0), csr.Logistic(LABEL) + 0.5 * csr.RKHSNorm())
        other = csr.Problem(problem.model, csr.Logistic(LABEL) + 1.0 * csr.RKHSNorm()).solve(tol=1e-10)
        diagnosis = csr.diagnose(problem, other)
        assert "twice your strength" in words(diagnosis)[0]
        assert diagnosis.violations[0].kind == "example"

    def test_ignored_weights_of_several_classes(self):
        y, weights = np.digitize(Y, [0.0, 2.0]), RNG.uniform(0.5, 2.0, N)
        problem = csr.Problem(csr.Linear(X), csr.Multinomial(y, sample_weight=weights) + 1.0 * csr.Ridge())
        plain = csr.Problem(csr.Linear(X), csr.Multinomial(y) + 1.0 * csr.Ridge())
        assert words(csr.diagnose(problem, plain.solve(tol=1e-9))) == ["without the sample weights"]

    def test_a_hinge_loss(self):
        problem = csr.Problem(csr.Linear(X), csr.Hinge(LABEL) + 0.5 * csr.Ridge())
        doubled = csr.Problem(csr.Linear(X), csr.Hinge(LABEL) + 1.0 * csr.Ridge()).solve(tol=1e-8)
        assert "twice your strength" in words(csr.diagnose(problem, doubled))[0]

    def test_out_of_bounds(self):
        problem = csr.Problem(csr.Linear(X), csr.Squared(Y) + csr.NonNegative())
        diagnosis = csr.diagnose(problem, np.r_[-1.0, -3.0, np.zeros(D - 2)])
        assert "out of bounds" in diagnosis.remark
        assert [(item.name, item.size) for item in diagnosis.violations] == [("1", 3.0), ("0", 1.0)]


class TestPeers:
    def test_liblinear_penalises_its_intercept(self):
        model = LogisticRegression(C=1.0, solver="liblinear", tol=1e-10, max_iter=10_000).fit(X, LABEL)
        expected = "if the intercept is penalised like a weight, as liblinear does"
        assert words(csr.diagnose(ridge_logistic(), model)) == [expected]
        machine = LinearSVC(C=1.0, tol=1e-10, max_iter=100_000).fit(X, LABEL)
        problem = csr.Problem(csr.Linear(X), csr.Hinge(LABEL) + 0.5 * csr.Ridge())
        assert words(csr.diagnose(problem, machine)) == [f"for the loss SquaredHinge, {expected}"]

    @pytest.mark.parametrize(
        "library",
        ["sklearn.linear_model", *(pytest.param(x, marks=pytest.mark.slow) for x in ("celer", "skglm", "glum"))],
    )
    def test_elastic_nets_of_other_libraries_use_a_mean_loss(self, library):
        alpha, ratio = 0.1, 0.5
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
        module = importlib.import_module(library)
        if library == "glum":
            options = {"family": "normal", "gradient_tol": 1e-10}
            peer = module.GeneralizedLinearRegressor(alpha=alpha, l1_ratio=ratio, **options)
        else:
            peer = module.ElasticNet(alpha=alpha, l1_ratio=ratio, tol=1e-10)
        careless = csr.Problem(csr.Linear(X), csr.Squared(Y) + alpha * ratio * csr.L1() + alpha / 4.0 * csr.Ridge())
        right = csr.conventions.from_mean_loss(alpha, N, ratio)
        problem = csr.Problem(csr.Linear(X), csr.Squared(Y) + right.l1 * csr.L1() + right.ridge * csr.Ridge())
        peer.fit(X, Y)
        assert csr.certify(problem, peer).relative_gap <= 1e-6
        assert "the loss is a mean over rows there" in words(csr.diagnose(careless, peer))[0]


def test_a_penalty_for_a_fixed_number_of_weights_is_diagnosed():
    import cvxpy as cp

    variation = csr.FromExpression(lambda w: cp.tv(cp.reshape(w, (2, 4), order="C")), name="patches")
    problem, doubled = (csr.Problem(csr.Linear(X), csr.Squared(Y) + s * variation) for s in (LAM, 2 * LAM))
    found = csr.diagnose(problem, doubled.solve(tol=1e-9))
    assert "twice your strength" in found.explanations[0].words
