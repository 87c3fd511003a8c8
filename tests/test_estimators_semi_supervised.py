"""Labelled and unlabelled rows, graphs and pairs of rows, and predictions for new rows."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_validate
from sklearn.svm import SVC

from cvxstructreg import Graph
from cvxstructreg.estimators import DissimilaritySVC, MixedGraphClassifier

BOTH = pytest.mark.parametrize("estimator", [MixedGraphClassifier, DissimilaritySVC])


def moons(n=40, n_labelled=6):
    X, truth = make_moons(n, noise=0.08, random_state=0)
    y = np.full(n, -1)
    y[:n_labelled] = truth[:n_labelled]
    return X, y, truth


def blobs(n=30):
    X, truth = make_blobs(n, centers=3, random_state=1)
    y = np.full(n, -1)
    y[:9] = truth[:9]
    return X, y, truth


@BOTH
def test_minus_one_is_unlabelled_and_ambiguous_as_a_class(estimator):
    X, y, truth = moons()
    assert estimator().fit(X, y).classes_.tolist() == [0, 1]
    signs = np.where(truth == 1, 1, -1)
    with pytest.raises(ValueError, match=r"ambiguous.*unlabeled="):
        estimator().fit(X, signs)
    assert estimator(unlabeled=None).fit(X, signs).classes_.tolist() == [-1, 1]
    signs[10:] = 0
    assert estimator(unlabeled=0).fit(X, signs).classes_.tolist() == [-1, 1]


@BOTH
def test_other_markers(estimator):
    X, y, _ = moons()
    words = np.where(y == -1, "?", np.where(y == 1, "up", "down"))
    model = estimator(unlabeled="?").fit(X, words)
    assert model.classes_.tolist() == ["down", "up"]
    numbers = estimator().fit(X, y)
    assert abs(model.objective_ - numbers.objective_) <= model.certificate_.gap + numbers.certificate_.gap
    with pytest.raises(ValueError, match="unlabeled='-1'"):
        estimator().fit(X, np.where(y == -1, "-1", words))
    mixed = [-1 if label == "?" else label for label in words]
    assert estimator().fit(X, np.array(mixed, dtype=object)).classes_.tolist() == ["down", "up"]


@BOTH
def test_too_few_labels(estimator):
    X, y, _ = moons()
    with pytest.raises(ValueError, match="no row is labelled"):
        estimator().fit(X, np.full(len(y), -1))
    with pytest.raises(ValueError, match="only one class"):
        estimator().fit(X, np.where(y == -1, -1, 5))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared", "logistic"])
def test_unlabelled_rows_help_through_the_graph(loss):
    X, y, truth = moons(60)
    common = {"loss": loss, "gamma": 5.0, "lam1": 0.01}
    plain = MixedGraphClassifier(**common).fit(X, y).score(X, truth)
    graph = MixedGraphClassifier("knn", graph_options={"n_neighbors": 5}, **common).fit(X, y).score(X, truth)
    assert graph > 0.95 > plain


def test_the_graph_in_three_forms():
    X, y, _ = moons()
    options = {"n_neighbors": 4, "weights": "binary"}
    knn = MixedGraphClassifier("knn", graph_options=options, loss="squared", tol=1e-10).fit(X, y)
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1:5]
    W = np.zeros((len(X), len(X)))
    np.put_along_axis(W, nearest, 1.0, axis=1)
    W = np.maximum(W, W.T)
    for graph in (W, Graph(W)):
        given = MixedGraphClassifier(graph, loss="squared", tol=1e-10).fit(X, y)
        np.testing.assert_allclose(given.decision_function(X), knn.decision_function(X), atol=1e-4)
    at_fit = MixedGraphClassifier(loss="squared", tol=1e-10).fit(X, y, graph=W)
    np.testing.assert_allclose(at_fit.decision_function(X), knn.decision_function(X), atol=1e-4)


def test_dissimilar_pairs_push_apart():
    X, y, _ = moons()
    pair = (20, 21)
    before = MixedGraphClassifier(loss="squared").fit(X, y).decision_function(X)[list(pair)]
    model = MixedGraphClassifier(loss="squared", lam2=100.0).fit(X, y, pairs=[pair])
    after = model.decision_function(X)[list(pair)]
    assert abs(after.sum()) < 0.05 < abs(before.sum())
    by_edge = Graph.from_edges([pair], [-1.0], n_nodes=len(X))
    same = MixedGraphClassifier(by_edge, loss="squared", lam2=100.0).fit(X, y)
    np.testing.assert_allclose(same.decision_function(X), model.decision_function(X), atol=1e-3)


def test_the_intercept_in_and_out_of_the_graph():
    X, y, _ = moons()
    y[:2] = 0
    pairs = [(i, i + 1) for i in range(10, 30, 2)]
    common = {"pairs": pairs, "loss": "squared", "lam2": 10.0, "tol": 1e-10}
    scores = MixedGraphClassifier(graph_on="scores", **common).fit(X, y)
    function = MixedGraphClassifier(graph_on="function", **common).fit(X, y)
    assert abs(scores.intercept_[0] - function.intercept_[0]) > 1e-3
    without = [
        MixedGraphClassifier(graph_on=on, fit_intercept=False, **common).fit(X, y).decision_function(X)
        for on in ("scores", "function")
    ]
    np.testing.assert_allclose(*without, atol=1e-4)


def test_a_plain_hinge_machine_is_a_support_vector_machine():
    X, _, truth = moons(30)
    lam1 = 0.2
    model = MixedGraphClassifier(lam1=lam1, gamma=2.0, tol=1e-9).fit(X, truth)
    machine = SVC(C=1 / (2 * lam1), gamma=2.0, tol=1e-10).fit(X, truth)
    np.testing.assert_allclose(model.decision_function(X), machine.decision_function(X), atol=1e-3)


def test_two_classes_without_pairs_are_a_support_vector_machine():
    X, _, truth = moons(30)
    lam1 = 0.01
    model = DissimilaritySVC(lam1=lam1, gamma=2.0, tol=1e-9).fit(X, truth)
    # mean over 30 rows, and two opposite functions in the norm
    machine = SVC(C=1 / (2 * 2 * lam1 * 30), gamma=2.0, tol=1e-10).fit(X, truth)
    np.testing.assert_allclose(model.decision_function(X), machine.decision_function(X), atol=1e-3)


@BOTH
def test_scores_of_rows_are_those_of_the_problem(estimator):
    X, y, _ = blobs()
    model = estimator(gamma=0.1).fit(X, y, pairs=[(10, 11), (12, 14)])
    scores = model.decision_function(X)
    solutions = model.solution_ if isinstance(model.solution_, tuple) else (model.solution_,)
    expected = np.concatenate([solution.scores.reshape(len(X), -1) for solution in solutions], axis=1)
    if estimator is DissimilaritySVC:
        expected = expected - expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(scores, expected, atol=1e-8)
    assert model.dual_coef_.shape == (len(X), 3)


@BOTH
@pytest.mark.parametrize("n", [12, 30])  # fewer and more rows than columns
def test_kernels_by_name_by_function_and_precomputed_agree(estimator, n):
    rng = np.random.default_rng(0)
    y = np.tile([0, 1, -1], n // 3)
    X = rng.normal(size=(n, 20)) + (2 * (y == 1))[:, None]
    new = rng.normal(size=(5, 20))
    loss = {"loss": "squared"} if estimator is MixedGraphClassifier else {}
    common = {"pairs": [(2, 5)], "tol": 1e-9, **loss}
    linear = estimator(kernel="linear", **common).fit(X, y)
    computed = estimator(kernel="precomputed", **common).fit(X @ X.T, y)
    function = estimator(kernel=lambda A, B: A @ B.T, **common).fit(X, y)
    np.testing.assert_allclose(computed.decision_function(new @ X.T), linear.decision_function(new), atol=2e-3)
    np.testing.assert_allclose(function.decision_function(new), linear.decision_function(new), atol=2e-3)
    assert linear.coef_.shape[1] == 20
    assert not hasattr(computed, "coef_")
    with pytest.raises(ValueError, match="square"):
        estimator(kernel="precomputed", **common).fit(X[:, :5], y)


def test_precomputed_kernels_are_cut_by_cross_validation():
    X, _, truth = moons()
    gram = rbf_kernel(X, gamma=2.0)
    model = MixedGraphClassifier(kernel="precomputed", loss="squared")
    direct = MixedGraphClassifier(gamma=2.0, loss="squared")
    by_gram = cross_validate(model, gram, truth, cv=3, error_score="raise")["test_score"]
    np.testing.assert_allclose(by_gram, cross_validate(direct, X, truth, cv=3)["test_score"])


@BOTH
def test_ids_make_pairs_independent_of_the_order_of_rows(estimator):
    X, y, _ = blobs()
    ids = np.array([f"row {i}" for i in range(len(X))])
    pairs = [("row 10", "row 11"), ("row 12", "row 20")]
    straight = estimator(pairs, tol=1e-8) if estimator is DissimilaritySVC else estimator(pairs=pairs, tol=1e-8)
    straight.fit(X, y, sample_ids=ids)
    numbers = estimator(pairs=[(10, 11), (12, 20)], tol=1e-8).fit(X, y)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = estimator(pairs=pairs, tol=1e-8).fit(X[order], y[order], sample_ids=ids[order])
    for other in (numbers, shuffled):
        np.testing.assert_allclose(other.decision_function(X), straight.decision_function(X), atol=1e-2)
    with pytest.raises(ValueError, match="missing='ignore'"):
        estimator(pairs=pairs).fit(X[:15], y[:15], sample_ids=ids[:15])
    part = estimator(pairs=pairs, missing="ignore").fit(X[:15], y[:15], sample_ids=ids[:15])
    assert part.n_features_in_ == 2


def test_ids_are_routed_through_a_cross_validation():
    X, y, truth = blobs()
    y[9:20] = truth[9:20]
    ids = np.arange(100, 130)
    graph = Graph.from_edges([("100", "103"), ("110", "112")], names=list(map(str, ids)))
    with config_context(enable_metadata_routing=True):
        model = MixedGraphClassifier(graph, pairs=[(101, 102), (111, 113)], missing="ignore", loss="squared")
        model.set_fit_request(sample_ids=True)
        fits = cross_validate(
            model, X, y, cv=3, params={"sample_ids": ids}, return_estimator=True, return_indices=True,
            error_score="raise",
        )  # fmt: skip
    for fit, train in zip(fits["estimator"], fits["indices"]["train"], strict=True):
        used = fit.solution_[0].problem.terms[-1].atom.graph
        expected = sum({a, b} <= set(train.tolist()) for a, b in [(0, 3), (10, 12), (1, 2), (11, 13)])
        assert used.n_edges == expected


def test_probabilities_need_the_logistic_loss():
    X, y, _ = moons()
    assert not hasattr(MixedGraphClassifier(), "predict_proba")
    model = MixedGraphClassifier("knn", loss="logistic").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))


def test_weights_of_labelled_rows_only_count():
    X, y, _ = moons()
    weights = np.where(y == -1, 17.0, 2.0)
    model = DissimilaritySVC(pairs=[(10, 11)]).fit(X, y, sample_weight=weights)
    plain = DissimilaritySVC(pairs=[(10, 11)]).fit(X, y)  # the loss is a mean: twice all weights changes nothing
    assert abs(model.objective_ - plain.objective_) <= model.certificate_.gap + plain.certificate_.gap + 1e-12
    with pytest.raises(ValueError, match="every labelled row"):
        DissimilaritySVC().fit(X, y, sample_weight=(y == -1).astype(float))


def test_the_strength_of_pairs_is_shared_among_them():
    X, y, _ = blobs()
    pairs = [(10, 11), (12, 20), (13, 21)]
    model = DissimilaritySVC(pairs, lam2=6.0).fit(X, y)
    term = model.solution_.problem.terms[-1]
    assert term.scale == pytest.approx(2.0)
    assert len(DissimilaritySVC(lam2=6.0).fit(X, y).solution_.problem.terms) == 2
    smooth = DissimilaritySVC(pairs, graph="knn", lam_graph=0.5).fit(X, y)
    assert len(smooth.solution_.problem.terms) == 4
